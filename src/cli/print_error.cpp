// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Apart from the other output, because doorbelld needs nothing else of it.
#include <fmt/format.h>

#include "cli/output.hpp"
#include "cli/terminal.hpp"
#include "report/layout.hpp"

namespace doorbell::cli {

int print_error(const std::string& prefix, const Error& e) {
  std::fflush(stdout);
  print(stderr, fmt::format("{}{}\n", prefix, report::printable(e.what())));
  if (!e.hint().empty()) print(stderr, fmt::format("hint: {}\n", report::printable(e.hint())));
  return static_cast<int>(e.code());
}

}  // namespace doorbell::cli
