// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The mbufs of a send queue: one for each slot, as long as the queue exists.
//
// They belong to a memory pool that nothing is ever taken from. A driver gives an mbuf back as to any pool,
// and the pool only notes that the slot may be written again: nobody allocates, attaches or counts
// references, and there is no locked instruction, behind which the copies that a driver has just made would
// have to arrive.
#pragma once

#include <rte_mbuf.h>

#include <atomic>
#include <span>

#include "net/dpdk/plugin.hpp"

namespace doorbell::net::dpdk {

class TxMbufs {
 public:
  /// Throws Error when there is no memory.
  explicit TxMbufs(u32 count);
  /// Call it when no port has any of them.
  ~TxMbufs();
  TxMbufs(const TxMbufs&) = delete;
  TxMbufs& operator=(const TxMbufs&) = delete;

  /// The mbuf of each slot, in order.
  [[nodiscard]] std::span<rte_mbuf* const> all() const { return all_; }
  /// Makes `slot` the `bytes` at `frame`. For all slots, before the first one is sent.
  void attach(u32 slot, u8* frame, rte_iova_t iova, u16 bytes);
  /// Whether the driver has given the slot back `times` times. The sender's thread; drivers, and the receiver
  /// of a ring, give slots back in theirs.
  [[nodiscard]] bool returned(u32 slot, u64 times) const {
    // Acquires what was read of the slot before it was given back: the sender writes it next.
    return returned_[slot].load(std::memory_order_acquire) == static_cast<u8>(times);
  }

 private:
  rte_mempool* pool_;
  rte_mbuf_ext_shared_info shared_{};  ///< DPDK wants one for memory that is not its own
  std::span<rte_mbuf* const> all_;
  const std::atomic<u8>* returned_ = nullptr;  ///< how often, modulo 256; written by whoever gives back
};

}  // namespace doorbell::net::dpdk
