// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A device that costs next to nothing: it completes every entry at once, in the initiator's own
// thread. What a loop against it takes is the floor of the harness itself.
#pragma once

#include <algorithm>
#include <vector>

#include "nvme/io_loop.hpp"
#include "system/clock.hpp"

namespace doorbell::nvme {

class NullController {
 public:
  explicit NullController(u32 entries) : sq_(entries * kSqeParts), cq_(entries) {}

  [[nodiscard]] QueuePairMemory memory() {
    QueuePairMemory m;
    m.sq = sq_.data();
    m.cq = cq_.data();
    m.sq_doorbell = &tail_;
    m.cq_doorbell = &head_;
    m.entries = static_cast<u32>(cq_.size());
    m.qid = 1;
    return m;
  }

  void poll() {
    for (const u32 tail = load_relaxed(&tail_); done_ != tail;) {
      const u32 cid = sq_[u64{done_} * kSqeParts].w[0] >> 16;
      done_ = done_ + 1 == cq_.size() ? 0 : done_ + 1;
      store16_release(&cq_[at_], {{0, 0, 1u << 16 | done_, phase_ << 16 | cid}});
      if (++at_ == cq_.size()) {
        at_ = 0;
        phase_ ^= 1;
      }
    }
  }

 private:
  std::vector<Word16> sq_;
  std::vector<Word16> cq_;
  u32 tail_ = 0;
  u32 head_ = 0;
  u32 done_ = 0;
  u32 at_ = 0;
  u32 phase_ = 1;
};

/// ns an operation of this phase's loop against a NullController, data work left out. Measured with 200'000
/// operations, or the share `work` of them.
[[nodiscard]] inline double harness_floor_ns(IoPhase phase, u32 entries, double work = 1) {
  const u64 operations = std::max<u64>(static_cast<u64>(200'000 * work), 1);
  NullController device(entries);
  IoQueue queue;
  queue.memory = device.memory();
  queue.data_iova = 1u << 20;
  queue.stride = 4096;
  queue.count = operations;
  queue.span = operations;
  phase.verify = false;
  phase.stop = nullptr;
  phase.csts = nullptr;
  phase.duration_ticks = 0;
  std::vector<u64> memory(IoScratch::bytes(phase.window, histogram::kBuckets) / 8 + 1);
  const IoScratch scratch = carve_scratch(memory.data(), phase.window, histogram::kBuckets);
  OpStats stats;
  const OneLane lane;
  QueuePairState state;
  state.memory = queue.memory;
  IoLoop<OneLane, HostClock> loop(lane, phase, queue, state, scratch, &stats);
  do {
    device.poll();
  } while (loop.step(lane));
  loop.finish(lane);
  return static_cast<double>(stats.end_ns - stats.begin_ns) / static_cast<double>(operations);
}

}  // namespace doorbell::nvme
