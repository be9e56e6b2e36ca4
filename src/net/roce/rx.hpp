// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The receiving end of RoCE flows: buffers that were posted ahead, taken in bursts, posted again in their
// order.
//
// A CPU cannot read messages in GPU memory. Their bursts are split: `data` is a copy of the header in host
// memory, `body` the rest of the message where it arrived.
#pragma once

#include <doorbell/gpu.hpp>

#include "net/roce/connection.hpp"

namespace doorbell::net {

class RoceRx final : public RxQueue {
 public:
  RoceRx(rdma::NicDevice& nic, u16 number, const StreamRequest& request, const RoceShape& shape);

  /// Adds a flow: a queue pair with its buffers. It must be initialised, given to post(), and connected.
  rdma::QueuePairObject& add();
  /// Posts the receives of the flow that was added last.
  void post();

  u32 receive(Burst& burst) override;
  void release(Burst& burst) override;
  void wait(u64 limit_ns) override { roce_pause(limit_ns); }
  /// Every flow has ended, or its connection has failed.
  [[nodiscard]] bool ended() override { return open_ == 0; }
  /// None: a message without a receive waits for one ("receiver not ready").
  [[nodiscard]] Drops drops() override { return {}; }

  // After a phase.
  [[nodiscard]] const Statuses& statuses() const { return statuses_; }
  [[nodiscard]] rdma::BurstQueue::Odd odd() const;
  [[nodiscard]] u32 broken_flows() const { return broken_; }
  [[nodiscard]] bool removed() const { return removed_; }

 private:
  struct Flow {
    RoceMemory memory;
    Region headers;  ///< of messages in GPU memory, one for each buffer
    std::unique_ptr<rdma::QueuePairObject> queue_pair;
    std::unique_ptr<rdma::BurstQueue> queue;
    u8* base = nullptr;  ///< of the buffers, where the messages' reader reaches them
    u32 next = 0;        ///< the buffer of the next receive that completes
    bool open = true;
  };
  void take(u32 flow, Burst& burst);
  void add_message(u32 flow, u32 bytes, Burst& burst);
  void copy_headers(const Burst& burst);
  void close(Flow& flow, bool failed);
  void missed();
  void give_back(Flow& flow, u32 n);

  rdma::NicDevice& nic_;
  u16 number_;
  RoceShape shape_;
  Place place_;
  std::shared_ptr<gpu::Gpu> gpu_;
  std::vector<Flow> flows_;
  u32 first_ = 0;  ///< the flow that is looked at first, each in turn
  u32 open_ = 0;
  u32 broken_ = 0;
  bool removed_ = false;
  std::vector<rdma::BurstQueue::Ended> ended_;
  std::vector<rdma::ReceiveRequest> receives_;
  std::vector<gpu::Copy> copies_;
  IdleWatch watch_;
  Statuses statuses_;
};

}  // namespace doorbell::net
