// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The engine inside a kernel: one block, whose first warp is the device while the others move data. The same
// source runs on threads of the CPU, for tests.
#pragma once

#include <new>

#include "cxi/model/engine.hpp"
#include "cxi/model/engine_burst.hpp"
#include "cxi/model/served.hpp"
#include "model/kernel_mover.hpp"
#include "model/served_parts.hpp"

namespace doorbell::cxi {

/// The memory that the engine works in: a block's shared memory. It starts as zeros, which is what objects
/// are that do not exist. `Clock` has wall_ns().
template <class Clock>
struct ServedMemory;

/// The parts of an engine in a kernel; see Engine.
template <class Clock>
class ServedParts {
 public:
  static constexpr u32 kInARow = 8;  // then several lanes try again
  static constexpr bool kReadsAtOnce = false;
  static constexpr bool kAtomics = false;
  static constexpr bool kMatching = false;

  DOORBELL_HD ServedParts(const ServerJob& job, ServedMemory<Clock>& memory, u32 helpers)
      : job_(job),
        memory_(memory),
        objects(memory.objects),
        rule(job.rule),
        faults{job.faults, job.rule.faulty, {}},
        mover(memory.jobs, helpers),
        late(job.late) {}

  [[nodiscard]] DOORBELL_INLINE ListEntry& list_entry(u32 i) const {
    return i < kServedEntries ? memory_.list_entries[i] : job_.list_entries[i - kServedEntries];
  }
  [[nodiscard]] DOORBELL_INLINE Trigger& trigger(u32 i) const { return job_.triggers[i]; }
  [[nodiscard]] DOORBELL_INLINE u64* staging() const { return nullptr; }
  [[nodiscard]] DOORBELL_INLINE bool gone() const { return is_gone; }
  DOORBELL_HD void leave() {
    is_gone = true;
    (void)model::leave(job_.gone, job_.alive);
  }
  DOORBELL_HD void remove_device() {
    is_gone = true;
    if (model::leave(job_.gone, job_.alive)) faults.count(model::Fault::removal);
  }
  [[nodiscard]] DOORBELL_INLINE u64 finish_time(u64 now_ns, u64 bytes) const {
    return job_.link.finish_time(job_.link_free_at, now_ns, bytes);
  }
  [[nodiscard]] DOORBELL_INLINE static u64 wall_ns() { return Clock::wall_ns(); }
  /// Nobody waits for a kernel's queues.
  DOORBELL_INLINE static void signal(int) {}

 private:
  const ServerJob& job_;
  ServedMemory<Clock>& memory_;

 public:
  Objects<ServedRoom>& objects;
  const EngineRule rule;
  model::ServedFaults faults;
  model::NoDma dma;
  model::KernelMover mover;
  model::DueHeap<Acknowledgement, LateItems> late;
  EngineCounters counters;
  bool is_gone = false;
};

template <class Clock>
struct ServedMemory {
  using Parts = ServedParts<Clock>;

  Objects<ServedRoom> objects;
  ListEntry list_entries[kServedEntries];
  model::CopyJobs jobs;
  Word16 stage[Engine<Parts>::kStage];
  alignas(16) u8 parts[sizeof(Parts)];
  alignas(16) u8 engine[sizeof(Engine<Parts>)];
  u32 ended;
  u32 work;
};

/// Of the first warp, whose lanes call all of it together. Lane 0 alone is the device; what is plain, the
/// lanes do side by side.
template <class Warp, class Clock>
class ServedEngine {
 public:
  enum class Round { idle, worked, ended };
  using Memory = ServedMemory<Clock>;

  /// `helpers`: warps of the block that call m.jobs.help().
  DOORBELL_HD ServedEngine(const Warp& warp, const ServerJob& job, u32 server, Memory& memory, u32 helpers)
      : warp_(warp), job_(job), server_(server), m_(memory), helpers_(helpers) {
    if (warp_.lane() == 0) {
      auto* const p = new (m_.parts) typename Memory::Parts(job, m_, helpers);
      new (m_.engine) Engine<typename Memory::Parts>(*p);
    }
    warp_.sync();
  }

  DOORBELL_HD Round round() {
    if (rounds_++ % kOrders == 0 && look())
      return warp_.shfl(m_.ended, 0) != 0 ? Round::ended : Round::worked;
    // Only lane 0 looks at what it alone changes.
    if (warp_.shfl(warp_.lane() == 0 && parts().gone() ? 1u : 0u, 0) != 0) return Round::idle;
    if (warp_.lane() == 0) {
      m_.work = 0;
      engine().begin_round();
      // Everything that lanes do not look at, or not often.
      if (rounds_ % kAll == 0) note(engine().poll());
    }
    warp_.sync();
    const u32 queues = engine().queues();
    for (u32 base = 0; base < queues; base += Warp::size) serve(base, queues);
    if (rounds_ % kSeldom == 0) look_at_pages();
    if (warp_.lane() == 0 && !parts().gone() && (m_.work != 0 || engine().has_news())) {
      note(engine().end_round(m_.work != 0));
      (void)parts().mover.settle();  // of operations that nobody counts, or whose report was lost
    }
    // Whether readers have taken note of lost events.
    else if (warp_.lane() == 0 && !parts().gone() && rounds_ % kSeldom == 0)
      note(engine().end_round(false));
    warp_.sync();
    const bool worked = warp_.shfl(m_.work, 0) != 0;
    warp_.sync();  // all have seen the word before the next round changes it
    return worked ? Round::worked : Round::idle;
  }

 private:
  static constexpr u32 kBursts = 8;   // of one queue in a row
  static constexpr u32 kOrders = 4;   // rounds between two looks for an order
  static constexpr u32 kSeldom = 16;  // rounds between two looks at windows and counters' pages
  static constexpr u32 kAll = 4096;   // rounds between two looks at everything

