// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Engine: puts and gets. Finds the source and the destination, moves the bytes, and reports to the initiator.
#pragma once

#include <doorbell/pattern_unit.hpp>

#include "cxi/model/engine.hpp"

namespace doorbell::cxi {

[[nodiscard]] DOORBELL_INLINE u64 packets_of(u64 bytes) {
  return bytes <= kMtu ? 1 : (bytes + kMtu - 1) / kMtu;
}

template <class Parts>
DOORBELL_GPU_NOINLINE ReturnCode Engine<Parts>::operate(WorkQueue& q, const Operation& op) {
  const DmaFields& f = *op.fields;
  if (f.ct != 0 && counting_event(q.owner, f.ct) == nullptr) return ReturnCode::cmd_invalid_arg;
  if (f.eq != 0 && !has_event_queue(q.owner, f.eq)) return ReturnCode::cmd_invalid_arg;

  model::InjectedFault injected;
  if (parts_.faults.active()) [[unlikely]]
    injected = parts_.faults.draw(q.ordinal, q.serial,
                                  op.bytes > 0 ? model::Direction::both : model::Direction::none);
  if (injected.fault == model::Fault::removal) {
    parts_.remove_device();
    return ReturnCode::ok;
  }
  if (injected.fault == model::Fault::error) parts_.faults.count(injected.fault);
  const Result result =
      injected.fault == model::Fault::error ? Result{parts_.rule.nack, true} : transfer(q, op, injected);
  ++q.serial;
  u64 bytes = op.bytes;
  if constexpr (Parts::kMatching)
    if (result.matched) [[unlikely]]
      bytes = parts_.matching.bytes;
  book(op, result, bytes);
  if (result.code == ReturnCode::ok && !op.is_get()) {
    if (f.flags.event_ct_send) count(f.ct, f.flags.event_ct_bytes ? bytes : 1, 0);
    if (!f.flags.event_send_disable && f.eq != 0) {
      InitiatorEvent e;
      e.type = EventType::send;
      e.user_ptr = op.user_ptr;
      e.mlength = static_cast<u32>(bytes);
      write_event(q.owner, f.eq, e);
    }
  }
  acknowledge(q.owner, op, result, bytes, injected);
  if constexpr (Parts::kMatching)
    if (result.rendezvous) [[unlikely]]
      pull();
  return ReturnCode::ok;
}

/// Counts an operation, of which `bytes` were moved.
template <class Parts>
DOORBELL_HD void Engine<Parts>::book(const Operation& op, const Result& result, u64 bytes) {
  EngineCounters& c = parts_.counters;
  if (result.code != ReturnCode::ok) {
    c.refused_operations += 1;
    return;
  }
  (op.atomic != nullptr    ? c.atomics
   : op.inlined != nullptr ? c.idc_puts
   : op.is_get()           ? c.gets
                           : c.puts) += 1;
  if (!op.fields->flags.restricted) c.unrestricted += 1;
  c.bytes += bytes;
  c.packets += packets_of(bytes);
}

// --- the two ends ----------------------------------------------------------------------------------------

/// Finds the mapped memory that contains all of the bytes, if the NIC may use it in this way.
template <class Parts>
DOORBELL_GPU_NOINLINE u32 Engine<Parts>::find(u32 owner, u32 lac, Iova at, u64 bytes, Access want,
                                              ReturnCode& code) {
  code = ReturnCode::invalid_ac;
  for (u32 i = 0; i < memories_; ++i) {
    const MappedMemory& m = parts_.objects.memories[i];
    if (m.bytes == 0 || m.lac != lac || m.owner != owner) continue;
    code = ReturnCode::no_translation;
    if (!m.covers(at, bytes)) continue;
    if (allows(m.access, want)) {
      code = ReturnCode::ok;
      return i;
    }
    code = ReturnCode::page_perm_error;
    break;
  }
  return kNobody;
}

/// Finds the portals entry of an address, in the queue's network.
template <class Parts>
DOORBELL_GPU_NOINLINE u32 Engine<Parts>::route(WorkQueue& q, const Dfa& dfa, ReturnCode& code) {
  if (q.epoch == epoch_ && q.dfa.value == dfa.value && q.dfa.index_ext == dfa.index_ext) [[likely]]
    return q.pte;
  const EntryAddress t = split_dfa(dfa, parts_.rule.pid_bits);
  if (t.nid != parts_.rule.nid) {
    code = ReturnCode::undeliverable;
    return kNobody;
  }
  bool known = false;
  for (const Domain& d : parts_.objects.domains)
    known = known || (d.vni == q.vni && d.vni != 0 && d.pid == t.pid);
  if (!known) {
    code = ReturnCode::vni_not_found;
    return kNobody;
  }
  u32 pte = 0;
  for (; pte < Objects::Room::kEntries; ++pte) {
    const TableEntry& p = parts_.objects.table[pte];
    if (p.exists && p.mapped && p.vni == q.vni && p.pid == t.pid && p.idx == t.idx) break;
  }
  if (pte == Objects::Room::kEntries) {
    code = ReturnCode::ptlte_not_found;
    return kNobody;
  }
  q.epoch = epoch_;
  q.memory = kNobody;
  q.dfa = dfa;
  q.pte = pte;
  return pte;
}

/// Finds the buffer that takes the operation: the first of the priority list, else of the overflow list.
template <class Parts>
DOORBELL_GPU_NOINLINE ListEntry* Engine<Parts>::list_entry(TableEntry& pte, const Operation& op,
                                                           ReturnCode& code) {
  const u32 place = !pte.lists[0].empty() ? pte.lists[0].first : pte.lists[1].first;
  if (place == kNobody) {
    code = ReturnCode::dropped;
    return nullptr;
  }
  ListEntry& entry = parts_.list_entry(place);
  const Append& a = entry.append;
  if ((entry.append.flags & op.permission()) != op.permission()) {
    code = ReturnCode::op_violation;
    return nullptr;
  }
  const u64 offset = op.fields->remote_offset;
  if (offset > a.length || op.bytes > a.length - offset) {
    code = ReturnCode::addr_out_of_range;
    return nullptr;
  }
  if (entry.epoch != epoch_ || entry.memory == kNobody) {
    entry.memory = find(pte.owner, a.lac, a.start, a.length, op.target_access(), code);
    entry.epoch = epoch_;
    if (entry.memory == kNobody) return nullptr;
  }
  if (!allows(parts_.objects.memories[entry.memory].access, op.target_access())) {
    code = ReturnCode::page_perm_error;
    return nullptr;
  }
  return &entry;
}

template <class Parts>
DOORBELL_GPU_NOINLINE typename Engine<Parts>::Result Engine<Parts>::transfer(
    WorkQueue& q, const Operation& op, const model::InjectedFault& injected) {
  const DmaFields& f = *op.fields;
  ReturnCode code = ReturnCode::ok;
  const Dfa dfa{f.dfa, f.index_ext};
  const u32 place = route(q, dfa, code);

  // The initiator's own memory is checked first: an error there never leaves the NIC.
  model::DmaPlace local{const_cast<u8*>(op.inlined), nullptr, false};
  if (op.inlined == nullptr && op.atomic == nullptr && op.bytes > 0) {
    const Access want = op.is_get() ? Access::write : Access::read;
    u32 memory = place != kNobody && q.lac == f.lac ? q.memory : kNobody;
    const MappedMemory* m = memory != kNobody ? &parts_.objects.memories[memory] : nullptr;
    if (m == nullptr || !m->covers(f.local_addr, op.bytes) || !allows(m->access, want)) {
      ReturnCode local_code = ReturnCode::ok;
      memory = find(q.owner, f.lac, f.local_addr, op.bytes, want, local_code);
      if (memory == kNobody) return {local_code, false};
      m = &parts_.objects.memories[memory];
      if (place != kNobody) q.memory = memory, q.lac = f.lac;
    }
    local = m->at(f.local_addr);
  }
  if (place == kNobody) return {code, code != ReturnCode::undeliverable};

  TableEntry* const pte = &parts_.objects.table[place];
  ++pte->operations;
  if (parts_.rule.pte_disable > 0 && pte->operations > parts_.rule.pte_disable && !pte->fault_applied) {
    pte->fault_applied = true;
    parts_.counters.pte_disabled += 1;
    change_state(*pte, PtlteState::disabled, true);
  }
  if (pte->state != PtlteState::enabled) return {ReturnCode::pt_disabled, true};
  if constexpr (Parts::kMatching) {
    if (pte->matching) [[unlikely]]
      return match(q, op, local, *pte, injected);
    if (op.rendezvous != nullptr) [[unlikely]]
      return {ReturnCode::op_violation, true};
  }
  ListEntry* const entry = list_entry(*pte, op, code);
  if (entry == nullptr) return {code, true};
  const Result result = op.atomic != nullptr ? carry_out(q, op, *entry) : move(op, local, *entry, injected);
  if (result.code == ReturnCode::ok) delivered(*pte, *entry, op);
  return result;
}

// --- the bytes -------------------------------------------------------------------------------------------

template <class Parts>
DOORBELL_GPU_NOINLINE typename Engine<Parts>::Result Engine<Parts>::move(
    const Operation& op, const model::DmaPlace& local, const ListEntry& entry,
    const model::InjectedFault& injected) {
  if (op.bytes == 0) return {};
  const Append& a = entry.append;
  const u64 offset = op.fields->remote_offset;
  const MappedMemory& target = parts_.objects.memories[entry.memory];
  const model::DmaPlace remote = target.at(a.start + offset);
  model::DmaPlace to = op.is_get() ? local : remote;
  model::DmaPlace from = op.is_get() ? remote : local;
  const Result broken{ReturnCode::undeliverable, false};
  if (injected.fault != model::Fault::none) [[unlikely]] {
    switch (injected.fault) {
      case model::Fault::stale:
        parts_.faults.count(injected.fault);
        return {};
      case model::Fault::misplace: {
        // A put then writes to another place in the buffer, and a get reads from another place.
        const auto other = model::InjectedFault::elsewhere(offset, op.bytes, a.length);
        if (!other) break;
        (op.is_get() ? from : to) = target.at(a.start + *other);
        parts_.faults.count(injected.fault);
        const bool done = parts_.mover.misplaced([&] { return parts_.mover.copy(to, from, op.bytes); });
        return done && taken(op) ? Result{} : broken;
      }
      case model::Fault::corrupt:
        parts_.faults.count(injected.fault);
        return parts_.mover.copy_damaged(to, from, op.bytes, injected.position(op.bytes)) && settle()
                   ? Result{}
                   : broken;
      default:
        break;
    }
  }
  // A GPU copy is complete only after a round trip to the GPU, so many copies have to share one.
  burst_bytes_ += to.gpu || from.gpu ? op.bytes / kGpuShare : op.bytes;
  return parts_.mover.copy(to, from, op.bytes) && taken(op) ? Result{} : broken;
}

/// The data that a command carries is gone when its slots are free.
template <class Parts>
DOORBELL_HD bool Engine<Parts>::taken(const Operation& op) {
  return Parts::kReadsAtOnce || op.inlined == nullptr || settle();
}

/// Writes the target's own events and counts.
template <class Parts>
DOORBELL_GPU_NOINLINE void Engine<Parts>::delivered(TableEntry& pte, ListEntry& entry, const Operation& op) {
  const Append& a = entry.append;
  if (entry.has(append_flag::ct_comm)) count_for(pte, a, op.bytes);
  const bool once = entry.has(append_flag::use_once);
  // The buffer is gone before its last operation is announced, which may be the sign to append it again.
  if (once && !entry.has(append_flag::unlink_disable))
    report_unlink(pte, a.ptl_list, a.buffer_id, true, ReturnCode::ok);
  if (!entry.has(append_flag::success_disable) && !entry.has(append_flag::comm_disable)) {
    TargetLongEvent e;
    e.type = op.target_event();
    e.header_data = op.header_data;
    e.initiator = op.initiator;
    e.ptlte_index = pte.index;
    e.auto_unlinked = once;
    e.match_bits = op.match_bits;
    e.buffer_id = a.buffer_id;
    e.vni = pte.vni;
    e.mlength = e.rlength = static_cast<u32>(op.bytes);
    e.remote_offset = op.fields->remote_offset;
    e.start = a.start + op.fields->remote_offset;
    if (op.atomic != nullptr) {
      e.atomic_op = static_cast<u32>(op.atomic->atomic.op);
      e.atomic_type = static_cast<u32>(op.atomic->atomic.type);
      e.cswap_op = static_cast<u32>(op.atomic->atomic.swap_if);
    }
    tell(pte, e, op.bytes <= kLongestShortEvent && !pte.long_events);
  }
  if (once) drop_first(pte.lists[static_cast<u32>(a.ptl_list)]);
}

/// Counts an operation in the counter of the memory that took it.
template <class Parts>
DOORBELL_HD void Engine<Parts>::count_for(const TableEntry& pte, const Append& a, u64 bytes) {
  if (a.ct != 0 && counting_event(pte.owner, a.ct) != nullptr)
    count(a.ct, (a.flags & append_flag::ct_bytes) != 0 ? bytes : 1, 0);
}

/// Writes a target's event, `brief` if the short form says all of it.
template <class Parts>
DOORBELL_HD void Engine<Parts>::tell(const TableEntry& pte, const TargetLongEvent& e, bool brief) {
  if (!brief) return write_event(pte.owner, pte.eq, e);
  TargetEvent short_form;
  static_cast<TargetHead&>(short_form) = e;
  short_form.length = e.mlength;
  write_event(pte.owner, pte.eq, short_form);
}

// --- reports to the initiator ----------------------------------------------------------------------------

template <class Parts>
DOORBELL_HD void Engine<Parts>::acknowledge(u32 owner, const Operation& op, const Result& result, u64 bytes,
                                            const model::InjectedFault& injected) {
  const DmaFields& f = *op.fields;
  Acknowledgement a;
  a.flags = f.flags;
  a.owner = owner;
  a.is_get = op.replies();
  a.result = result;
  a.ct = f.ct;
  a.eq = f.eq;
  a.bytes = bytes;
  a.user_ptr = op.user_ptr;
  if (careful_) [[unlikely]]
    return acknowledge_carefully(a, injected);
  complete(a);
}

/// Acknowledges at the time that the configuration asks for, and with the operation's fault. Its own
/// function, so that it costs nothing where neither is asked for.
template <class Parts>
DOORBELL_GPU_NOINLINE void Engine<Parts>::acknowledge_carefully(const Acknowledgement& a,
                                                                const model::InjectedFault& injected) {
  u64 due_ns = 0;
  if (parts_.rule.limited)
    due_ns = parts_.finish_time(now(), a.bytes + packets_of(a.bytes) * parts_.rule.overhead);
  const u64 serial = acknowledged_++;
  if (parts_.rule.jitter_ns > 0)
    due_ns = (due_ns > now() ? due_ns : now()) +
             pattern::mix64(parts_.rule.seed ^ pattern::mix64(serial)) % (parts_.rule.jitter_ns + 1);
  const bool reported = a.result.code != ReturnCode::ok || (a.eq != 0 && !a.flags.event_success_disable) ||
                        (a.ct != 0 && (a.is_get ? a.flags.event_ct_reply : a.flags.event_ct_ack));
  model::CompletionReport t{1, due_ns};
  // Without a report to the initiator nothing can be lost, late or reported twice.
  if (reported) t = parts_.faults.apply_to_completion(injected, due_ns, [this] { return now(); });
  for (; t.times > 0; --t.times) {
    if (t.due_ns == 0) complete(a);
    else parts_.late.push(t.due_ns, a);
  }
}

/// Handles an acknowledgement that has arrived.
template <class Parts>
DOORBELL_GPU_NOINLINE void Engine<Parts>::complete(const Acknowledgement& a) {
  const bool ok = a.result.code == ReturnCode::ok;
  const bool counts = a.is_get ? a.flags.event_ct_reply : a.flags.event_ct_ack;
  if (ok) {
    if (counts) count(a.ct, a.flags.event_ct_bytes ? a.bytes : 1, 0);
    if (a.flags.event_success_disable) [[likely]]
      return;
  } else if (counts || a.flags.event_ct_send) {
    count(a.ct, 0, 1);
  }
  InitiatorEvent e;
  e.type = a.is_get ? EventType::reply : EventType::ack;
  e.return_code = a.result.code;
  e.tgt_error = !ok && a.result.by_target;
  e.ptl_list = static_cast<PortalsList>(a.result.list);
  e.rendezvous = a.result.rendezvous;
  e.user_ptr = a.user_ptr;
  e.mlength = ok ? static_cast<u32>(a.bytes) : 0;
  if (a.eq != 0) write_event(a.owner, a.eq, e);
}

template <class Parts>
DOORBELL_GPU_NOINLINE bool Engine<Parts>::release_late() {
  bool work = false;
  while (parts_.late.due(now())) {
    complete(parts_.late.pop());
    work = true;
  }
  return work;
}

}  // namespace doorbell::cxi
