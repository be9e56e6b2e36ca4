// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A receive queue: polls the device queues that its flows arrive at, and hands out what it finds where it
// lies.
#pragma once

#include <doorbell/net/queue.hpp>

#include <memory>
#include <vector>

#include "net/dpdk/plugin/port.hpp"

namespace doorbell::net::dpdk {

struct RxConfig {
  std::vector<u16> device_queues;
  u16 number = 0;      ///< of this receive queue in the stream
  u16 first_port = 0;  ///< UDP ports of the stream's flows
  u32 flows = 1;
  u32 max_payload = 0;
  bool split = false;
  Encapsulation encapsulation = Encapsulation::udp4;
  bool counts_port = false;  ///< reports the drops of the port, which one queue does
  bool drops_all = false;    ///< what is sent never arrives
  bool can_end = false;      ///< the other end is a process that may end
  bool own_buffers = false;  ///< every frame of one buffer lies in one of the queue's, whole and unshared
  u32 burst = 64;
};

class DpdkRxQueue final : public RxQueue {
 public:
  /// `whole` are buffers for frames that come in several; null where that cannot be.
  DpdkRxQueue(Port& port, RxConfig config, std::unique_ptr<Pool> buffers, std::unique_ptr<Pool> data,
              std::unique_ptr<Pool> whole);

  u32 receive(Burst& burst) override;
  void release(Burst& burst) override;
  void wait(u64 limit_ns) override;
  [[nodiscard]] bool ended() override;
  [[nodiscard]] Drops drops() override;
  [[nodiscard]] u64 unmatched() override { return unmatched_; }

  [[nodiscard]] u64 joined() const { return joined_; }
  [[nodiscard]] u32 buffers() const { return buffers_->count(); }

 private:
  u32 poll(u32 most);
  /// Describes the packet in `m` as entry `i`; false when it is none of the stream's.
  bool describe(rte_mbuf* m, Burst& burst, u32 i);
  [[nodiscard]] bool is_ours(const raw::Decoded& d) const;
  /// A frame of several buffers in one; null when there is none free. Gives the old ones back.
  rte_mbuf* join(rte_mbuf* m);
  void read_socket_drops();

  Port& port_;
  RxConfig config_;
  u32 header_bytes_;
  std::unique_ptr<Pool> buffers_, data_, whole_;
  std::vector<rte_mbuf*> found_;
  raw::Decoder decoder_;
  bool last_is_ours_ = false;  ///< what the decoder has decoded last
  std::size_t next_queue_ = 0;
  bool was_up_ = false;
  u64 unmatched_ = 0, joined_ = 0, no_whole_ = 0, socket_drops_ = 0;
  rte_eth_stats at_start_{};
};

}  // namespace doorbell::net::dpdk