  [[nodiscard]] DOORBELL_INLINE typename Memory::Parts& parts() const {
    return *reinterpret_cast<typename Memory::Parts*>(m_.parts);
  }
  [[nodiscard]] DOORBELL_INLINE Engine<typename Memory::Parts>& engine() const {
    return *reinterpret_cast<Engine<typename Memory::Parts>*>(m_.engine);
  }
  DOORBELL_INLINE void note(bool work) { m_.work |= work ? 1 : 0; }

  /// The commands of a queue for each lane, from the one with number `base` on.
  DOORBELL_HD void serve(u32 base, u32 queues) {
    const bool mine = base + warp_.lane() < queues;
    WorkQueue& q = engine().queue(mine ? base + warp_.lane() : base);
    // A load of each lane: they go out together. A window that was written before a doorbell comes before it.
    u64 value = 0;
    const bool rung = mine && engine().take_doorbell(q, value);
    const bool window = rung && engine().window_written(q);
    const bool bad = rung && !window && !engine().set_write_pointer(q, value);
    const u64 taken = warp_.ballot(rung && !window), invalid = warp_.ballot(bad);
    warp_.sync();
    if (warp_.lane() == 0 && taken != 0) engine().count_doorbells(count_bits(taken), count_bits(invalid));
    for (u64 left = warp_.ballot(window); left != 0; left &= left - 1) {
      const u32 lane = lowest_bit(left);
      const u64 doorbell = warp_.shfl(value, lane);
      if (warp_.lane() == 0) engine().windows_then(engine().queue(base + lane), doorbell);
    }
    warp_.sync();
    u64 bursting = 0, tried = 0;
    for (u64 left = warp_.ballot(mine && q.has_commands()); left != 0; left &= left - 1) {
      const u32 i = lowest_bit(left);
      WorkQueue& each = engine().queue(base + i);
      for (u32 bursts = 0; bursts < kBursts; ++bursts) {
        const bool any = engine().burst(warp_, each, m_.stage) > 0;
        if (any) tried |= u64{1} << i;
        bursting = any ? bursting | u64{1} << i : bursting & ~(u64{1} << i);
        if (!any) break;
      }
      if (warp_.lane() == 0 && (tried >> i & 1) != 0) engine().publish(each);
    }
    warp_.sync();  // all lanes have decided by the queues before lane 0 changes them
    const u64 rest = warp_.ballot(mine && q.has_commands()) & ~bursting;
    if (warp_.lane() == 0) {
      note((taken | tried) != 0);
      for (u64 left = rest; left != 0 && !parts().gone(); left &= left - 1)
        note(engine().serve(engine().queue(base + lowest_bit(left))));
    }
    warp_.sync();
  }

  /// Low-latency windows and counters' doorbell pages: of some queues and counters, in turn.
  DOORBELL_HD void look_at_pages() {
    const u32 queues = engine().queues(), all = queues + engine().counters();
    if (all == 0) return;
    DOORBELL_NO_UNROLL
    for (u32 looked = 0; looked < kPages; looked += Warp::size) {
      if (page_ >= all) page_ = 0;
      const u32 item = page_ + warp_.lane();
      const bool queue = item < queues;
      const bool news = queue        ? engine().window_written(engine().queue(item))
                        : item < all ? engine().written(engine().counter(item - queues))
                                     : false;
      for (u64 left = warp_.ballot(news); left != 0; left &= left - 1) {
        const u32 i = page_ + lowest_bit(left);
        if (warp_.lane() != 0 || parts().gone()) continue;
        if (i < queues) note(engine().serve(engine().queue(i)));
        else note(engine().poll_doorbell(engine().counter(i - queues)));
      }
      page_ += Warp::size;
      warp_.sync();
    }
  }
  static constexpr u32 kPages = 32;

  /// Carries out a new order. True if there was one.
  DOORBELL_HD bool look() {
    u32 word = 0;
    if (warp_.lane() == 0) {
      // The acquire orders the order's fields behind its number, and `gone`, which is set before the last
      // order of a host that had given up.
      word = load_acquire(job_.sequences + server_);
      if (load_relaxed(job_.gone) != 0) parts().is_gone = true;
    }
    const u32 sequence = warp_.shfl(word, 0);
    warp_.sync();
    if (sequence == sequence_) return false;
    obey(sequence);
    return true;
  }

  DOORBELL_NOINLINE void obey(u32 sequence) {
    if (warp_.lane() == 0) {
      const ServerOrder& order = job_.orders[server_];
      // Work that initiators posted before the order comes before it.
      (void)engine().poll();
      // Of a device that has gone the host may have freed everything.
      if (order.kind == ServerOrder::Kind::end) m_.ended = 1;
      else if (!parts().gone()) engine().change(order.change);
      // A device that has gone leaves copies under way. The host may free their memory when it has the
      // answer.
      m_.jobs.finish(helpers_);
      save_counts();
      if (m_.ended != 0) m_.jobs.end();
    }
    warp_.sync();
    sequence_ = sequence;
    // The order's effects come before its answer.
    if (warp_.lane() == 0) store_release(&job_.answers[server_].sequence, sequence);
  }
  DOORBELL_INLINE void save_counts() {
    ServedCounts& c = job_.counts[server_];
    c.counters = parts().counters;
    for (u32 k = 0; k < model::kFaultKinds; ++k) c.injected[k] = parts().faults.counts[k];
  }

  const Warp& warp_;
  const ServerJob& job_;
  u32 server_;
  Memory& m_;
  u32 helpers_;
  u32 sequence_ = 0;
  u32 rounds_ = 0;
  u32 page_ = 0;  ///< the next queue or counter whose page is looked at
};

}  // namespace doorbell::cxi
