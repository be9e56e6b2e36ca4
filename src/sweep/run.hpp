// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Running a sweep's cells, each in a process of its own: one that crashes is one failed cell.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "measure/stop.hpp"
#include "sweep/cells.hpp"
#include "sweep/folder.hpp"

namespace doorbell::sweep {

struct RunLimits {
  double cell_timeout_s = 3600;
  std::string program = "/proc/self/exe";  ///< what is started
};

struct RunWatch {
  measure::StopFlag* stop = nullptr;
  /// How many turns are done, and which runs for how long now.
  std::function<void(std::size_t done, const Turn&, double elapsed_s)> progress = {};
};

/// Runs `todo` in order, each into `folder` before the next starts; ends early when asked to stop, after the
/// running cell has written what it has. The records go to `done` as they come: it has them when a file
/// cannot be written, too. Throws doorbell::Error.
void run(const Plan& plan, const std::vector<Cell>& cells, const std::vector<Turn>& todo, Folder& folder,
         const RunLimits& limits, const RunWatch& watch, std::vector<Record>* done);

}  // namespace doorbell::sweep
