// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The sending end of a RoCE flow: SENDs in bursts with one doorbell, one in so many of which asks for a
// completion.
#pragma once

#include <functional>

#include "net/roce/connection.hpp"

namespace doorbell::net {

class RoceTx final : public TxQueue {
 public:
  RoceTx(rdma::NicDevice& nic, const RoceShape& shape);

  /// To be connected before begin().
  [[nodiscard]] rdma::QueuePairObject& queue_pair() { return *queue_pair_; }
  /// `broke` is called once when the connection has failed, by the thread that found it.
  void begin(rdma::NicDevice& nic, std::function<void()> broke);

  [[nodiscard]] TxSlots slots() const override;
  u32 send(u64 first, u32 count, u32 bytes) override;
  [[nodiscard]] u64 completed() override;
  void wait(u64 limit_ns) override { roce_pause(limit_ns); }
  [[nodiscard]] bool broken() override { return broken_; }
  /// Sends the flow's end, and is true when that has been acknowledged.
  [[nodiscard]] bool finish() override;

  // After a phase.
  [[nodiscard]] const Statuses& statuses() const { return statuses_; }
  [[nodiscard]] rdma::BurstQueue::Odd odd() const { return queue_->odd(); }
  [[nodiscard]] bool timed_out() const { return timed_out_; }
  [[nodiscard]] bool removed() const { return removed_; }

 private:
  [[nodiscard]] u32 in_flight() const { return static_cast<u32>(posted_ - completed_); }
  void collect();
  void failed(const rdma::BurstQueue::Ended& e);
  void missed();
  void break_off();

  RoceShape shape_;
  RoceMemory memory_;
  std::unique_ptr<rdma::QueuePairObject> queue_pair_;
  std::unique_ptr<rdma::BurstQueue> queue_;
  std::function<void()> broke_;
  std::vector<rdma::WorkRequest> requests_;
  std::vector<rdma::BurstQueue::Ended> ended_;
  IdleWatch watch_;
  u64 posted_ = 0;     ///< requests, the flow's end included
  u64 completed_ = 0;  ///< of these, known to be acknowledged
  u64 signalled_ = 0;  ///< requests up to the last one that asks for a completion
  bool end_posted_ = false;
  bool broken_ = false;
  bool timed_out_ = false;
  bool removed_ = false;
  Statuses statuses_;
};

}  // namespace doorbell::net
