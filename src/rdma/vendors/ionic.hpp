// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Where the model NIC finds an Ionic initiator's indices.
#pragma once

#include <doorbell/rdma/ionic.hpp>

#include "rdma/model/rings.hpp"

namespace doorbell::rdma {

template <>
struct Indices<Ionic> {
  static constexpr Counts kSend = Counts::slots, kReceive = Counts::slots, kConsumer = Counts::slots;
  static constexpr bool kReceiveByRecord = false, kConsumerByRecord = false;
  static constexpr bool kFlushesEach = false;
  DOORBELL_INLINE static u32 send(const u32*, const DoorbellValue& v, u32) { return v.index; }
  DOORBELL_INLINE static u32 receive(const u32*, const DoorbellValue& v, u32) { return v.index; }
  DOORBELL_INLINE static u32 consumer(const u32*, const DoorbellValue& v, u32) { return v.index; }
  DOORBELL_INLINE static u32 named(const QueuePairMemory& m) { return m.qpn; }
  DOORBELL_INLINE static bool claims(const DecodedWqe& d, const RingPosition& at) {
    return d.index == at.slot;
  }
};

}  // namespace doorbell::rdma
