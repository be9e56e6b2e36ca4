// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Pools of DPDK's packet buffers (mbufs).
#pragma once

#include <rte_dev.h>
#include <rte_mbuf.h>

#include <memory>

#include "net/dpdk/plugin.hpp"

namespace doorbell::net::dpdk {

/// Buffers in front of the pool that each thread keeps for itself.
inline constexpr u32 kPoolCache = 256;

class Pool {
 public:
  /// Buffers of `data_bytes` in DPDK's own memory, which hardware reaches.
  static std::unique_ptr<Pool> in_dpdk_memory(u32 count, u32 data_bytes);
  /// Buffers of `data_bytes` in memory of the program. A frame's payload, behind kUdp4Bytes of headers, is
  /// aligned to 64 bytes.
  static std::unique_ptr<Pool> in_program_memory(u32 count, u32 data_bytes, Place place,
                                                 const OpenRequest& request);
  /// The same for hardware `port`, for which the memory is mapped; the frame's data begins at a buffer's
  /// begin.
  static std::unique_ptr<Pool> for_port(u32 count, u32 data_bytes, Place place, const OpenRequest& request,
                                        u16 port);
  /// Call it when no port uses the pool any more, and before the port's device is removed.
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  [[nodiscard]] rte_mempool* get() const { return pool_; }
  [[nodiscard]] u32 count() const { return pool_->size; }

 private:
  Pool() = default;
  rte_mempool* pool_ = nullptr;
  PluginMemory memory_;
  rte_device* device_ = nullptr;  ///< for which the memory is mapped
  u8* mapped_ = nullptr;
};

}  // namespace doorbell::net::dpdk
