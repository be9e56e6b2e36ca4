// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Engine: atomic operations. A kernel's engine has none: Parts::kAtomics.
#pragma once

#include "cxi/atomics.hpp"
#include "cxi/model/engine.hpp"

namespace doorbell::cxi {

/// An atomic command whose operands are in memory. False if it is another command.
template <class Parts>
DOORBELL_HD bool Engine<Parts>::is_dma_atomic(WorkQueue& q, const u64* words, ReturnCode& code) {
  DmaAtomic dma;
  if (!Parts::kAtomics || !decode(words, dma)) return false;
  AtomicOperation amo;
  amo.atomic = dma.atomic;
  amo.first_at = dma.local_addr;
  amo.old_at = dma.local_write_addr;
  amo.old_lac = dma.write_lac;
  amo.fetching = dma.fetching;
  Operation op;
  op.fields = &dma;
  op.atomic = &amo;
  op.opcode = dma.fetching ? Opcode::fetching_atomic : Opcode::atomic;
  op.bytes = atomic_bytes(dma.atomic.type);
  op.user_ptr = dma.user_ptr;
  op.initiator = dma.initiator;
  op.match_bits = dma.match_bits;
  op.header_data = dma.header_data;
  code = op.bytes == 0 || dma.request_len != op.bytes ? ReturnCode::cmd_invalid_arg : operate(q, op);
  return true;
}

/// The same with the operands in the command, after a C_STATE.
template <class Parts>
DOORBELL_HD bool Engine<Parts>::is_idc_atomic(WorkQueue& q, const u64* words, ReturnCode& code) {
  AtomicOperation amo;
  IdcHead head;
  u64 old_at = 0;
  u32 length = 0;
  if (!Parts::kAtomics) return false;
  // The command's size first: behind a short one the initiator writes the next.
  const CommandHeader h = header_of(words[0]);
  if (IdcAtomic large; h.size_code == 1 && decode(words, large)) {
    amo.atomic = large.atomic;
    amo.fetching = large.fetching;
    head = large;
    old_at = large.local_addr;
    length = 64;
  } else if (SmallAtomic small; h.size_code == 0 && decode(words, small)) {
    amo.atomic = small.atomic;
    head = small;
    length = 32;
  } else {
    return false;
  }
  amo.in_command = true;
  amo.old_at = old_at;
  amo.old_lac = q.cstate.write_lac;
  DmaFields fields = fields_of(q.cstate);
  fields.dfa = head.dfa;
  fields.remote_offset = head.remote_offset;
  fields.request_len = atomic_bytes(amo.atomic.type);
  Operation op;
  op.fields = &fields;
  op.atomic = &amo;
  op.opcode = amo.fetching ? Opcode::fetching_atomic : Opcode::atomic;
  op.bytes = fields.request_len;
  op.user_ptr = q.cstate.user_ptr;
  op.initiator = q.cstate.initiator;
  code =
      !q.has_cstate || op.bytes == 0 || head.length != length ? ReturnCode::cmd_invalid_arg : operate(q, op);
  return true;
}

/// The operation itself, when the portals entry and its buffer are found.
template <class Parts>
DOORBELL_GPU_NOINLINE typename Engine<Parts>::Result Engine<Parts>::carry_out(WorkQueue& q,
                                                                              const Operation& op,
                                                                              const ListEntry& entry) {
  if constexpr (Parts::kAtomics) {
    const AtomicOperation& amo = *op.atomic;
    if (!is_atomic(amo.atomic)) return {ReturnCode::amo_inval_op_error, true};
    // The bytes of a put before it are there.
    if (!settle()) return {ReturnCode::undeliverable, false};
    ReturnCode code = ReturnCode::ok;
    const auto host = [&](u32 lac, u64 at, Access want) -> u8* {
      const u32 memory = find(q.owner, lac, at, op.bytes, want, code);
      if (memory == kNobody) return nullptr;
      const model::DmaPlace place = parts_.objects.memories[memory].at(at);
      if (place.gpu) code = ReturnCode::pcie_unsuccess_cmpl;  // a GPU's memory is reached by copies only
      return place.gpu ? nullptr : place.address;
    };
    Atomic a = amo.atomic;
    if (!amo.in_command) {
      const u8* const from = host(op.fields->lac, amo.first_at, Access::read);
      if (from == nullptr) return {code, false};
      std::memcpy(a.first, from, op.bytes);
    }
    u8* old_to = nullptr;
    if (amo.fetching && (old_to = host(amo.old_lac, amo.old_at, Access::write)) == nullptr)
      return {code, false};
    const MappedMemory& target = parts_.objects.memories[entry.memory];
    const model::DmaPlace at = target.at(entry.append.start + op.fields->remote_offset);
    if (at.gpu) return {ReturnCode::pcie_unsuccess_cmpl, true};
    if (reinterpret_cast<u64>(at.address) % op.bytes != 0) return {ReturnCode::amo_align_error, true};
    u8 old[16];
    apply_atomic(a, at.address, old);
    if (old_to != nullptr) std::memcpy(old_to, old, op.bytes);
    return {};
  } else {
    return {ReturnCode::amo_inval_op_error, true};
  }
}

}  // namespace doorbell::cxi
