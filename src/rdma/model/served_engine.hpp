// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// An engine inside a kernel: one block, whose first warp serves the queue pairs while the others move data.
// The same source runs on threads of the CPU, for tests.
#pragma once

#include <new>

#include "model/served_parts.hpp"
#include "rdma/model/engine.hpp"
#include "rdma/model/engine_burst.hpp"
#include "rdma/model/served.hpp"

namespace doorbell::rdma {

/// The parts of an engine in a kernel; see Engine. `Clock` has wall_ns().
template <class Clock>
struct ServedParts {
  static constexpr u32 kHeld = 64;
  static constexpr u32 kInARow = 4;  // then several lanes try again

  DOORBELL_HD ServedParts(const ServerJob& job, Qp* queue_pairs, model::CopyJobs& jobs, u32 helpers)
      : job_(job),
        qps_(queue_pairs),
        rule(job.rule),
        faults{job.faults, job.rule.faulty, {}},
        transport(job.keys, faults, jobs, helpers) {}

  [[nodiscard]] DOORBELL_INLINE u32 qps() const { return count; }
  [[nodiscard]] DOORBELL_INLINE Qp& qp(u32 i) const { return qps_[i]; }
  [[nodiscard]] DOORBELL_INLINE bool gone() const { return is_gone; }
  DOORBELL_HD void remove_device() {
    is_gone = true;
    if (model::leave(job_.gone, job_.alive)) faults.count(model::Fault::removal);
  }
  [[nodiscard]] DOORBELL_INLINE u64 finish_time(u64 now_ns, u64 bytes) const {
    return job_.link.finish_time(job_.link_free_at, now_ns, bytes);
  }
  [[nodiscard]] DOORBELL_INLINE static u64 wall_ns() { return Clock::wall_ns(); }

 private:
  const ServerJob& job_;
  Qp* qps_;

 public:
  const EngineRule rule;
  model::ServedFaults faults;
  model::NoDma dma;
  Transport<model::KernelMover, model::ServedFaults> transport;
  EngineCounters counters;
  u32 count = 0;         ///< queue pairs
  bool is_gone = false;  ///< as far as this engine knows
};

/// The memory that one engine works in: a block's shared memory. It starts as zeros.
template <class F, class Clock>
struct ServedMemory {
  using Parts = ServedParts<Clock>;

  Qp qps[kServedQps];
  model::CopyJobs jobs;
  Word16 stage[Engine<F, Parts>::kStage];
  alignas(16) u8 parts[sizeof(Parts)];
  alignas(16) u8 engine[sizeof(Engine<F, Parts>)];
  u32 paused;
  u32 ended;
  u32 work;
};

/// Of the first warp, whose lanes call all of it together. Lane 0 alone works on the queue pairs one at a
/// time; what is plain, the lanes do side by side.
template <class F, class Warp, class Clock>
class ServedEngine {
 public:
  enum class Round { idle, worked, ended };
  using Memory = ServedMemory<F, Clock>;

  /// `helpers`: warps of the block that call m.jobs.help().
  DOORBELL_HD ServedEngine(const Warp& warp, const ServerJob& job, u32 server, Memory& memory, u32 helpers)
      : warp_(warp), job_(job), server_(server), m_(memory), helpers_(helpers) {
    if (warp_.lane() == 0) {
      auto* const p = new (m_.parts) typename Memory::Parts(job, m_.qps, m_.jobs, helpers);
      new (m_.engine) Engine<F, typename Memory::Parts>(*p);
      m_.paused = 1;  // until the first queue pair comes
    }
    warp_.sync();
  }

  DOORBELL_HD Round round() {
    bool worked = false;
    if (look()) return warp_.shfl(m_.ended, 0) != 0 ? Round::ended : Round::worked;
    if (m_.paused != 0 || parts().gone()) return Round::idle;
    u64 bursting = 0;  // queue pairs that may have more for all lanes
    for (u32 i = 0; i < parts().qps(); ++i)
      for (u32 bursts = 0; bursts < kBursts; ++bursts) {
        const bool any = engine().burst(warp_, m_.qps[i], m_.stage) > 0;
        bursting = any ? bursting | u64{1} << i : bursting & ~(u64{1} << i);
        worked = worked || any;
        if (!any) break;
      }
    warp_.sync();  // all lanes have decided by the queue pairs before lane 0 changes them
    if (warp_.lane() == 0) {
      engine().begin_round();
      m_.work = engine().busy(bursting) && engine().serve_all(bursting) ? 1 : 0;
    }
    warp_.sync();
    worked = worked || warp_.shfl(m_.work, 0) != 0;
    warp_.sync();  // all have seen the word before the next round changes it
    return worked ? Round::worked : Round::idle;
  }

