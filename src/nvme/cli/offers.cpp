// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/offers.hpp"

#include "nvme/backends.hpp"
#include "nvme/cli/parts.hpp"

namespace doorbell::cli {

namespace {

/// Of a fact of a device; empty if it is no text.
std::string text_of(const FoundDevice& device, const char* fact) {
  const auto& value = device.facts.at(fact);
  return value.is_string() ? value.get<std::string>() : "";
}

}  // namespace

std::vector<std::string> controller_addresses() {
  std::vector<std::string> words;
  for (const FoundDevice& device : found_devices("nvme")) {
    const std::string address = text_of(device, "pci_address");
    if (address != device.name) add_found(&words, device.name);
    add_found(&words, address);
  }
  return words;
}

std::vector<std::string> controller_words() {
  std::vector<std::string> words = backend_words(nvme::backends());
  for (const FoundDevice& device : found_devices("nvme")) {
    add_found(&words, text_of(device, "pci_address"));
    // A drive of the kernel's driver can be used through the kernel.
    const auto namespaces = device.facts.find("namespaces");
    if (namespaces == device.facts.end()) continue;
    for (const auto& space : *namespaces) add_found(&words, "/dev/" + space.at("name").get<std::string>());
  }
  words.insert(words.end(), {"file:*", "*"});
  return words;
}

}  // namespace doorbell::cli
