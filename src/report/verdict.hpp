// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The verdict on a Result: its exit code and its last line.
#pragma once

#include <string>

#include "report/result.hpp"

namespace doorbell::report {

/// `result.exit_code`, made worse by what the cells hold: verification failures and errors are never a
/// success. Worst wins: data (2) over interrupted (130), which leaves the rest unknown, over usage (1) over
/// absent (77) over ok. A command that ends with this code and stores it in `exit_code` cannot print one
/// thing and return another.
[[nodiscard]] int exit_code_for(const Result& result);

/// The worse of two exit codes, in that order.
[[nodiscard]] int worse_of(int a, int b);

struct Verdict {
  enum class Kind { ok, failed, interrupted, skipped };
  Kind kind = Kind::ok;
  std::string text;  ///< one line: "OK", "FAILED: 3 corrupt, 1 timeout", "INTERRUPTED (partial)", ...
};
[[nodiscard]] Verdict verdict_for(const Result& result);

}  // namespace doorbell::report
