// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Where the model NIC finds a Bnxt initiator's indices.
#pragma once

#include <doorbell/rdma/bnxt.hpp>

#include "rdma/model/rings.hpp"

namespace doorbell::rdma {

template <>
struct Indices<Bnxt> {
  static constexpr Counts kSend = Counts::two_turns, kReceive = Counts::two_turns,
                          kConsumer = Counts::two_turns;
  static constexpr bool kReceiveByRecord = false, kConsumerByRecord = false;
  static constexpr bool kFlushesEach = false;
  DOORBELL_INLINE static u32 send(const u32*, const DoorbellValue& v, u32 entries) {
    return v.index < entries ? v.epoch * entries + v.index : kNoIndex;
  }
  DOORBELL_INLINE static u32 receive(const u32* record, const DoorbellValue& v, u32 entries) {
    return send(record, v, entries);
  }
  DOORBELL_INLINE static u32 consumer(const u32* record, const DoorbellValue& v, u32 entries) {
    return send(record, v, entries);
  }
  DOORBELL_INLINE static u32 named(const QueuePairMemory& m) { return m.qpn; }
  DOORBELL_INLINE static bool claims(const DecodedWqe&, const RingPosition&) { return true; }
};

}  // namespace doorbell::rdma
