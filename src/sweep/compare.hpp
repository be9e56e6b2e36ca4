// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Two measurements of the same cells: by which factor they differ, whether their runs show that, and what
// else is different between them.
#pragma once

#include <string>
#include <vector>

#include "sweep/samples.hpp"

namespace doorbell::sweep {

enum class Change {
  undecided,  ///< too few runs for an interval at 95 %, or one that holds 1 and reaches beyond the threshold
  same,       ///< the interval holds 1 and ends within the threshold on both sides
  better,     ///< it excludes 1, and the median is beyond the threshold
  slightly_better,  ///< it excludes 1, and the median is within the threshold
  slightly_worse,
  regression,
  not_comparable,  ///< one side's figures do not count
};
/// As a table has it.
[[nodiscard]] const char* name(Change change);
/// As JSON has it.
[[nodiscard]] const char* word(Change change);

struct Ratio {
  std::string metric;
  std::size_t runs_before = 0, runs_after = 0;               ///< that have this metric
  double before = 0, after = 0;                              ///< medians over the runs; 0 without one
  double median = 1, ci_low = 1, ci_high = 1, ci_level = 0;  ///< of after / before
  Change change = Change::undecided;
  [[nodiscard]] bool known() const { return runs_before > 0 && runs_after > 0; }
};

struct Compared {
  std::string label;
  std::vector<Ratio> ratios;         ///< empty when a side has no such cell
  std::size_t unpaired = 0;          ///< runs that one side has more than the other; the most of all metrics
  std::vector<std::string> unsound;  ///< why it is not comparable; empty when it is
  bool new_data_errors = false;      ///< the second side has data errors, the first has none
};

/// Something that is not the same on both sides, besides the figures.
struct Difference {
  std::string what, before, after;
  std::size_t cells = 0;  ///< in how many cells; 0: it is the whole sides'
};

struct Comparison {
  std::vector<Difference> differences;
  std::vector<Compared> cells;
  std::vector<std::string> only_before, only_after;
  std::vector<std::string> warnings;
  std::size_t runs_before = 0, runs_after = 0;

  [[nodiscard]] bool regressed() const { return figures(Change::regression) > 0; }
  /// Figures with that verdict.
  [[nodiscard]] std::size_t figures(Change change) const;
  [[nodiscard]] std::size_t figures() const;
  [[nodiscard]] std::size_t not_comparable() const;   ///< cells
  [[nodiscard]] std::size_t new_data_errors() const;  ///< cells
  /// 2: the second side has data errors that the first has not; 3: a regression, or a cell that is not
  /// comparable; else 0.
  [[nodiscard]] int exit_code() const;
};

/// The ratio of two sets of runs, one figure each. `threshold` is the least effect, a share: 0.05 for 5 %, in
/// both directions. Runs without a figure, or with one that is not above 0, are left out.
[[nodiscard]] Ratio ratio_of(const std::string& metric, const std::vector<std::optional<double>>& before,
                             const std::vector<std::optional<double>>& after, double threshold);

/// Throws doorbell::Error when neither has a cell of the other and nothing says that one went missing.
[[nodiscard]] Comparison compare(const Measured& before, const Measured& after,
                                 const std::vector<std::string>& metrics, double threshold);

/// What is different, what Results warn of, and a table a cell.
[[nodiscard]] std::string to_text(const Comparison& comparison, const std::string& before,
                                  const std::string& after);
/// The last lines: what it amounts to, and what to measure where that is undecided.
[[nodiscard]] std::string verdict(const Comparison& comparison, double threshold_percent);
[[nodiscard]] nlohmann::ordered_json to_json(const Comparison& comparison);

}  // namespace doorbell::sweep