 private:
  static constexpr u32 kBursts = 8;  // of one queue pair in a row

  [[nodiscard]] DOORBELL_INLINE typename Memory::Parts& parts() const {
    return *reinterpret_cast<typename Memory::Parts*>(m_.parts);
  }
  [[nodiscard]] DOORBELL_INLINE Engine<F, typename Memory::Parts>& engine() const {
    return *reinterpret_cast<Engine<F, typename Memory::Parts>*>(m_.engine);
  }

  /// Takes the doorbells' values and carries out a new order. True if there was one.
  DOORBELL_HD bool look() {
    const u32 qps = m_.paused != 0 ? 0 : parts().qps();
    u32 sequence = sequence_;
    bool gone = false;
    // One load a lane for everything that can have changed: they go out together.
    for (u32 base = 0; base < qps + 2; base += Warp::size) {
      const u32 item = base + warp_.lane();
      u32 word = 0;
      bool rung = false;
      if (item == 0) word = load_acquire(job_.sequences + server_);
      else if (item == 1) word = load_relaxed(job_.gone);
      else if (item < qps + 2) rung = load64_relaxed(m_.qps[item - 2].sq.doorbell) != 0;
      if (base == 0) sequence = warp_.shfl(word, 0);
      if (Warp::size == 1 ? base == 1 : base == 0) gone = warp_.shfl(word, 1 % Warp::size) != 0;
      const u64 rings = warp_.ballot(rung);
      if (warp_.lane() == 0)
        for (u64 left = rings; left != 0; left &= left - 1) engine().look(base + lowest_bit(left) - 2);
    }
    warp_.sync();
    if (warp_.lane() == 0 && gone) parts().is_gone = true;
    warp_.sync();
    if (sequence == sequence_) return false;
    obey(sequence);
    return true;
  }

  DOORBELL_NOINLINE void obey(u32 sequence) {
    const ServerOrder& order = job_.orders[server_];
    Qp* const images = job_.images + u64{server_} * kServedQps;
    // A device that has gone leaves copies under way. The host may free their memory when it has the answer.
    if (warp_.lane() == 0 && order.kind != ServerOrder::Kind::resume) m_.jobs.finish(helpers_);
    switch (order.kind) {
      case ServerOrder::Kind::pause:
        copy(images, m_.qps, parts().qps());
        if (warp_.lane() == 0) save_counts();
        break;
      case ServerOrder::Kind::resume:
        copy(m_.qps, images, order.queue_pairs);
        if (warp_.lane() == 0) parts().count = order.queue_pairs;
        break;
      case ServerOrder::Kind::end:
        break;
    }
    warp_.sync();
    if (warp_.lane() == 0) {
      m_.paused = order.kind == ServerOrder::Kind::resume ? 0 : 1;
      m_.ended = order.kind == ServerOrder::Kind::end ? 1 : 0;
      if (m_.ended != 0) m_.jobs.end();
    }
    warp_.sync();
    sequence_ = sequence;
    // The order's effects, which all lanes had a part in, come before its answer.
    if (warp_.lane() == 0) store_release(&job_.answers[server_].sequence, sequence);
  }
  DOORBELL_INLINE void copy(Qp* to, const Qp* from, u32 n) const {
    static_assert(sizeof(Qp) % sizeof(u64) == 0);
    for (u64 i = warp_.lane(); i < n * sizeof(Qp) / sizeof(u64); i += Warp::size)
      reinterpret_cast<u64*>(to)[i] = reinterpret_cast<const u64*>(from)[i];
  }
  DOORBELL_INLINE void save_counts() {
    ServedCounts& c = job_.counts[server_];
    c.counters = parts().counters;
    c.violations = parts().transport.violations();
    for (u32 k = 0; k < model::kFaultKinds; ++k) c.injected[k] = parts().faults.counts[k];
  }

  const Warp& warp_;
  const ServerJob& job_;
  u32 server_;
  Memory& m_;
  u32 helpers_;
  u32 sequence_ = 0;
};

}  // namespace doorbell::rdma
