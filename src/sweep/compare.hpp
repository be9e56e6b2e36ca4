// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Two measurements of the same cells: the ratio of each pair of repeats, and the median ratio with its
// interval.
#pragma once

#include <string>
#include <vector>

#include "sweep/samples.hpp"

namespace doorbell::sweep {

enum class Change {
  undecided,  ///< too few pairs for an interval at 95 %
  same,       ///< the interval holds 1
  better,
  worse,       ///< it excludes 1, but the median is within the threshold
  regression,  ///< and beyond it
};
[[nodiscard]] const char* name(Change change);

struct Ratio {
  std::string metric;
  std::size_t pairs = 0;
  double before = 0, after = 0;                              ///< medians of the paired repeats
  double median = 1, ci_low = 1, ci_high = 1, ci_level = 0;  ///< of after / before
  Change change = Change::undecided;
};

struct Compared {
  std::string label;
  std::vector<Ratio> ratios;
  std::size_t unpaired = 0;  ///< repeats that only one side has
};

struct Comparison {
  std::vector<Compared> cells;
  std::vector<std::string> only_before, only_after;
  std::vector<std::string> warnings;
  [[nodiscard]] bool regressed() const;
};

/// The ratio of paired samples. `threshold` is a share: 0.05 for 5 %. Pairs without a figure, or with one
/// that is not above 0, are left out.
[[nodiscard]] Ratio ratio_of(const std::string& metric, const std::vector<std::optional<double>>& before,
                             const std::vector<std::optional<double>>& after, double threshold);

/// Throws doorbell::Error when the two have no cell in common.
[[nodiscard]] Comparison compare(const Measured& before, const Measured& after,
                                 const std::vector<std::string>& metrics, double threshold);

[[nodiscard]] std::string to_text(const Comparison& comparison, const std::string& before,
                                  const std::string& after);
[[nodiscard]] nlohmann::ordered_json to_json(const Comparison& comparison);

}  // namespace doorbell::sweep
