// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The rules by which a model controller treats one command, a doorbell's value, and a completion. Its threads
// on a CPU and its kernel on a GPU share them. Pure functions.
#pragma once

#include <doorbell/nvme/wire.hpp>

#include "model/fault_draw.hpp"

namespace doorbell::nvme {

/// The namespace, and the largest transfer: 4 KiB << mdts; 0: no limit.
struct NamespaceShape {
  u64 blocks = 0;
  u32 lba_bytes = 512;
  u32 mdts = 0;

  [[nodiscard]] DOORBELL_INLINE bool holds(u64 lba, u64 n) const { return lba < blocks && n <= blocks - lba; }
};

inline constexpr u64 kModelPage = 4096;

/// A command whose fields have been checked. Its data has not been touched.
struct CheckedCommand {
  u16 status = status::success;
  bool transfers = false;  ///< the fields below are set; else a flush
  u32 blocks = 0;
  u64 lba = 0;
  u64 bytes = 0;
};

DOORBELL_INLINE CheckedCommand check_command(const Sqe& e, const NamespaceShape& ns) {
  if (e.flags != 0) return {.status = status::invalid_field};  // no fused commands, no SGLs
  const auto op = static_cast<IoOpcode>(e.opcode);
  if (op == IoOpcode::flush)
    return {.status = e.nsid == 1 || e.nsid == kAllNamespaces ? status::success : status::invalid_namespace};
  if (op != IoOpcode::read && op != IoOpcode::write && op != IoOpcode::compare &&
      op != IoOpcode::write_zeroes)
    return {.status = status::invalid_opcode};
  if (e.nsid != 1) return {.status = status::invalid_namespace};
  CheckedCommand c;
  c.transfers = true;
  c.blocks = blocks_of(e);
  c.lba = lba_of(e);
  c.bytes = u64{c.blocks} * ns.lba_bytes;
  if (op != IoOpcode::write_zeroes && ns.mdts != 0 && c.bytes > (kModelPage << ns.mdts))
    c.status = status::invalid_field;
  else if (!ns.holds(c.lba, c.blocks)) c.status = status::lba_out_of_range;
  return c;
}

DOORBELL_INLINE model::Direction direction_of(const Sqe& e) {
  const auto op = static_cast<IoOpcode>(e.opcode);
  return op == IoOpcode::read    ? model::Direction::to_host
         : op == IoOpcode::write ? model::Direction::to_device
                                 : model::Direction::none;
}
/// The status of model::Fault::error.
DOORBELL_INLINE u16 injected_status(const Sqe& e) {
  return static_cast<IoOpcode>(e.opcode) == IoOpcode::read ? status::unrecovered_read : status::write_fault;
}

/// A completion without its phase tag. `st` is a status type and code.
DOORBELL_INLINE Cqe completion_of(u16 cid, u16 sq_id, u32 sq_head, u16 st) {
  Cqe c;
  c.sq_head = static_cast<u16>(sq_head);
  c.sq_id = sq_id;
  c.cid = cid;
  const u16 field = st == status::success ? u16{0} : static_cast<u16>(st | kDoNotRetry);
  c.status = static_cast<u16>(field << 1);
  return c;
}
/// The same for a command that the controller ended: it may be sent again.
DOORBELL_INLINE Cqe aborted_completion(u16 cid, u16 sq_id, u32 sq_head, u16 st) {
  Cqe c = completion_of(cid, sq_id, sq_head, status::success);
  c.status = static_cast<u16>(st << 1);
  return c;
}

/// From `from` forwards to `to` in a ring of `entries`; both below `entries`.
DOORBELL_INLINE u32 ring_distance(u32 from, u32 to, u32 entries) {
  return to >= from ? to - from : to + entries - from;
}
/// `n` <= `entries` further on from `at`.
DOORBELL_INLINE u32 ring_after(u32 at, u32 n, u32 entries) {
  return at + n >= entries ? at + n - entries : at + n;
}

/// A submission queue's ring as its controller knows it. Members of a ring have no initialisers, because a
/// kernel's memory is not constructed.
struct SqRing {
  u64 fetched;  ///< commands fetched since creation, and serial of the next one
  u32 entries;
  u32 head;
  u32 tail;       ///< last valid value from the host
  u32 last_rung;  ///< last value seen, valid or not
  u16 qid;

  [[nodiscard]] DOORBELL_INLINE u32 announced() const { return ring_distance(head, tail, entries); }
  /// Takes the tail that the host has rung: it may announce as many entries as there is room for. False,
  /// once, for a value that it may not ring.
  [[nodiscard]] DOORBELL_INLINE bool take_tail(u32 rung) {
    if (rung == tail || rung == last_rung) return true;
    last_rung = rung;
    if (rung >= entries || ring_distance(tail, rung, entries) > entries - 1 - announced()) return false;
    tail = rung;
    return true;
  }
};

/// The same of a completion queue.
struct CqRing {
  Word16* ring;  ///< null where the controller cannot reach it itself
  const u32* head_word;
  u32 entries;
  u32 tail;
  u32 phase;
  u32 head;       ///< last valid value from the host
  u32 last_rung;  ///< last value seen, valid or not
  u32 bar;        ///< 1: `head_word` is a register of the BAR, which the admin queue's thread looks at too

  /// Entries that may be written as far as the head is known.
  [[nodiscard]] DOORBELL_INLINE u32 free() const { return entries - 1 - ring_distance(head, tail, entries); }
  /// Takes the head that the host has rung: it may give back entries that it holds. False, once, for a value
  /// that is to be reported. The admin queue's thread reports those that are no index.
  [[nodiscard]] DOORBELL_INLINE bool take_head(u32 rung) {
    if (rung == last_rung) return true;
    last_rung = rung;
    if (rung >= entries) return bar != 0;
    if (ring_distance(head, rung, entries) > ring_distance(head, tail, entries)) return false;
    head = rung;
    return true;
  }
  DOORBELL_INLINE void advance(u32 n) {
    const u32 at = ring_after(tail, n, entries);
    if (at < tail) phase ^= 1;
    tail = at;
  }
  /// An entry with the phase tag that the next one has.
  [[nodiscard]] DOORBELL_INLINE Word16 next(Cqe c) const {
    c.status = static_cast<u16>((c.status & ~1u) | phase);
    return encode_cqe(c);
  }
  /// The caller has seen that there is room.
  DOORBELL_INLINE void post(const Cqe& c) {
    store16_release(ring + tail, next(c));
    advance(1);
  }
};

}  // namespace doorbell::nvme
