// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Who drives the queues of a phase: CPU threads (cpu_runner.hpp) or a GPU kernel (gpu_runner.hpp).
//
// A path describes its work to them by a struct of types and functions, here called Work:
//
//   Phase              one phase for every queue; has ns_per_tick_q24, timeout_ticks, window and `const u32*
//   stop` Item               one queue's share of it State              where a queue stands between phases
//   Scratch            a loop's working memory; has `u64* bins` of histogram::kBuckets counters
//   Loop<bool>         what a CPU thread runs, with or without sub-step timing. Made from (OneLane, Phase,
//   Item,
//                      State, Scratch, OpStats*); has step(), finish(), state(), idle(), completed()
//   scratch_bytes(window)  of one loop, on CPU and GPU
//   carve(memory, window)  the Scratch in that many bytes, aligned to 8
//   kept_words(window)     u32 words of a Scratch that a GPU kernel keeps from phase to phase
#pragma once

#include <doorbell/op_stats.hpp>

#include <algorithm>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "measure/cpu_time.hpp"
#include "measure/histogram.hpp"

namespace doorbell::measure {

/// How often a loop looks at its stop flag, its deadlines and the device.
inline constexpr double kCheckIntervalS = 100e-6;

/// One phase on every queue.
struct PhaseOutcome {
  std::vector<OpStats> queues;
  Histogram latency;
  double elapsed_s = 0;  ///< from the first post on any queue to the last completion on any
  std::vector<ThreadCost> threads;

  /// What the next queue did; `bins` are its histogram::kBuckets latency counters.
  void add(const OpStats& stats, std::span<const u64> bins);

 private:
  u64 begin_ns_ = ~u64{0};
  u64 end_ns_ = 0;
};

/// What the driving side watches while a phase runs: called often at first, later at least ten times a
/// second, with the operations done so far (or nothing known: 0); returning true asks the loops to stop
/// posting.
using Watch = std::function<bool(u64 done)>;

/// One base for all runners of a path, whatever their Work.
template <class Phase, class Item>
class Runner {
 public:
  virtual ~Runner() = default;
  /// Fills in the phase's clock fields and its stop flag, and runs it. The queues' state goes on from
  /// phase to phase, so all calls name the same queues in the same order.
  [[nodiscard]] virtual PhaseOutcome run(Phase phase, std::span<const Item> items, bool substeps,
                                         const Watch& watch) = 0;
  /// Ticks of this runner's clock.
  [[nodiscard]] virtual u64 ticks(double seconds) const = 0;
  [[nodiscard]] virtual double ns_per_tick() const = 0;
  /// The same for a time whose 0 means "no limit": what was given is a limit, however short it is.
  [[nodiscard]] u64 limit_ticks(double seconds) const {
    return seconds > 0 ? std::max<u64>(ticks(seconds), 1) : 0;
  }
};

}  // namespace doorbell::measure
