// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A plan from its file to its table: what `doorbell sweep` does once and `doorbell reproduce` for each plan.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "sweep/cells.hpp"
#include "sweep/plan.hpp"
#include "sweep/ranks/team.hpp"
#include "sweep/record.hpp"
#include "sweep/reference.hpp"

namespace doorbell::cli {

/// The commands that a plan can name: measuring_commands().
[[nodiscard]] std::vector<sweep::Subject> subjects(const Context& context);

/// Finds a plan's file: "plans/NAME" that is not in the working folder is one that comes with the program.
[[nodiscard]] std::string find_plan(const std::string& name);

struct SweepRequest {
  std::string plan;     ///< the file
  std::string profile;  ///< empty: the plan as it is
  std::string only;     ///< empty: every cell
  u64 seed = 1;
  sweep::Team* team = nullptr;  ///< the ranks for a plan with pairs
};

/// A checked plan: nothing has been started or written. It cannot be moved: the plan points into it.
struct PreparedSweep {
  PreparedSweep() = default;
  PreparedSweep(const PreparedSweep&) = delete;
  PreparedSweep& operator=(const PreparedSweep&) = delete;

  std::string text;  ///< what the folder keeps
  std::vector<sweep::Subject> commands;
  sweep::Plan plan;
  std::vector<sweep::Cell> cells;
  std::vector<sweep::ReferenceTable> references;
  std::vector<u32> selected;
  std::vector<sweep::Turn> turns;
  sweep::Team* team = nullptr;
};
/// Throws doorbell::Error for everything that is wrong with the plan.
[[nodiscard]] std::unique_ptr<PreparedSweep> prepare_sweep(const SweepRequest& request,
                                                           const Context& context);

struct SweepRun {
  std::string folder;
  bool resume = false;  ///< refuse a folder without a sweep
  double cell_timeout_s = 3600;
  bool quiet = false;
  bool bits = false;       ///< payload a second in the summary
  std::string title = {};  ///< before the progress line's text
};

struct SweepOutcome {
  int code = 0;                        ///< the worst of all runs; 77 only if no run is complete
  std::vector<sweep::Record> records;  ///< of the selected cells
  std::string summary;
  std::string verdict;  ///< one line
  std::string failure;  ///< why it ended early, if a file could not be written
};
/// Runs what the folder does not have yet. Throws doorbell::Error before the first run.
[[nodiscard]] SweepOutcome run_sweep(const PreparedSweep& s, const SweepRun& how, Context& context);

}  // namespace doorbell::cli
