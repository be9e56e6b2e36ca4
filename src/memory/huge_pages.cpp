// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "memory/huge_pages.hpp"

#include <fmt/format.h>

#include <fstream>

namespace doorbell {

HugePages huge_pages(u64 page_bytes) {
  const std::string folder = fmt::format("/sys/kernel/mm/hugepages/hugepages-{}kB/", page_bytes / 1024);
  const auto read = [&](const char* file) {
    u64 n = 0;
    std::ifstream(folder + file) >> n;
    return n;
  };
  return {read("nr_hugepages"), read("free_hugepages"), folder + "nr_hugepages"};
}

}  // namespace doorbell
