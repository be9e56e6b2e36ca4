// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Engine: matching portals entries. An operation goes to the first memory whose match bits and match id are
// its own, of the priority list, else of the overflow list, which keeps the message until memory of the
// priority list matches it. A kernel's engine has none of this: Parts::kMatching.
#pragma once

#include "cxi/model/engine.hpp"
#include "cxi/model/matching.hpp"

namespace doorbell::cxi {

// --- what comes ------------------------------------------------------------------------------------------

/// Finds the memory that takes the message.
template <class Parts>
DOORBELL_GPU_NOINLINE Match Engine<Parts>::search(const TableEntry& pte, const Message& m, u32 permission) {
  Match found;
  for (const PortalsList list : {PortalsList::priority, PortalsList::overflow}) {
    found.list = list;
    found.before = kNobody;
    for (u32 place = pte.lists[static_cast<u32>(list)].first; place != kNobody;
         found.before = place, place = parts_.list_entry(place).next) {
      const ListEntry& entry = parts_.list_entry(place);
      const Append& a = entry.append;
      if (!matches(a, m.match_bits, m.initiator, parts_.rule.pid_bits)) continue;
      found.offset = offset_in(a, m);
      found.room = room_in(a, m);
      if (entry.has(append_flag::no_truncate) && m.rlength > found.room) continue;
      const bool allowed = (a.flags & permission) == permission;
      found.code = allowed ? ReturnCode::ok : ReturnCode::op_violation;
      found.place = place;
      return found;
    }
  }
  return found;
}

/// Carries an operation out in the memory that matches it.
template <class Parts>
DOORBELL_GPU_NOINLINE typename Engine<Parts>::Result Engine<Parts>::match(
    WorkQueue& q, const Operation& op, const model::DmaPlace& local, TableEntry& pte,
    const model::InjectedFault& injected) {
  Message m = message_of(op);
  const Match found = search(pte, m, op.permission());
  if (found.code != ReturnCode::ok) return {found.code, true};
  ListEntry& entry = parts_.list_entry(found.place);
  const Append& a = entry.append;
  const bool kept = found.list == PortalsList::overflow && !entry.has(append_flag::unexpected_hdr_disable);
  if (kept && list_entries_ >= parts_.rule.max_list_entries) return {ReturnCode::no_space, true};
  if (op.atomic != nullptr && op.bytes > found.room) return {ReturnCode::addr_out_of_range, true};
  m.mlength = static_cast<u32>(op.bytes < found.room ? op.bytes : found.room);
  m.start = a.start + found.offset;

  if (m.mlength > 0) {
    ReturnCode code = ReturnCode::ok;
    const MappedMemory* const memory = memory_of(entry, pte.owner, m.start, m.mlength, op, code);
    if (memory == nullptr) return {code, true};
    // The part of what was appended that is mapped: more than that nothing may touch.
    ListEntry window;
    window.memory = entry.memory;
    const u64 end = memory->begin + memory->bytes;
    window.append.start = a.start > memory->begin ? a.start : memory->begin;
    window.append.length = (a.start + a.length < end ? a.start + a.length : end) - window.append.start;
    DmaFields fields = *op.fields;
    fields.remote_offset = m.start - window.append.start;
    Operation part = op;
    part.fields = &fields;
    part.bytes = m.mlength;
    const Result result =
        op.atomic != nullptr ? carry_out(q, part, window) : move(part, local, window, injected);
    if (result.code != ReturnCode::ok) return result;
  }

  const u64 wanted = found.list == PortalsList::priority ? m.rlength : m.mlength;
  const bool unlinked = use(entry, wanted < found.room ? wanted : found.room);
  const Append then = a;
  if (entry.has(append_flag::ct_comm)) count_for(pte, then, m.mlength);
  if (unlinked) {
    // The bytes of what came before are in place, too, when its owner learns that he may free it.
    drop(pte.lists[static_cast<u32>(found.list)], found.before, found.place);
    if ((then.flags & append_flag::unlink_disable) == 0)
      report_unlink(pte, found.list, then.buffer_id, true, ReturnCode::ok);
  }
  announce(pte, then, found.list, m, m.type, unlinked);
  if (kept) keep(pte, m);
  if (m.rendezvous && found.list == PortalsList::priority)
    rendezvous(pte, then, found.list, m, m.start, found.room);
  parts_.matching.bytes = m.mlength;
  Result result;
  result.matched = true;
  result.list = static_cast<u8>(found.list);
  result.rendezvous = m.rendezvous;
  return result;
}

template <class Parts>
DOORBELL_HD Message Engine<Parts>::message_of(const Operation& op) {
  Message m;
  m.type = op.target_event();
  m.initiator = op.initiator;
  m.match_bits = op.match_bits;
  m.header_data = op.header_data;
  m.remote_offset = op.fields->remote_offset;
  m.target_offset = op.target_offset();
  m.rlength = static_cast<u32>(op.asked());
  if (op.atomic != nullptr) {
    m.atomic_op = static_cast<u8>(op.atomic->atomic.op);
    m.atomic_type = static_cast<u8>(op.atomic->atomic.type);
    m.cswap_op = static_cast<u8>(op.atomic->atomic.swap_if);
  }
  if (op.rendezvous != nullptr) {
    m.rendezvous = true;
    m.rendezvous_id = static_cast<u8>(op.rendezvous->id);
    // The eager part has been brought, and is not asked for again.
    m.source_offset = op.rendezvous->offset + op.bytes;
    if (op.fields->flags.use_offset_for_get) m.remote_offset = m.source_offset;
  }
  return m;
}

/// The mapped memory in which all of a part of `entry` lies, if the operation may use it.
template <class Parts>
DOORBELL_HD const MappedMemory* Engine<Parts>::memory_of(ListEntry& entry, u32 owner, Iova at, u64 bytes,
                                                         const Operation& op, ReturnCode& code) {
  if (entry.epoch == epoch_ && entry.memory != kNobody) {
    const MappedMemory& m = parts_.objects.memories[entry.memory];
    if (m.covers(at, bytes) && allows(m.access, op.target_access())) return &m;
  }
  entry.memory = find(owner, entry.append.lac, at, bytes, op.target_access(), code);
  entry.epoch = epoch_;
  return entry.memory == kNobody ? nullptr : &parts_.objects.memories[entry.memory];
}

/// Takes `bytes` from memory that the device hands out piece by piece. True if the memory has been used up.
template <class Parts>
DOORBELL_HD bool Engine<Parts>::use(ListEntry& entry, u64 bytes) {
  Append& a = entry.append;
  if (!entry.has(append_flag::manage_local)) return entry.has(append_flag::use_once);
  a.start += bytes;
  a.length -= bytes;
  return entry.has(append_flag::use_once) || a.length < u64{a.min_free} << kMinFreeShift;
}

template <class Parts>
DOORBELL_HD TargetLongEvent Engine<Parts>::event_of(const TableEntry& pte, const Append& a, PortalsList list,
                                                    const Message& m) {
  TargetLongEvent e;
  e.type = m.type;
  e.header_data = m.header_data;
  e.initiator = m.initiator;
  e.ptlte_index = pte.index;
  e.ptl_list = list;
  e.match_bits = m.match_bits;
  e.buffer_id = a.buffer_id;
  e.vni = pte.vni;
  e.mlength = m.mlength;
  e.rlength = m.rlength;
  e.remote_offset = m.remote_offset;
  e.start = m.start;
  e.atomic_op = m.atomic_op;
  e.atomic_type = m.atomic_type;
  e.cswap_op = m.cswap_op;
  e.rendezvous = m.rendezvous;
  e.rendezvous_id = m.rendezvous_id;
  return e;
}

/// Tells the target of a message that memory `a` has taken.
template <class Parts>
DOORBELL_GPU_NOINLINE void Engine<Parts>::announce(const TableEntry& pte, const Append& a, PortalsList list,
                                                   const Message& m, EventType type, bool unlinked) {
  const bool late = type != m.type;  // it was kept for this memory
  if ((a.flags & append_flag::comm_disable) != 0) return;
  // A rendezvous has three events, which its reader counts.
  if ((a.flags & append_flag::success_disable) != 0 && !m.rendezvous && !late) return;
  TargetLongEvent e = event_of(pte, a, list, m);
  e.type = type;
  e.auto_unlinked = unlinked;
  if (late) e.remote_offset = 0;
  const bool all_said = list == PortalsList::priority && !late && !m.rendezvous && !pte.long_events &&
                        (a.flags & append_flag::manage_local) == 0 && m.mlength == m.rlength &&
                        m.mlength <= kLongestShortEvent;
  tell(pte, e, all_said);
}

// --- unexpected messages ---------------------------------------------------------------------------------

/// Keeps a message until memory of the priority list matches it. There is room.
template <class Parts>
DOORBELL_GPU_NOINLINE void Engine<Parts>::keep(const TableEntry& pte, const Message& m) {
  auto& s = parts_.matching;
  u32 place = s.free;
  if (place != kNobody) s.free = parts_.unexpected(place).next;
  else place = s.fresh++;
  parts_.unexpected(place) = {m, kNobody};
  Chain& list = s.unexpected[pte.index];
  (list.empty() ? list.first : parts_.unexpected(list.last).next) = place;
  list.last = place;
  ++list_entries_;
}

/// Takes the message at `place` out, behind the one at `before`.
template <class Parts>
DOORBELL_GPU_NOINLINE void Engine<Parts>::forget(const TableEntry& pte, u32 before, u32 place) {
  auto& s = parts_.matching;
  Chain& list = s.unexpected[pte.index];
  UnexpectedMessage& u = parts_.unexpected(place);
  (before == kNobody ? list.first : parts_.unexpected(before).next) = u.next;
  if (list.last == place) list.last = before;
  u.next = s.free;
  s.free = place;
  --list_entries_;
}

template <class Parts>
DOORBELL_GPU_NOINLINE void Engine<Parts>::forget_all(const TableEntry& pte) {
  if constexpr (Parts::kMatching) {
    Chain& list = parts_.matching.unexpected[pte.index];
    while (!list.empty()) forget(pte, kNobody, list.first);
  }
}

template <class Parts>
u32 Engine<Parts>::unexpected(u32 index, u32 first, std::span<u64> offsets) const {
  u32 n = 0;
  for (u32 i = parts_.matching.unexpected[index].first; i != kNobody; i = parts_.unexpected(i).next, ++n) {
    if (n < first || n - first >= offsets.size()) continue;
    // The NIC keeps one field: where the data are, or what the rest of a rendezvous put begins at.
    const Message& m = parts_.unexpected(i).message;
    offsets[n - first] = m.rendezvous ? m.source_offset - m.mlength : m.start;
  }
  return n;
}

/// Whether the memory that a command describes is for this message.
template <class Parts>
DOORBELL_HD bool Engine<Parts>::wants(const Append& a, const Message& m) const {
  return matches(a, m.match_bits, m.initiator, parts_.rule.pid_bits) &&
         ((a.flags & append_flag::no_truncate) == 0 || m.rlength <= room_in(a, m));
}

/// The event of a message that was kept.
[[nodiscard]] DOORBELL_INLINE EventType overflow_event(EventType type) {
  return static_cast<EventType>(static_cast<u32>(type) - static_cast<u32>(EventType::put) +
                                static_cast<u32>(EventType::put_overflow));
}

/// Gives memory of the priority list the messages that came before it. True if that has used it up, and it
/// is not to be linked.
template <class Parts>
DOORBELL_GPU_NOINLINE bool Engine<Parts>::take_unexpected(TableEntry& pte, ListEntry& entry) {
  Chain& list = parts_.matching.unexpected[pte.index];
  u32 before = kNobody, place = list.first;
  while (place != kNobody) {
    const Message m = parts_.unexpected(place).message;
    const Append a = entry.append;
    const u32 permission = m.type == EventType::get            ? append_flag::op_get
                           : m.type == EventType::fetch_atomic ? append_flag::op_get | append_flag::op_put
                                                               : append_flag::op_put;
    if (!wants(a, m) || (a.flags & permission) != permission) {
      before = place;
      place = parts_.unexpected(place).next;
      continue;
    }
    const u32 next = parts_.unexpected(place).next;
    forget(pte, before, place);
    const u64 room = room_in(a, m);
    const bool unlinked = use(entry, m.rlength < room ? m.rlength : room);
    if (entry.has(append_flag::ct_overflow)) count_for(pte, a, m.mlength);
    if (unlinked && (a.flags & append_flag::unlink_disable) == 0)
      report_unlink(pte, a.ptl_list, a.buffer_id, true, ReturnCode::ok);
    announce(pte, a, a.ptl_list, m, overflow_event(m.type), unlinked);
    if (m.rendezvous) {
      rendezvous(pte, a, a.ptl_list, m, a.start + offset_in(a, m), room);
      pull();
      // The get may have added messages here, and taken none: its own memory is at another place.
      if (unlinked) return true;
      before = kNobody;
      place = list.first;
      continue;
    }
    if (unlinked) return true;
    place = next;
  }
  return false;
}

/// Looks through the messages that were kept; with SEARCH_AND_DELETE each match is taken out.
template <class Parts>
DOORBELL_GPU_NOINLINE ReturnCode Engine<Parts>::search_unexpected(const WorkQueue& q, const u64* words) {
  Search s;
  if (!decode(words, s)) return ReturnCode::cmd_invalid_arg;
  TableEntry* const pte = table_entry(q.owner, s.ptlte_index);
  if (pte == nullptr || s.ptl_list != PortalsList::unexpected) return ReturnCode::cmd_invalid_arg;
  const bool once = (s.flags & append_flag::use_once) != 0;
  u32 before = kNobody, place = parts_.matching.unexpected[pte->index].first;
  while (place != kNobody) {
    const Message m = parts_.unexpected(place).message;
    const u32 next = parts_.unexpected(place).next;
    if (!wants(s, m)) {
      before = place;
      place = next;
      continue;
    }
    TargetLongEvent e = event_of(*pte, s, PortalsList::unexpected, m);
    e.type = EventType::search;
    if (s.opcode == QueueOpcode::search_and_delete) {
      e.type = overflow_event(m.type);
      e.remote_offset = 0;
      forget(*pte, before, place);
    } else {
      before = place;
    }
    write_event(pte->owner, pte->eq, e);
    if (once) return ReturnCode::ok;
    place = next;
  }
  TargetLongEvent e;
  e.type = EventType::search;
  e.return_code = ReturnCode::no_match;
  e.ptlte_index = pte->index;
  e.ptl_list = PortalsList::unexpected;
  e.buffer_id = s.buffer_id;
  write_event(pte->owner, pte->eq, e);
  return ReturnCode::ok;
}

// --- rendezvous ------------------------------------------------------------------------------------------

/// A rendezvous put has found its memory, of which `room` bytes are left from `at` on: its eager part is or
/// would be at `at`. Tells the target, and prepares the get of the rest.
template <class Parts>
DOORBELL_GPU_NOINLINE void Engine<Parts>::rendezvous(const TableEntry& pte, const Append& a, PortalsList list,
                                                     const Message& m, Iova at, u64 room) {
  const u32 pid_bits = parts_.rule.pid_bits, nic = 32 - pid_bits;
  const u32 nid = m.initiator & ((1u << nic) - 1) & kMaxNid, pid = m.initiator >> nic;
  const u32 last = (1u << (12 - pid_bits)) * 32 - 1;  // of a process's indices, which the driver sets
  Pull& p = parts_.matching.pull;
  p = {};
  p.from = make_dfa(nid, pid, pid_bits, last);
  p.match_bits = pack(RendezvousBits{m.rendezvous_id, 0xf, static_cast<u32>(m.match_bits >> 48)}).w[0];
  p.due = parts_.rule.rendezvous_get;

  TargetLongEvent e = event_of(pte, a, list, m);
  e.type = EventType::rendezvous;
  e.initiator = p.from.value;
  e.match_bits = p.match_bits;
  e.remote_offset = m.source_offset;
  e.start = at + m.mlength;
  e.get_issued = p.due;
  write_event(pte.owner, pte.eq, e);
  if (!p.due) return;

  const u64 all = m.rlength < room ? m.rlength : room;
  p.owner = pte.owner;
  p.lac = a.lac;
  p.to = e.start;
  p.bytes = static_cast<u32>(all > m.mlength ? all - m.mlength : 0);
  p.vni = pte.vni;
  p.offset = m.source_offset;
  p.initiator = initiator_id(parts_.rule.nid, pte.pid, pid_bits);
  p.eq = pte.eq;
  p.ct = (a.flags & append_flag::ct_comm) != 0 ? a.ct : 0;
  p.counts_bytes = (a.flags & append_flag::ct_bytes) != 0;
  p.user_ptr = pack(RendezvousPointer{nid, pid, pte.index, m.rendezvous_id, a.buffer_id}).w[0];
}

/// Sends the get that a rendezvous put has left to do.
template <class Parts>
DOORBELL_GPU_NOINLINE void Engine<Parts>::pull() {
  const Pull p = parts_.matching.pull;
  parts_.matching.pull.due = false;
  if (!p.due || parts_.gone()) return;
  WorkQueue& q = parts_.matching.puller;
  q.owner = p.owner;
  q.vni = p.vni;
  q.epoch = 0;
  q.memory = kNobody;
  DmaFields fields;
  fields.to(p.from);
  fields.lac = p.lac;
  fields.local_addr = p.to;
  fields.remote_offset = p.offset;
  fields.request_len = p.bytes;
  fields.ct = p.ct;
  fields.eq = p.eq;
  fields.flags.event_ct_reply = p.ct != 0 && counting_event(p.owner, p.ct) != nullptr;
  fields.flags.event_ct_bytes = p.counts_bytes;
  Operation op;
  op.fields = &fields;
  op.opcode = Opcode::get;
  op.bytes = p.bytes;
  op.user_ptr = p.user_ptr;
  op.initiator = p.initiator;
  op.match_bits = p.match_bits;
  Result result = transfer(q, op, {});
  const u64 bytes = result.matched ? parts_.matching.bytes : op.bytes;
  book(op, result, bytes);
  result.rendezvous = true;
  acknowledge(p.owner, op, result, bytes, {});
}

}  // namespace doorbell::cxi
