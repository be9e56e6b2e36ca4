// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A queue pair that a CPU thread drives in bursts, whatever its format is: one indirect call a burst. For
// paths that carry messages (network streams); loops of one-sided operations have the queue as a template
// parameter.
//
// Thread rule: one thread uses a BurstQueue, and nothing else uses its queue pair's rings meanwhile.
#pragma once

#include <doorbell/rdma/types.hpp>
#include <doorbell/warp.hpp>

#include <memory>
#include <span>

namespace doorbell::rdma {

class BurstQueue {
 public:
  /// A request or receive that has ended.
  struct Ended {
    Status status = Status::ok;
    u32 bytes = 0;     ///< that a receive got
    u32 serial = 0;    ///< requests (receives) ended up to and including this one, modulo 2^32
    bool all = false;  ///< not one: everything outstanding was flushed
  };
  /// Completions that no correct device writes.
  struct Odd {
    u32 duplicated = 0;
    u32 skipped = 0;
    u32 protocol = 0;
  };

  virtual ~BurstQueue() = default;
  /// Posts the requests and rings one doorbell. They fit, and all are of the same kind.
  virtual void post(std::span<const WorkRequest> requests) = 0;
  /// Takes completions of requests, at most out.size().
  [[nodiscard]] virtual u32 poll(std::span<Ended> out) = 0;
  /// Posts the receives, at most kMostReceives, and rings one doorbell. They fit.
  virtual void post_receives(std::span<const ReceiveRequest> receives) = 0;
  [[nodiscard]] virtual u32 poll_receives(std::span<Ended> out) = 0;
  [[nodiscard]] virtual Odd odd() const = 0;

  static constexpr u32 kMostReceives = 256;
};

/// `Queue`: a QueuePair<OneLane, Format>, or a VerbsQueuePair.
template <class Queue>
class BurstQueueOf final : public BurstQueue {
 public:
  explicit BurstQueueOf(const typename Queue::State& state) : state_(state), queue_(state_) {}

  void post(std::span<const WorkRequest> requests) override {
    queue_.post(kLane, static_cast<u32>(requests.size()), [&](u32 i) { return requests[i]; });
    queue_.ring(kLane);
  }
  u32 poll(std::span<Ended> out) override {
    return take(out, [this] { return queue_.poll(kLane); });
  }
  void post_receives(std::span<const ReceiveRequest> receives) override {
    queue_.post_receives(kLane, static_cast<u32>(receives.size()), [&](u32 i) { return receives[i]; });
    queue_.ring_receives(kLane);
  }
  u32 poll_receives(std::span<Ended> out) override {
    return take(out, [this] { return queue_.poll_receives(kLane); });
  }
  [[nodiscard]] Odd odd() const override {
    return {queue_.duplicated(), queue_.skipped(), queue_.protocol()};
  }

 private:
  static constexpr OneLane kLane{};

  template <class Poll>
  static u32 take(std::span<Ended> out, Poll poll) {
    u32 n = 0;
    while (n < out.size()) {
      const auto polled = poll();
      if (polled.count == 0) break;
      const Completion& c = polled.mine;
      if (!c.ignore) out[n++] = {c.status, c.bytes, polled.serial, c.flush_all};
    }
    return n;
  }

  typename Queue::State state_;  // a QueuePair reads its memory's addresses there
  Queue queue_;
};

}  // namespace doorbell::rdma
