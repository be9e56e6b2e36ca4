// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The sending side of one flow: fills the slots of its queue once, then writes a header a packet and hands
// packets over in bursts.
#pragma once

#include <doorbell/net/packet.hpp>
#include <doorbell/net/queue.hpp>

#include <atomic>

#include "measure/histogram.hpp"
#include "net/flow/pacer.hpp"

namespace doorbell::net {

struct SenderOptions {
  u16 run_tag = 0;
  u16 flow = 0;
  u32 payload_bytes = 8000;
  u32 batch = 64;  ///< packets handed over at a time
  u64 first_sequence = 0;
  u64 seed = 1;
  Fill fill = Fill::bytes;
  bool data_crc = true;
};

struct SendCounts {
  u64 sent = 0;     ///< packets that the queue has accepted
  u64 skipped = 0;  ///< due since pace(), and never sent
};

/// One thread at a time; step() neither allocates nor blocks.
class Sender {
 public:
  /// Fills the slots: K templates of data and their CRCs.
  Sender(const SenderOptions& options, TxQueue& queue);

  /// Fills them anew, by another seed. Every packet must be completed.
  void fill(u64 seed);
  void pace(double packets_per_s, u64 now_ns) { pacer_ = Pacer(packets_per_s, now_ns), last_burst_ns_ = 0; }
  /// Sends what is due `now_ns`, at most a batch, and no more than `limit` packets since the sender was made.
  /// Returns how many.
  u32 step(u64 limit, u64 now_ns);
  /// Packets that have been written but not accepted: they go first, as they are.
  [[nodiscard]] bool pending() const { return prepared_ > counts_.sent; }

  [[nodiscard]] TxQueue& queue() { return queue_; }
  [[nodiscard]] const Pacer& pacer() const { return pacer_; }
  [[nodiscard]] const SendCounts& counts() const { return counts_; }
  /// Packets accepted so far; any thread may read it.
  [[nodiscard]] u64 sent() const { return sent_.load(std::memory_order_acquire); }
  /// Nanoseconds between two bursts, divided by the packets of the first: the gap that was achieved.
  [[nodiscard]] measure::Histogram& gaps() { return gaps_; }
  [[nodiscard]] u64 payload_bytes() const { return o_.payload_bytes; }

 private:
  /// Writes the headers of the packets up to `end`.
  void write(u64 end, u64 now_ns);

  SenderOptions o_;
  TxQueue& queue_;
  TxSlots slots_;
  std::vector<u32> data_crcs_;
  Pacer pacer_{0, 0};
  u64 prepared_ = 0;
  u64 last_burst_ns_ = 0;
  u32 last_burst_ = 0;
  SendCounts counts_;
  measure::Histogram gaps_;
  alignas(64) std::atomic<u64> sent_{0};
};

}  // namespace doorbell::net
