// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The receiving side of a run: takes bursts from one queue, classifies every packet by its header, checks the
// data.
#pragma once

#include <doorbell/net/queue.hpp>

#include <array>
#include <atomic>
#include <span>

#include "measure/histogram.hpp"
#include "net/flow/arrival_map.hpp"
#include "net/flow/queue_flows.hpp"

namespace doorbell::net {

/// Takes the unique packets of a burst: an assembler.
class PacketSink {
 public:
  virtual ~PacketSink() = default;
  /// `packet[i]` is the place in the burst of the i-th unique packet, `flow[i]` its flow, `number[i]` its
  /// number in the flow, counted from the flow's first. Called by the queue's thread, once a burst. Returns 0
  /// when it needs the packets no longer; else what await() takes.
  [[nodiscard]] virtual u64 take(const Burst& burst, std::span<const u32> packet, std::span<const u16> flow,
                                 std::span<const u64> number) = 0;
  /// Returns when the packets of the call of take() that returned `mark` are needed no longer.
  virtual void await(u64 mark) { static_cast<void>(mark); }
  /// Called now and then, whether packets arrive or not.
  virtual void idle(u64 now_ns) { static_cast<void>(now_ns); }
};

struct ReceiverOptions {
  u16 run_tag = 0;
  u32 queue = 0;             ///< this queue's number,
  Spreading spreading = {};  ///< of so many
  u32 burst = 64;
  u64 first_sequence = 0;
  u64 seed = 1;
  u32 verify_below = ~0u;  ///< data is checked where a hash of the packet's number is at most this
  bool verify = true;
  u64 late_ns = 1'000'000'000;
  u32 latency_every = 1;  ///< one packet in so many is timed; a power of two
  u64 map_span = ArrivalMap::kDefaultSpan;
};

/// One thread at a time; step() does not allocate, and waits for nothing but the sink.
class Receiver {
 public:
  Receiver(const ReceiverOptions& options, RxQueue& queue, PacketSink* sink = nullptr);

  /// Takes one burst; returns its packets. While the sink uses them the next burst is taken.
  u32 step();
  /// Waits until the sink needs no packet any more.
  void settle();
  [[nodiscard]] RxQueue& queue() { return queue_; }
  [[nodiscard]] PacketSink* sink() { return sink_; }

  [[nodiscard]] const ReceiveCounts& counts() const { return counts_; }
  /// A phase begins, before which `sent` packets of each flow have left. What comes of these now counts as
  /// `earlier`.
  void begin_phase(const std::vector<u64>& sent);
  /// Call it now and then: where it was not for long, nor step(), the thread did not run.
  void awake(u64 now_ns);
  /// The same, where the queue was empty.
  void idle(u64 now_ns) { awake(now_ns), empty_ns_ = now_ns; }
  /// One-way latency of this phase's unique packets.
  [[nodiscard]] const measure::Histogram& latency() const { return latency_; }
  /// When the newest of them came; 0: none.
  [[nodiscard]] u64 last_ns() const { return last_ns_; }
  /// The map of flow `f`, which must be one of this queue's.
  [[nodiscard]] const ArrivalMap& map(u32 f) const { return maps_[flows_.place(f)]; }
  [[nodiscard]] bool owns(u32 f) const { return flows_.has(f); }
  /// Unique packets so far; any thread may read it.
  [[nodiscard]] u64 progress() const { return progress_.load(std::memory_order_acquire); }

 private:
  /// Counts each packet of the burst; the unique ones stand in packet_, flow_ and number_ afterwards. Returns
  /// how many these are.
  [[nodiscard]] u32 classify(const Burst& burst, u64 now);
  /// Counts those that are none of this queue's, or not whole; the others stand in packet_ and key_. Returns
  /// how many.
  [[nodiscard]] u32 screen(const Burst& burst, u64 now);
  /// Counts a packet that is none of this queue's, or not whole.
  void refuse(const Burst& burst, u32 i);
  /// Notes `count` packets, the first of which is entry `at` of packet_, in their flow's map. The unique ones
  /// become entries from `unique` on; returns how many there are then.
  [[nodiscard]] u32 note_run(u32 at, u32 count, u32 unique);
  void count_unique(const Burst& burst, u32 unique, u64 now);
  /// Counts those of the burst's unique packets that an earlier phase has sent; returns how many.
  [[nodiscard]] u32 count_earlier(const Burst& burst, u32 unique);
  [[nodiscard]] bool is_earlier(u32 u) const {
    return earlier_missing_ && number_[u] < phase_first_[flows_.place(flow_[u])];
  }
  void count_late(u64 sent_ns, u64 now_ns);
  /// Whether the packet's data is checked, where data is.
  [[nodiscard]] bool checks(const Header& h) const;
  /// False when the packet's data is checked and is not what its CRC says.
  [[nodiscard]] bool data_good(const Burst& burst, u32 i) const;

  ReceiverOptions o_;
  QueueFlows flows_;
  RxQueue& queue_;
  PacketSink* sink_;
  std::array<Burst, 2> bursts_;
  u32 turn_ = 0;  ///< the burst that is taken next
  u64 used_ = 0;  ///< not 0: the sink's mark of the other burst, which is not yet released
  std::vector<ArrivalMap> maps_;
  // Of the packets of a burst, each with one place for each packet that it can have.
  std::vector<u32> crc_;
  std::vector<u64> key_;  ///< stream and sequence, as in the header
  std::vector<u32> packet_;
  std::vector<u16> flow_;
  std::vector<u64> number_;
  u64 oldest_ns_ = 0;  ///< when the burst's first good packet was sent
  ReceiveCounts counts_;
  measure::Histogram latency_;
  u64 last_ns_ = 0;
  std::vector<u64> phase_first_;               ///< of each flow, the number of its first packet in this phase
  bool earlier_missing_ = false;               ///< packets of earlier phases may still come
  u64 empty_ns_ = 0;                           ///< when the queue was found empty last; 0: not in this phase
  u64 awake_ns_ = 0;                           ///< when the thread ran last; 0: not in this phase
  u64 stall_begin_ns_ = 0, stall_end_ns_ = 0;  ///< the last time that it did not
  alignas(64) std::atomic<u64> progress_{0};
};

}  // namespace doorbell::net
