// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The work of a run and how long it takes, as far as its options say it.
#pragma once

#include <optional>
#include <string>

#include "measure/run_options.hpp"

namespace doorbell::cli {

struct RunPlan {
  u32 cells = 1;  ///< each is warmed up and repeated; 0: nothing is known beforehand
  u32 ways = 1;   ///< that are measured in turns
  std::string ways_are = "programs";
  std::string work = {};  ///< of a repeat that does not end by its duration alone: "300 packets of each flow"
  double work_s = 0;      ///< how long that takes; 0: not known beforehand
  double settle_s = 0;    ///< behind each phase
  double check_s = 0;     ///< behind each repeat: what is checked is not measured
  double search_s = 0;    ///< before the repeats of each cell
  /// Of a mode that chooses what was not given, and has no warm-up of a given time.
  std::optional<measure::RunOptions> chosen = {};
  std::string once = {};  ///< said in place of all that: the work of a run without repeats
};

/// "7 repeats of 2 s, a warm-up of 0.2 s, about 14 s"; empty where the options say nothing.
[[nodiscard]] std::string text_of(const RunPlan& plan, const measure::RunOptions& run);

/// "42 s", "7 min", "2.5 h".
[[nodiscard]] std::string rough_time(double seconds);

}  // namespace doorbell::cli
