// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Something happens to a run while it lasts, whatever else the machine does.
#pragma once

#include <csignal>
#include <functional>
#include <utility>

#include "measure/live.hpp"
#include "measure/stop.hpp"
#include "nvme/bench.hpp"

namespace doorbell::nvme {

/// Runs `o`. `trouble` comes once, when the first I/Os have ended. With `until_failure` the run is asked to
/// stop when an I/O has failed.
inline BenchResult run_into(const BenchOptions& o, const std::function<void(measure::StopFlag&)>& trouble,
                            bool until_failure = false) {
  measure::StopFlag stop;
  measure::LiveBoard live(true);
  bool begun = false;
  const auto watch = [&](double, const std::string&) {
    const measure::LiveFigures now = live.figures();
    if (now.operations > 0 && !std::exchange(begun, true)) trouble(stop);
    if (until_failure && now.counters.failed > 0) (void)stop.request(SIGINT);
  };
  return run_bench(o, {.stop = &stop, .progress = watch, .live = &live});
}

/// For run_into(): what Ctrl-C does.
inline void stop_it(measure::StopFlag& stop) {
  (void)stop.request(SIGINT);
}

}  // namespace doorbell::nvme
