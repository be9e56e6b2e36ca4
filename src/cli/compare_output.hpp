// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Options and outputs that comparisons of results and comparisons in turns share.
#pragma once

#include <string>
#include <vector>

#include "cli/command.hpp"
#include "report/junit.hpp"
#include "sweep/compare.hpp"

namespace doorbell::cli {

/// A figure and the metric that it belongs to: 1e5 ops_per_s.
struct Rate {
  std::string metric;
  double value = 0;
};
/// "100k", "100k ops", "1.5M ops/s", "100 kIOPS": operations a second; "1GB/s", "800 MiB/s", "10Gb/s" (bits):
/// bytes a second. k is 1000 and Ki 1024, as everywhere. Throws std::invalid_argument with the reason.
[[nodiscard]] Rate rate_of(const std::string& text);

/// --metric, --threshold, --undecided, --min and --max-latency. Throws doorbell::Error.
[[nodiscard]] sweep::Rules rules_of(const Options& options);

/// Refuses outputs that cannot be written, that are equal to each other, or that are among `inputs`.
void check_comparison_outputs(const Options& options, const std::vector<std::string>& inputs);

/// A case a cell: data errors, what is not comparable, regressions and unmet demands have failed; an
/// undecided cell is skipped, unless it is a failure. One more where the comparison's code is not 0 and no
/// cell says why.
[[nodiscard]] std::vector<report::TestCase> cases_of(const sweep::Comparison& comparison);

struct ComparisonOutput {
  nlohmann::ordered_json document;
  std::vector<report::TestCase> cases;
  std::string text;        ///< the whole, for standard output
  std::string short_text;  ///< for standard error where that is not printed and the code is not 0
  int code = 0;
};
/// Prints it and writes --html, --json and --junit. A file that cannot be written makes a code of 0 another
/// one, and prevents no other output. Returns the code.
[[nodiscard]] int deliver_comparison(const ComparisonOutput& output, const Options& options,
                                     const Context& context);

}  // namespace doorbell::cli
