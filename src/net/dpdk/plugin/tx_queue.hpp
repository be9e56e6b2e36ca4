// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A flow's send queue: its slots are whole frames, which are attached to mbufs and not copied.
#pragma once

#include <doorbell/net/queue.hpp>
#include <rte_memzone.h>

#include <array>
#include <atomic>
#include <memory>
#include <vector>

#include "net/dpdk/plugin/port.hpp"

namespace doorbell::net::dpdk {

struct TxConfig {
  u16 queue = 0;  ///< of the port
  raw::FlowAddress address;
  u32 max_payload = 0;
  Place place = Place::pageable;  ///< of the slots
  bool in_dpdk_memory = false;    ///< hardware reads them
  bool frees_late = false;        ///< the driver gives buffers back only when it sends again
  bool can_break = false;         ///< the other end is a process that may end
};

class DpdkTxQueue final : public TxQueue {
 public:
  DpdkTxQueue(Port& port, const TxConfig& config, const OpenRequest& request);
  ~DpdkTxQueue() override;
  DpdkTxQueue(const DpdkTxQueue&) = delete;
  DpdkTxQueue& operator=(const DpdkTxQueue&) = delete;

  [[nodiscard]] TxSlots slots() const override { return slots_; }
  u32 send(u64 first, u32 count, u32 bytes) override;
  [[nodiscard]] u64 completed() override;
  void wait(u64 limit_ns) override;
  [[nodiscard]] bool broken() override;
  [[nodiscard]] bool finish() override;

  [[nodiscard]] u64 accepted() const { return accepted_; }

 private:
  /// Packets that are handed to the driver in one call.
  static constexpr u32 kBurst = 64;

  /// What DPDK notes about a slot while an mbuf has it.
  struct Slot {
    rte_mbuf_ext_shared_info shared{};
    /// Set by whichever thread frees the mbuf; the sender then writes the slot again.
    std::atomic<bool> free{true};
    u32 payload_bytes = 0;  ///< what its headers say
  };

  void allocate(const TxConfig& config, const OpenRequest& request);
  /// Attaches slots to mbufs until `count` are prepared, or none is left.
  void prepare(u32 count);
  void set_length(rte_mbuf* m, u64 packet, u32 bytes);

  Port& port_;
  TxConfig config_;
  u32 header_bytes_;
  PluginMemory memory_;
  const rte_memzone* zone_ = nullptr;
  rte_iova_t iova_ = RTE_BAD_IOVA;  ///< of the first slot's begin
  TxSlots slots_;
  std::unique_ptr<Slot[]> states_;
  std::unique_ptr<Pool> pool_;
  /// mbufs of the packets from accepted_ on, which the driver has not taken yet.
  std::array<rte_mbuf*, kBurst> prepared_{};
  u32 prepared_count_ = 0;
  u64 accepted_ = 0;
  u64 completed_ = 0;
};

}  // namespace doorbell::net::dpdk
