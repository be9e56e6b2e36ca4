// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/offers.hpp"

#include "net/cli/parts.hpp"
#include "net/link.hpp"

namespace doorbell::cli {

std::vector<std::string> interface_pairs() {
  constexpr std::size_t kMostPaired = 8;
  std::vector<std::string> names, words;
  for (const FoundDevice& device : found_devices("net"))
    if (device.name != "lo") add_found(&names, device.name);
  for (const std::string& tx : names) {
    // All pairs of many interfaces are no list that anybody reads.
    if (names.size() > kMostPaired) words.push_back(tx + ",");
    else
      for (const std::string& rx : names)
        if (tx != rx) words.push_back(tx + "," + rx);
  }
  return words;
}

std::vector<std::string> link_words() {
  std::vector<std::string> words = backend_words(net::link_kinds());
  for (std::string& pair : interface_pairs()) words.push_back(std::move(pair));
  return words;
}

}  // namespace doorbell::cli
