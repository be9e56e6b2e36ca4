// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Runs a sweep's cells, each in a process of its own, so that a crash is one failed cell. A cell of a pair of
// ranks is run by these.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "measure/stop.hpp"
#include "sweep/cells.hpp"
#include "sweep/folder.hpp"
#include "sweep/ranks/team.hpp"

namespace doorbell::sweep {

struct RunLimits {
  double cell_timeout_s = 3600;
  std::string program = "/proc/self/exe";  ///< the program to start
  Team* team = nullptr;                    ///< of a plan with pairs
};

struct RunWatch {
  measure::StopFlag* stop = nullptr;
  /// Gets the number of finished turns, the turn that runs now and its run time so far.
  std::function<void(std::size_t done, const Turn&, double elapsed_s)> progress = {};
};

/// Runs `todo` in order. Each run's record is in `folder` before the next run starts. Ends early if asked to
/// stop, after the running cell has written what it has. Records are also added to `done` as they come, so
/// none is lost if a file cannot be written. Throws doorbell::Error.
void run(const Plan& plan, const std::vector<Cell>& cells, const std::vector<Turn>& todo, Folder& folder,
         const RunLimits& limits, const RunWatch& watch, std::vector<Record>* done);

}  // namespace doorbell::sweep
