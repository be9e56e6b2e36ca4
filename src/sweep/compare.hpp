// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Compares two measurements of the same cells: the factor between them, whether the runs are enough to show
// it, and what else differs between the two.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "report/units.hpp"
#include "sweep/samples.hpp"
#include "sweep/shift.hpp"

namespace doorbell::sweep {

/// By so much, as a factor in either direction, two processes of equal settings may differ although the
/// repeats of each agree: on a machine that does other work a whole process can be two or three times as slow
/// as the next.
inline constexpr double kBetweenProcesses = 3;

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
  /// The runs are too few, and the interval is that of the repeats inside them: it says nothing of what
  /// differs from process to process.
  bool by_repeats = false;
  std::size_t repeats_before = 0, repeats_after = 0;  ///< behind such an interval
  [[nodiscard]] bool known() const { return runs_before > 0 && runs_after > 0; }
};

struct Compared {
  std::string label;
  std::vector<Ratio> ratios;  ///< empty if a side has no such cell
  std::size_t unpaired = 0;   ///< surplus runs of one side; the largest number of all metrics
  std::vector<std::string> why_not_comparable;  ///< why the cell is not comparable; empty if it is
  std::set<std::string> operations = {};        ///< of either side: Samples::operations
  bool new_data_errors = false;                 ///< the second side has data errors, the first has none
};

/// Demands that the second side must reach; empty: nothing is demanded.
struct Demands {
  std::optional<double> min_ops_per_s = {}, min_bytes_per_s = {};  ///< medians over its runs
  std::optional<double> max_p99_ns = {};
  bool decided = false;  ///< an undecided figure is a failure
};

/// A demand that a cell of the second side does not meet, or of which nothing is known.
struct Unmet {
  std::string cell, metric;
  std::optional<double> figure;
  double demanded = 0;
};

/// How two measurements are compared.
struct Rules {
  std::vector<std::string> metrics;
  /// The least effect that counts, as a share in both directions: 0.05 for 5 %.
  double threshold = 0;
  double level = kLevel;  ///< of each interval; higher where figures are looked at more than once
  Demands demands = {};
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
  bool in_turns = false;  ///< the runs of both sides alternated
  Demands demands;
  std::vector<Unmet> unmet;

  [[nodiscard]] bool regressed() const { return figures(Change::regression) > 0; }
  /// The number of figures with this verdict.
  [[nodiscard]] std::size_t figures(Change change) const;
  [[nodiscard]] std::size_t figures() const;
  [[nodiscard]] std::size_t not_comparable() const;   ///< cells
  [[nodiscard]] std::size_t new_data_errors() const;  ///< cells
  /// The unit of all rates: a comparison, like a table, has one.
  [[nodiscard]] report::ColumnUnit rate_unit() const;
  /// 2: the second side has data errors and the first has none; 3: a regression, a cell that is not
  /// comparable, or an unmet demand; else 0.
  [[nodiscard]] int exit_code() const;
};

/// The ratio of two sets of runs with one figure each. `threshold` is the least effect that counts, as a
/// share in both directions: 0.05 for 5 %. Runs without a figure above 0 are left out.
[[nodiscard]] Ratio ratio_of(const std::string& metric, const std::vector<std::optional<double>>& before,
                             const std::vector<std::optional<double>>& after, double threshold,
                             double level = kLevel);

/// The same of repeats inside fewer runs than runs are concluded from. Processes differ by more than the
/// repeats of one do, so only a factor beyond kBetweenProcesses is more than undecided.
[[nodiscard]] Ratio ratio_of_repeats(Ratio runs, const std::vector<double>& before,
                                     const std::vector<double>& after, double threshold,
                                     double level = kLevel);

/// Throws doorbell::Error if the sides share no cell and have no record of a run without a Result.
[[nodiscard]] Comparison compare(const Measured& before, const Measured& after, const Rules& rules);
[[nodiscard]] inline Comparison compare(const Measured& before, const Measured& after,
                                        const std::vector<std::string>& metrics, double threshold) {
  return compare(before, after, Rules{.metrics = metrics, .threshold = threshold});
}

/// Differences, warnings of the Results, and a table for each cell.
[[nodiscard]] std::string to_text(const Comparison& comparison, const std::string& before,
                                  const std::string& after);
/// "TOO SLOW: nvme batch=1: ops_per_s of B is 98.2 kIOPS, and at least 100 kIOPS is demanded". `rate`: the
/// unit of rates.
[[nodiscard]] std::string text_of(const Unmet& unmet, const report::ColumnUnit& rate);
/// The last lines: the conclusion, and what to measure if it is undecided.
[[nodiscard]] std::string verdict(const Comparison& comparison, double threshold_percent);
[[nodiscard]] nlohmann::ordered_json to_json(const Comparison& comparison);

}  // namespace doorbell::sweep
