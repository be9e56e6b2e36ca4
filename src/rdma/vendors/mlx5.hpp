// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Where the model NIC finds an Mlx5 initiator's indices.
#pragma once

#include <doorbell/rdma/mlx5.hpp>

#include "rdma/model/rings.hpp"

namespace doorbell::rdma {

template <>
struct Indices<Mlx5> {
  static constexpr Counts kSend = Counts::bits16, kReceive = Counts::bits16, kConsumer = Counts::bits24;
  static constexpr bool kReceiveByRecord = true, kConsumerByRecord = true;
  static constexpr bool kFlushesEach = true;  ///< a CQE for every flushed request, not one for all
  DOORBELL_INLINE static u32 send(const u32* record, const DoorbellValue&, u32) {
    return be32(load_acquire(record + 1)) & 0xffff;
  }
  DOORBELL_INLINE static u32 receive(const u32* record, const DoorbellValue&, u32) {
    return be32(load_acquire(record)) & 0xffff;
  }
  DOORBELL_INLINE static u32 consumer(const u32* record, const DoorbellValue&, u32) {
    return be32(load_acquire(record)) & 0xffffff;
  }
  DOORBELL_INLINE static u32 named(const QueuePairMemory& m) { return m.qpn; }
  /// True if the index in the WQE is the one that comes next.
  DOORBELL_INLINE static bool claims(const DecodedWqe& d, const RingPosition& at) {
    return d.index == (at.running & 0xffff);
  }
};

}  // namespace doorbell::rdma
