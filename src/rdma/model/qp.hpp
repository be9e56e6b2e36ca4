// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A queue pair inside the NIC: its state, its rings, and the progress of its oldest request.
#pragma once

#include <doorbell/rdma/types.hpp>

#include <string_view>

#include "rdma/model/late_ring.hpp"
#include "rdma/model/rings.hpp"

namespace doorbell::rdma {

/// True if the verbs allow this change of an RC queue pair's state.
[[nodiscard]] constexpr bool legal(QpState from, QpState to) {
  if (to == QpState::reset || to == QpState::error) return true;
  switch (from) {
    case QpState::reset:
      return to == QpState::init;
    case QpState::init:
      return to == QpState::init || to == QpState::rtr;
    case QpState::rtr:
      return to == QpState::rts;
    case QpState::rts:
      return to == QpState::rts || to == QpState::sqd;
    case QpState::sqd:
      return to == QpState::rts || to == QpState::sqd;
    case QpState::sqe:
      return to == QpState::rts;
    case QpState::error:
      return false;
  }
  return false;
}
[[nodiscard]] std::string_view name(QpState s);

/// One engine at a time owns a Qp, and only that engine uses it. Plain data: an engine in a kernel works on a
/// copy. Pointers are addresses that the engine can use.
struct Qp {
  static constexpr u32 kNoPeer = ~0u;

  u32 qpn = 0;
  u32 ordinal = 0;  ///< position among the device's queue pairs, so that faults can be repeated
  QpState state = QpState::reset;
  u32* shown_state = nullptr;  ///< the same where any thread of the CPU can read it
  ConnectionOptions options;
  u32 mtu = 1024;
  bool signal_all = false;
  u32 remote_qpn = 0;  ///< 0: not connected
  u32 peer = kNoPeer;  ///< the connected queue pair's place in this engine, if it is there

  WorkRing sq, rq;
  CompletionRing cq, recv_cq;
  QueuePairMemory device_memory;  ///< the rings in the NIC's own addresses

  // The oldest request, until it has ended.
  u64 wait_until_ns = 0;  ///< 0: continue now; ~0: never continue
  u32 rnr_tries = 0;
  u32 retries = 0;
  u32 packets_through = 0;
  bool executed = false;  ///< done at the responder, but the acknowledgement was lost
  bool started = false;   ///< the request has begun: it ends before a drain ends
  bool resend = false;    ///< the next try is a retransmission
  u64 held_serial = ~u64{0};
  u64 serial = 0;  ///< requests taken since creation
  u64 packets_drawn = 0;

  u32 reads_outstanding = 0;
  u32 burst_units = 1;          ///< of the last request that several lanes looked at
  bool gpu_copies = false;      ///< this round's copies of this queue pair wait for commit()
  bool flush_reported = false;  ///< for formats that report a flush once: it has been reported
  LateRing late, late_receives;

  // WQEs fetched from rings in GPU memory, in ring order. Its creator owns the memory.
  Word16* staged = nullptr;
  Word16* staged_receives = nullptr;
  u32 staged_units = 0;
  u32 receives_left = 0;  ///< in staged_receives
  u32 receives_taken = 0;

  DOORBELL_INLINE void enter(QpState s) {
    state = s;
    if (shown_state != nullptr) store_release(shown_state, static_cast<u32>(s));
  }
  /// True if the responder's side works.
  [[nodiscard]] DOORBELL_INLINE bool answers() const {
    return state == QpState::rtr || state == QpState::rts || state == QpState::sqd;
  }
  /// True if a request may end now: its completion finds room, and its peer's.
  [[nodiscard]] DOORBELL_INLINE bool has_room() const { return !late.full() && !late_receives.full(); }
  /// Clears all fields of the oldest request; the next request becomes the oldest.
  DOORBELL_INLINE void next_request() {
    wait_until_ns = 0;
    rnr_tries = retries = packets_through = 0;
    executed = started = resend = false;
  }
};

}  // namespace doorbell::rdma
