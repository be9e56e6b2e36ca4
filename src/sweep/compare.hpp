// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Compares two measurements of the same cells: the factor between them, whether the runs are enough to show
// it, and what else differs between the two.
#pragma once

#include <string>
#include <vector>

#include "sweep/samples.hpp"

namespace doorbell::sweep {

enum class Change {
  undecided,        ///< too few runs for an interval at 95 %, or it holds 1 but is too wide
  same,             ///< the interval holds 1 and is within the threshold on both sides
  better,           ///< the interval excludes 1; the median is beyond the threshold
  slightly_better,  ///< the interval excludes 1; the median is within it
  slightly_worse,
  regression,
  not_comparable,  ///< one side's figures are not valid
};
/// The name in tables.
[[nodiscard]] const char* name(Change change);
/// The name in JSON.
[[nodiscard]] const char* word(Change change);

struct Ratio {
  std::string metric;
  std::size_t runs_before = 0, runs_after = 0;               ///< runs that have this metric
  double before = 0, after = 0;                              ///< medians over the runs; 0 without one
  double median = 1, ci_low = 1, ci_high = 1, ci_level = 0;  ///< of after / before
  Change change = Change::undecided;
  [[nodiscard]] bool known() const { return runs_before > 0 && runs_after > 0; }
};

struct Compared {
  std::string label;
  std::vector<Ratio> ratios;  ///< empty if a side has no such cell
  std::size_t unpaired = 0;   ///< surplus runs of one side; the largest number of all metrics
  std::vector<std::string> why_not_comparable;  ///< why the cell is not comparable; empty if it is
  bool new_data_errors = false;                 ///< the second side has data errors, the first has none
};

/// Something besides the figures that differs between the two sides.
struct Difference {
  std::string what, before, after;
  std::size_t cells = 0;  ///< number of cells; 0: it concerns a whole side
};

struct Comparison {
  std::vector<std::string> across;  ///< options that differ on purpose (pair_across())
  std::vector<Difference> differences;
  std::vector<Compared> cells;
  std::vector<std::string> only_before, only_after;
  std::vector<std::string> warnings;
  std::size_t runs_before = 0, runs_after = 0;

  [[nodiscard]] bool regressed() const { return figures(Change::regression) > 0; }
  /// The number of figures with this verdict.
  [[nodiscard]] std::size_t figures(Change change) const;
  [[nodiscard]] std::size_t figures() const;
  [[nodiscard]] std::size_t not_comparable() const;   ///< cells
  [[nodiscard]] std::size_t new_data_errors() const;  ///< cells
  /// 2: the second side has data errors and the first has none; 3: a regression, or a cell that is not
  /// comparable; else 0.
  [[nodiscard]] int exit_code() const;
};

/// The ratio of two sets of runs with one figure each. `threshold` is the least effect that counts, as a
/// share in both directions: 0.05 for 5 %. Runs without a figure above 0 are left out.
[[nodiscard]] Ratio ratio_of(const std::string& metric, const std::vector<std::optional<double>>& before,
                             const std::vector<std::optional<double>>& after, double threshold);

/// Throws doorbell::Error if the sides share no cell and have no record of a run without a Result.
[[nodiscard]] Comparison compare(const Measured& before, const Measured& after,
                                 const std::vector<std::string>& metrics, double threshold);

/// Differences, warnings of the Results, and a table for each cell.
[[nodiscard]] std::string to_text(const Comparison& comparison, const std::string& before,
                                  const std::string& after);
/// The last lines: the conclusion, and what to measure if it is undecided.
[[nodiscard]] std::string verdict(const Comparison& comparison, double threshold_percent);
[[nodiscard]] nlohmann::ordered_json to_json(const Comparison& comparison);

}  // namespace doorbell::sweep
