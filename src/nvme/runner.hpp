// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Who drives the queues of a phase: CPU threads or a GPU kernel.
#pragma once

#include <doorbell/nvme/io_types.hpp>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "measure/histogram.hpp"
#include "measure/stop.hpp"

namespace doorbell::gpu {
class Gpu;
}

namespace doorbell::nvme {

struct ThreadCost {
  std::string name;
  double user_s = 0;
  double system_s = 0;
};

/// One phase on every queue.
struct PhaseOutcome {
  std::vector<IoStats> queues;
  measure::Histogram latency;
  double elapsed_s = 0;  ///< from the first post on any queue to the last completion on any
  std::vector<ThreadCost> threads;
};

/// What the driving side watches while a phase runs: called about 50 times a second with the I/Os
/// done so far (or nothing known: 0); returning true asks the loops to stop posting.
using Watch = std::function<bool(u64 done)>;

class Runner {
 public:
  virtual ~Runner() = default;
  /// Fills in the phase's clock fields from its seconds and runs it. The queues' state goes on from
  /// phase to phase, so all calls name the same queues in the same order.
  [[nodiscard]] virtual PhaseOutcome run(IoPhase phase, std::span<const IoQueue> queues, bool substeps,
                                         const Watch& watch) = 0;
  /// Ticks of this runner's clock.
  [[nodiscard]] virtual u64 ticks(double seconds) const = 0;
  [[nodiscard]] virtual double ns_per_tick() const = 0;
};

/// One warp a queue.
[[nodiscard]] std::unique_ptr<Runner> gpu_runner(std::shared_ptr<gpu::Gpu> gpu, u32 window, u32 queues);

}  // namespace doorbell::nvme
