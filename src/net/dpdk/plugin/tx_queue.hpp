// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A flow's send queue: its slots are whole frames, each of which an mbuf always points to.
#pragma once

#include <doorbell/net/queue.hpp>
#include <rte_memzone.h>

#include "net/dpdk/plugin/port.hpp"
#include "net/dpdk/plugin/tx_mbufs.hpp"

namespace doorbell::net::dpdk {

struct TxConfig {
  u16 queue = 0;  ///< of the port
  raw::FlowAddress address;
  u32 max_payload = 0;
  Place place = Place::pageable;  ///< of the slots
  bool in_dpdk_memory = false;    ///< hardware reads them
  bool driver_copies = false;     ///< and needs them no longer once it has accepted them
  bool frees_late = false;        ///< the driver gives buffers back only when it sends again
  bool can_break = false;         ///< the other end is a process that may end
};

class DpdkTxQueue final : public TxQueue {
 public:
  DpdkTxQueue(Port& port, const TxConfig& config, const OpenRequest& request);

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

  void allocate(const TxConfig& config, const OpenRequest& request);
  /// The slot's mbuf, as a packet of `bytes` payload.
  [[nodiscard]] rte_mbuf* prepare(u32 slot, u32 bytes);

  Port& port_;
  TxConfig config_;
  u32 header_bytes_;
  PluginMemory memory_;
  struct FreeZone {
    void operator()(const rte_memzone* zone) const { rte_memzone_free(zone); }
  };
  std::unique_ptr<const rte_memzone, FreeZone> zone_;  ///< outlives mbufs_
  rte_iova_t iova_ = RTE_BAD_IOVA;                     ///< of the first slot's begin
  TxSlots slots_;
  TxMbufs mbufs_;
  u64 accepted_ = 0;
  u64 completed_ = 0;
  u32 oldest_slot_ = 0;  ///< of the packet completed_,
  u64 lap_ = 0;          ///< how often it has been that of one before
};

}  // namespace doorbell::net::dpdk
