// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A relay between the ends: takes packets from a stream's receive queue and passes them on, some of them
// lost, doubled, changed, late or in another order. Which packets these are depends only on the seed and the
// packet's place in the queue's order.
#pragma once

#include <doorbell/net/queue.hpp>
#include <doorbell/region.hpp>

#include <deque>
#include <memory>
#include <span>

#include "model/fault_injector.hpp"

namespace doorbell::net {

/// The faults that a relay gives packets: drop, delay, corrupt, misplace (it carries
/// another flow's number), duplicate, reorder (three younger packets go first).
[[nodiscard]] std::span<const model::Fault> relay_faults();
/// Throws Error for a kind of fault that no relay has, or none for packets in
/// such memory.
void check_relay(const model::FaultRates& rates, Place place);

struct RelayOptions {
  model::FaultRates rates;
  u64 seed = 1;
  u64 delay_ns = 20'000'000;
  u32 queue = 0;
  /// Of the stream's packets, and of those that it holds back: whoever reads the one reads the other. Of
  /// packets in GPU memory it holds none back.
  Place place = Place::pageable;
  std::shared_ptr<gpu::Gpu> gpu = nullptr;
};

class Relay final : public RxQueue {
 public:
  /// `largest`: payload bytes of the longest packet. Throws Error as check_relay().
  Relay(const RelayOptions& options, std::unique_ptr<RxQueue> from, u32 burst, u64 largest);

  u32 receive(Burst& burst) override;
  void release(Burst& burst) override;
  void wait(u64 limit_ns) override;
  [[nodiscard]] bool ended() override;
  [[nodiscard]] Drops drops() override;
  [[nodiscard]] u64 unmatched() override { return from_->unmatched(); }

  [[nodiscard]] const model::FaultInjector& injected() const { return injector_; }
  [[nodiscard]] RxQueue& from() { return *from_; }

 private:
  struct Held {
    u8* bytes = nullptr;  ///< in memory_
    u32 length = 0;
    u32 body_length = 0;
    u64 due_ns = 0;      ///< passed on at this time at the latest,
    u64 behind = ~0ull;  ///< or behind this packet
  };
  /// Draws the fault of packet i of in_ and carries it out.
  void apply(Burst& out, u32 i, u64 now);
  void pass(Burst& out, const Burst& in, u32 i);
  void pass_held(Burst& out, u64 now);
  [[nodiscard]] bool hold(const Burst& in, u32 i, u64 due_ns, u64 behind);

  RelayOptions o_;
  std::unique_ptr<RxQueue> from_;
  model::FaultInjector injector_;
  Burst in_;
  u64 largest_;
  u64 serial_ = 0;
  Region memory_;
  std::vector<Held> held_;  ///< a pool: `waiting_` and `passed_` are places in it
  std::vector<u32> free_;
  std::vector<u32> waiting_;
  std::vector<u32> passed_;
  u64 dropped_ = 0;
  bool took_ = false;  ///< in_ has packets that have not been released
};

}  // namespace doorbell::net
