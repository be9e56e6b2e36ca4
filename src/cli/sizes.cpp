// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/sizes.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <stdexcept>

#include "cli/run_options.hpp"

namespace doorbell::cli {

std::vector<u64> sizes_of(const std::string& option, const std::string& text, u64 least, u64 most) {
  const Option one = {.name = option, .kind = Kind::size, .min = least, .max = most};
  const auto size_of = [&](const std::string& item) {
    try {
      return std::get<u64>(convert(one, item));
    } catch (const std::invalid_argument& e) {
      throw Error("--" + option, e.what(), "write bytes, 4KiB, 256:1MiB, or a list with commas");
    }
  };
  std::vector<u64> sizes;
  for (const std::string& item : split(text)) {
    const std::size_t colon = item.find(':');
    if (colon == std::string::npos) {
      sizes.push_back(size_of(item));
      continue;
    }
    const u64 first = size_of(item.substr(0, colon));
    const u64 last = size_of(item.substr(colon + 1));
    if (first > last)
      throw Error("--" + option, fmt::format("{} goes from more to less", item), "write SMALL:LARGE");
    sizes.push_back(first);
    for (u64 power = 1; power <= last; power *= 2)
      if (power > first) sizes.push_back(power);
    if (sizes.back() != last) sizes.push_back(last);
  }
  return sizes;
}

}  // namespace doorbell::cli
