// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The sending half of a queue pair: requests become packets, answers become completions, and what is lost is
// sent again from the oldest packet that nobody has acknowledged. Source: InfiniBand Architecture
// Specification, volume 1, 9.7 (RC and XRC), 9.8 (UC and UD). Used by whoever has the engine.
#pragma once

#include "rdma/roce/connection.hpp"
#include "rdma/roce/send_queue.hpp"

namespace doorbell::roce {

class Requester {
 public:
  /// Packets of one queue pair in a round; then others have their turn.
  static constexpr u32 kTurn = 64;
  /// Where no acknowledgement is overdue without a reason: on a path that loses nothing, a peer that answers
  /// late is busy, and sending again makes it later. Timeouts are not shorter than this there.
  static constexpr u64 kPatienceNs = 1'000'000'000;
  /// Where packets are lost, an answer that is late by several round trips and by so much is asked for again,
  /// before the time-out: a lost acknowledgement costs that, and no retry. Each probe waits twice as long as
  /// the last.
  static constexpr u64 kLeastProbeNs = 5'000'000;
  /// Packets of one part of a READ where packets are lost.
  static constexpr u32 kReadPart = 16;

  Requester(Connection& connection, SendQueue& queue) : c_(connection), queue_(queue) {}

  /// Begins at the PSN of the attributes; all requests have been cleared.
  void reset();
  /// Sends what may be sent. True when anything was done.
  bool send();
  /// After send(): it stopped because its turn was over, or because the path was full.
  [[nodiscard]] bool unfinished() const { return unfinished_; }
  [[nodiscard]] bool blocked() const { return blocked_; }
  /// Requests wait, or packets for their acknowledgements.
  [[nodiscard]] bool idle() const { return queue_.oldest() == queue_.posted(); }
  /// Nothing that has begun is still unfinished.
  [[nodiscard]] bool drained();

  /// A packet that answers a request.
  void answered(const Decoded& packet);

  /// When expire() is due, of Clock::ran_ns; 0: never.
  [[nodiscard]] u64 deadline() const { return probe_at_ != 0 ? probe_at_ : deadline_; }
  void expire();

  /// Completes all requests as flushed.
  void flush();

 private:
  enum class Step : u8 { sent, done, wait, full };
  Step step();
  bool begin(SendSlot& slot);
  bool held_by_fault(SendSlot& slot);
  Step send_message_packet(SendSlot& slot);
  Step send_read(SendSlot& slot);
  Step send_atomic(SendSlot& slot);
  Step send_datagram(SendSlot& slot);
  bool fill(SendSlot& slot, u64 offset, std::size_t bytes, u8* to);
  void packet_sent(SendSlot& slot, u32 packets, u64 payload);
  void question_sent(SendSlot& slot, u32 packets, u64 payload = 0);
  Headers headers(const SendRequest& request) const;

  void acknowledge(const Headers& headers);
  void negative(const Headers& headers);
  void read_response(const Decoded& packet);
  void atomic_response(const Headers& headers);
  bool acknowledge_before(u32 psn);
  void progress();
  void restart_timer();
  /// Of Clock::ran_ns, 0: none; no probe comes before it.
  void set_deadline(u64 at) {
    deadline_ = at;
    probe_at_ = 0;
  }
  void set_probe();
  void probe();
  void measure_round_trip();
  void retire();
  void finish(SendSlot& slot, Status status);
  [[nodiscard]] bool wants(const SendSlot& slot, Status status) const;
  void injected(const SendSlot& slot);
  void fail_oldest(Status status);
  void retry(u32 psn);
  void implied_loss();
  void go_back(u32 psn);
  [[nodiscard]] bool in_flight(u32 psn) const;
  [[nodiscard]] u32 room_in_window() const;
  [[nodiscard]] u64 patience() const;

  Connection& c_;
  SendQueue& queue_;

  u32 oldest_psn_ = 0;  ///< the first that is not acknowledged
  u32 next_psn_ = 0;    ///< the next to be sent
  u32 end_psn_ = 0;     ///< behind all that were ever sent
  u64 current_ = 0;     ///< the request that next_psn_ belongs to
  u32 packet_ = 0;      ///< the packet of it
  u32 reads_ = 0;       ///< READs and atomics in flight
  u32 since_asked_ = 0;
  u32 window_ = 32;  ///< packets in flight, where paths lose; grows and shrinks as TCP's
  u32 window_credit_ = 0;
  u32 retries_ = 0, rnr_retries_ = 0;  ///< used since the last progress
  u64 deadline_ = 0;
  u64 probe_at_ = 0;  ///< before deadline_, or 0
  u32 probes_ = 0;    ///< since the last progress
  u32 timed_psn_ = 0;
  u64 timed_at_ = 0;  ///< when the packet before timed_psn_ left, if timed_
  u64 round_trip_ns_ = 0;
  bool waits_for_receiver_ = false;  ///< until deadline_, because the peer had no receive
  bool holds_ = false;               ///< until deadline_, a request that was completed early
  bool timed_ = false;               ///< a packet, for the round trip
  bool recovering_ = false;          ///< an answer that did not come has been asked for again
  bool unfinished_ = false, blocked_ = false;
  bool lossless_ = false;  ///< the path, as of the last send()

  Path* datagram_path_ = nullptr;  ///< UD: of the last datagram
};

}  // namespace doorbell::roce
