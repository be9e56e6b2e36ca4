// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The contents of WQEs and CQEs in all RDMA wire formats, and where they lie, without the encoding.
#pragma once

#include <doorbell/rma/types.hpp>

namespace doorbell::rdma {

/// RDMA is one-sided operations with connections and wire formats added, so the names of namespace rma are
/// valid in namespace rdma.
using namespace doorbell::rma;

/// The position of a WQE. Rings count in the format's units: 64-byte blocks (mlx5), 16-byte slots (bnxt), or
/// whole entries (ionic, ernic).
struct RingPosition {
  /// Units since creation, modulo 2^32; with `units` a power of two, slot = running mod units.
  u32 running = 0;
  u32 slot = 0;    ///< 0..units-1
  u32 pass = 0;    ///< times that the ring has wrapped
  u32 units = 1;   ///< of the ring
  u32 serial = 0;  ///< requests before this one, modulo 2^32
  u32 psn = 0;     ///< packet sequence number of its first packet, 24 bits
};

/// The position `n` requests further on, each `units` ring units and `packets` packets long. `n * units`
/// is at most the ring's length.
[[nodiscard]] DOORBELL_INLINE RingPosition advance(RingPosition p, u32 n, u32 units, u32 packets) {
  p.running += n * units;
  p.slot += n * units;
  if (p.slot >= p.units) {
    p.slot -= p.units;
    ++p.pass;
  }
  p.serial += n;
  p.psn = (p.psn + n * packets) & 0xffffff;
  return p;
}

/// The number of packets of a message: one or more.
[[nodiscard]] DOORBELL_INLINE u32 packets_of(u32 bytes, u32 mtu) {
  return bytes <= mtu ? 1 : (bytes + mtu - 1) / mtu;
}

/// The meaning of Completion::mark.
enum class Mark {
  unit,    ///< ring position (RingPosition::running, 16 bits) of the completed WQE's first unit
  serial,  ///< requests up to and including the completed one, modulo the format's kMarkModulo or the ring
};

/// A WQE as the device's side reads it.
struct DecodedWqe {
  bool valid = false;   ///< false: an opcode or layout that the format does not know
  WorkRequest request;  ///< payload, bytes of one SGE: see below
  u32 units = 1;        ///< ring units that it takes
  u32 sges = 0;         ///< buffers in `sge`
  /// A local buffer of the request.
  struct Sge {
    u64 address = 0;  ///< IOVA
    u32 bytes = 0;    ///< never 0: empty buffers are left out
    u32 lkey = 0;     ///< of its memory
  };
  static constexpr u32 kMaxSges = 4;  ///< a WQE with more is not valid
  Sge sge[kMaxSges];                  ///< in the order in which they are filled
  u32 inline_part = 0;                ///< inlined: the 16-byte part of the WQE in which the payload begins
  u32 inline_offset = 0;              ///< inlined: bytes before the payload in that part
  u32 index = 0;                      ///< the position in the WQE itself, if the format has one
  bool owned = true;  ///< false: the format's ownership hint says that the WQE is not written yet
  u64 wr_id = 0;      ///< a value that the format returns in the CQE, if it has one
};

/// The fields that the device's side writes into a CQE.
struct CqeFields {
  Op op = Op::write;      ///< the operation that ended; in a receive's CQE the requester's
  Completion completion;  ///< what the initiator reads out of it
  u32 qpn = 0;            ///< of the queue pair whose CQE it is
  u32 source_qpn = 0;     ///< of the requester, in a receive's CQE
  u64 wr_id = 0;          ///< DecodedWqe::wr_id
  u64 qp_handle = 0;      ///< 0: the QPN is used instead
  u32 ring_units = 1;     ///< of the send queue, for formats whose marks wrap with it
};

/// A doorbell register's value, decoded.
struct DoorbellValue {
  /// Whose doorbell was rung.
  enum class Queue {
    send,         ///< a send queue's: requests were posted
    receive,      ///< a receive queue's: receives were posted
    completion,   ///< a CQ's: its consumer went on
    arm,          ///< a CQ's: asks for an interrupt, which doorbell never does
    by_register,  ///< not the value but its register shows the queue (ionic)
    unknown,      ///< no value of this format
  };
  Queue queue = Queue::unknown;  ///< of the queue that `id` names
  u32 id = 0;                    ///< QPN or CQN; ernic: the queue pair's handle
  u32 index = 0;                 ///< the new position, in the format's units; 0 if a record holds it
  u32 epoch = 0;                 ///< bnxt: the lowest bit of the ring's pass
};

/// Access flags of memory and queue pairs. Source: ibv_access_flags (libibverbs, verbs.h), with its numbers.
namespace access {
inline constexpr u32 local_write = 1, remote_write = 2, remote_read = 4, remote_atomic = 8;
inline constexpr u32 all = local_write | remote_write | remote_read | remote_atomic;
}  // namespace access

/// Queue pair states. Source: ibv_qp_state (libibverbs, verbs.h), with its numbers.
enum class QpState : u32 { reset = 0, init = 1, rtr = 2, rts = 3, sqd = 4, sqe = 5, error = 6 };

/// The parameters of a connection. Codes are those of the verbs attributes.
struct ConnectionOptions {
  u32 mtu = 0;               ///< 256..4096; 0: the smaller of the two ports' active MTUs
  u32 timeout = 14;          ///< acknowledgement time-out 4.096 us * 2^timeout; 0: none
  u32 retry_count = 7;       ///< 0..7
  u32 rnr_retry = 7;         ///< 0..7; 7: for ever
  u32 min_rnr_timer = 12;    ///< code 0..31; 12: 0.64 ms
  u32 max_rd_atomic = 16;    ///< outstanding reads and atomics as requester and as responder
  u32 access = access::all;  ///< of the peer's operations here: bits of namespace access
};

}  // namespace doorbell::rdma
