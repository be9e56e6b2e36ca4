// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A runner drives the queues of a phase: with CPU threads (cpu_runner.hpp) or a GPU kernel (gpu_runner.hpp).
// The concept Work is what a path gives to its runners.
#pragma once

#include <doorbell/warp.hpp>

#include <algorithm>
#include <concepts>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "loop/check_ring.hpp"
#include "loop/loop_guard.hpp"
#include "loop/op_stats.hpp"
#include "measure/cpu_time.hpp"
#include "measure/histogram.hpp"

namespace doorbell::measure {

/// A path's loop for a CPU thread: one phase on one queue. It is made from the phase, the queue's share of
/// it, where the queue stands, the loop's working memory, and the OpStats that it reports to.
template <class L, class W>
concept Loop = std::constructible_from<L, const OneLane&, const typename W::Phase&, const typename W::Item&,
                                       const typename W::State&, const typename W::Scratch&, OpStats*> &&
    requires(L& loop, const L& done, const OneLane& lane) {
  { loop.made(lane) } -> std::same_as<bool>;                   // whether its first data is made
  loop.start_clock(lane);                                      // when the data of all loops is
  { loop.step(lane) } -> std::same_as<bool>;                   // one round; false when the phase is over
  loop.finish(lane);                                           // once, after the last step
  { done.state() } -> std::convertible_to<typename W::State>;  // for the next phase
  { done.idle() } -> std::same_as<u32>;                        // polls since the last completion
  { done.completed() } -> std::same_as<u64>;                   // operations so far
  { done.counters() } -> std::same_as<OpCounters>;             // by what became of them
};

/// The parts of a path that runners ask for: its types, and the memory that a loop works in.
template <class W>
concept Work = requires(void* memory, u32 window, const typename W::Scratch& scratch) {
  requires LoopPhase<typename W::Phase>;                   // what all queues are given for a phase
  requires std::copyable<typename W::Item>;                // one queue's share of it
  requires std::default_initializable<typename W::State>;  // where a queue stands between two phases
  requires Loop<typename W::template Loop<false>, W>;      // without sub-step timing,
  requires Loop<typename W::template Loop<true>, W>;       // and with it
  // Bytes of a loop's working memory, on CPU and GPU, and that memory, aligned to 8 bytes, in its parts:
  { W::scratch_bytes(window) } -> std::same_as<u64>;
  { W::carve(memory, window) } -> std::same_as<typename W::Scratch>;
  { scratch.bins } -> std::convertible_to<u64*>;   // the histogram::kBuckets latency counters among them,
  { W::kept_words(window) } -> std::same_as<u32>;  // u32 words that a GPU kernel keeps from phase to phase
};

/// A Work whose operations carry payloads that are checked: it names what a Checker takes, made from a phase
/// and an item. Others check inside their loops.
template <class W>
concept CheckedWork = Work<W> && requires(const typename W::Phase& phase, typename W::Item& item) {
  requires std::constructible_from<typename W::Payload, const typename W::Phase&, const typename W::Item&>;
  { W::payload_bytes(phase) } -> std::same_as<u64>;  // of one operation
  { item.checks } -> std::same_as<CheckRing&>;
};

/// The kernels of one path: the first two take a `const GpuJob*`, the last a `const CheckJob*`.
struct KernelNames {
  std::string plain;
  std::string substeps;  ///< the same with sub-step timing
  std::string checks;    ///< makes and checks payloads beside them
  [[nodiscard]] std::vector<std::string> all() const { return {plain, substeps, checks}; }
};

/// Adds the counters that are plain sums.
void add_sums(OpCounters& into, const OpCounters& from);

/// How often a loop looks at its stop flag, its deadlines and the device.
inline constexpr double kCheckIntervalS = 100e-6;

/// One phase on every queue.
struct PhaseOutcome {
  std::vector<OpStats> queues;
  Histogram latency;
  double elapsed_s = 0;  ///< from the first post on any queue to the last completion on any
  std::vector<ThreadCost> threads;

  /// Adds the outcome of the next queue; `bins` are its histogram::kBuckets latency counters.
  void add(const OpStats& stats, std::span<const u64> bins);

 private:
  u64 begin_ns_ = ~u64{0};
  u64 end_ns_ = 0;
};

/// Called while a phase runs: often at first, later at least ten times a second. `done`: operations so far,
/// 0 where that is not known. Returns what is asked of the loops.
using Watch = std::function<Asked(u64 done)>;

/// The base of all runners of a path.
template <class Phase, class Item>
class Runner {
 public:
  virtual ~Runner() = default;
  /// Fills in the phase's clock fields and its stop flag, and runs it. The queues' state goes on from
  /// phase to phase, so all calls name the same queues in the same order.
  [[nodiscard]] virtual PhaseOutcome run(Phase phase, std::span<const Item> items, bool substeps,
                                         const Watch& watch) = 0;
  /// For a Watch: asks for what the queues have counted so far in this phase, and gives the answer to the
  /// question before. False, and nothing is changed, while there is none; always where a loop's counters
  /// cannot be seen before its end (on a GPU).
  [[nodiscard]] virtual bool look(OpCounters* /*counters*/, Histogram* /*latency*/) { return false; }
  /// Ticks of this runner's clock.
  [[nodiscard]] virtual u64 ticks(double seconds) const = 0;
  [[nodiscard]] virtual double ns_per_tick() const = 0;
  /// The same for a limit, where 0 means none: a time above 0 is one tick at least.
  [[nodiscard]] u64 limit_ticks(double seconds) const {
    return seconds > 0 ? std::max<u64>(ticks(seconds), 1) : 0;
  }
};

}  // namespace doorbell::measure
