// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A queue pair inside the NIC: its state, its rings, and the progress of its oldest request.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <vector>

#include "rdma/model/rings.hpp"
#include "rdma/nic.hpp"

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

/// A completion that waits for its time or for older completions.
struct LateCompletion {
  u64 due_ns = 0;
  bool ends_read = false;  ///< of a read or atomic; until then it counts against max_rd_atomic
  bool silent = false;     ///< writes no CQE: it only marks the end of a read
  CqeFields fields;
};

/// One engine at a time owns a Qp, and only that engine uses it. Any thread may read `state`.
struct Qp {
  u32 qpn = 0;
  u32 ordinal = 0;  ///< position among the device's queue pairs, so that faults can be repeated
  std::atomic<QpState> state{QpState::reset};
  ConnectionOptions options;
  u32 mtu = 1024;
  bool signal_all = false;
  u32 remote_qpn = 0;  ///< 0: not connected
  Qp* peer = nullptr;  ///< the connected queue pair, if this engine serves it

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
  bool gpu_copies = false;      ///< this round's copies of this queue pair wait for commit()
  bool flush_reported = false;  ///< for formats that report a flush once: it has been reported
  std::deque<LateCompletion> late, late_receives;

  // WQEs fetched from rings in GPU memory, in ring order.
  std::vector<Word16> staged;
  std::vector<Word16> staged_receives;
  u32 staged_units = 0;
  u32 receives_left = 0;  ///< in staged_receives
  u32 receives_taken = 0;

  [[nodiscard]] QpState now() const { return state.load(std::memory_order_relaxed); }
  void enter(QpState s) { state.store(s, std::memory_order_release); }
  /// True if the responder's side works.
  [[nodiscard]] bool answers() const {
    const QpState s = now();
    return s == QpState::rtr || s == QpState::rts || s == QpState::sqd;
  }
  /// Clears all fields of the oldest request; the next request becomes the oldest.
  void next_request() {
    wait_until_ns = 0;
    rnr_tries = retries = packets_through = 0;
    executed = started = resend = false;
  }
};

}  // namespace doorbell::rdma
