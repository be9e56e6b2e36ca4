// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A queue pair: its state, its two halves, and its place in the engine's lists.
#pragma once

#include <atomic>
#include <mutex>

#include "rdma/roce/requester.hpp"
#include "rdma/roce/responder.hpp"

namespace doorbell::roce {

class NicEngine;

class ModelledQueuePair final : public QueuePair {
 public:
  ModelledQueuePair(NicEngine& nic, const QueuePairOptions& options, u32 number);
  ~ModelledQueuePair() override;

  [[nodiscard]] u32 number() const override { return c_.number; }
  Errno modify(const QueuePairAttributes& attributes, u32 bits) override;
  [[nodiscard]] QueuePairAttributes attributes() const override;
  [[nodiscard]] State state() const override { return state_.load(std::memory_order_acquire); }
  Errno post(const SendRequest& request, std::span<const Sge> sges) override;
  [[nodiscard]] u32 room() const override { return sends_.room(); }
  Errno post_receive(u64 id, std::span<const Sge> sges) override;
  void fail(u64 id, Status status) override;
  [[nodiscard]] Counters counters() const override;

  // With the engine.
  void arrived(const Decoded& packet, const Endpoint& source);
  /// XRC: a shared receive queue ends.
  void forget(const SharedReceives& receives) { responder_.forget(receives); }
  /// Sends what is due. True when anything was done.
  bool advance();
  /// After advance(): there is more to do at once.
  [[nodiscard]] bool unfinished() const { return requester_.unfinished() || responder_.unfinished(); }
  /// After advance(): a path was full.
  [[nodiscard]] bool blocked() const { return requester_.blocked() || responder_.blocked(); }
  /// Of Clock::ran_ns; 0: no timer runs.
  [[nodiscard]] u64 deadline() const { return requester_.deadline(); }
  void expire();
  [[nodiscard]] const Counters& counted() const { return c_.counters; }

  // Of the engine's lists.
  std::atomic<bool> rung{false};  ///< in the list of those that a program has posted to
  ModelledQueuePair* next_rung = nullptr;
  bool active = false;
  bool timed = false;

 private:
  [[nodiscard]] QueuePairAttributes merged(const QueuePairAttributes& attributes, u32 bits, State to) const;
  [[nodiscard]] bool sensible(const QueuePairAttributes& attributes, u32 bits) const;
  void enter(State state);
  void enter_error();
  void forget_completions();
  void settle();

  NicEngine& nic_;
  Connection c_;
  std::atomic<State> state_{State::reset};
  const u32 inline_bytes_;
  SendQueue sends_;
  ReceiveQueue receives_;
  SharedReceives* shared_;
  Requester requester_;
  Responder responder_;
  std::atomic<bool> may_read_{false};  ///< READs and atomics as requester, for post()
  bool drain_told_ = true;
  bool established_told_ = false;
};

}  // namespace doorbell::roce
