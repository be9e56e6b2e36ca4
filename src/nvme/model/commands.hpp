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
  else if (c.lba >= ns.blocks || c.blocks > ns.blocks - c.lba) c.status = status::lba_out_of_range;
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
/// True if a host may ring this tail: it announces entries, and not more than there is room for.
DOORBELL_INLINE bool tail_allowed(u32 rung, u32 head, u32 tail, u32 entries) {
  return rung < entries &&
         ring_distance(tail, rung, entries) <= entries - 1 - ring_distance(head, tail, entries);
}
/// True if a host may ring this completion queue head: it gives back entries that it holds.
DOORBELL_INLINE bool head_allowed(u32 rung, u32 head, u32 tail, u32 entries) {
  return rung < entries && ring_distance(head, rung, entries) <= ring_distance(head, tail, entries);
}

}  // namespace doorbell::nvme
