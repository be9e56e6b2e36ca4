// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Where the model NIC finds an Ernic initiator's indices.
#pragma once

#include <doorbell/rdma/ernic.hpp>

#include "rdma/model/rings.hpp"

namespace doorbell::rdma {

template <>
struct Indices<Ernic> {
  static constexpr Counts kSend = Counts::two_turns, kReceive = Counts::two_turns,
                          kConsumer = Counts::two_turns;
  static constexpr bool kReceiveByRecord = false, kConsumerByRecord = true;
  static constexpr bool kFlushesEach = true;
  // The ring state: send tail, send head, receive tail, receive head. A CQ uses the second pair.
  DOORBELL_INLINE static u32 send(const u32* record, const DoorbellValue&, u32) {
    return load_acquire(record);
  }
  DOORBELL_INLINE static u32 receive(const u32* record, const DoorbellValue&, u32) {
    return load_acquire(record + 2);
  }
  DOORBELL_INLINE static u32 consumer(const u32* record, const DoorbellValue&, u32) {
    return load_acquire(record + 3);
  }
  DOORBELL_INLINE static u32 named(const QueuePairMemory& m) { return m.handle; }
  DOORBELL_INLINE static bool claims(const DecodedWqe&, const RingPosition&) { return true; }
};

}  // namespace doorbell::rdma
