// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Puts and gets: finds the source and the destination, moves the bytes, and reports to the initiator.

#include <doorbell/pattern.hpp>

#include <algorithm>
#include <optional>

#include "cxi/model/engine.hpp"
#include "model/deliberate_race.hpp"

namespace doorbell::cxi {

using model::DmaPlace;
using model::Fault;

namespace {

constexpr u32 kLongestShortEvent = (1u << 20) - 1;  // limit of the length in a short target event

u64 packets_of(u64 bytes) {
  return bytes <= kMtu ? 1 : (bytes + kMtu - 1) / kMtu;
}

}  // namespace

ReturnCode Engine::operate(WorkQueue& q, const Operation& op) {
  const DmaFields& f = *op.fields;
  if (f.ct != 0 && counting_event(f.ct) == nullptr) return ReturnCode::cmd_invalid_arg;
  if (f.eq != 0 && event_queues_[f.eq] == nullptr) return ReturnCode::cmd_invalid_arg;

  model::InjectedFault injected;
  if (shared_.faults.active()) [[unlikely]]
    injected = shared_.faults.draw(q.ordinal, q.serial,
                                   op.bytes > 0 ? model::Direction::both : model::Direction::none);
  if (injected.fault == Fault::removal) {
    shared_.faults.remove(shared_.presence);
    return ReturnCode::ok;
  }
  if (injected.fault == Fault::error) shared_.faults.count(injected.fault);
  const Result result =
      injected.fault == Fault::error ? Result{shared_.config.nack, true} : transfer(q, op, injected);
  ++q.serial;
  const bool ok = result.code == ReturnCode::ok;
  if (ok) {
    (op.inlined != nullptr ? counters_.idc_puts : op.is_get() ? counters_.gets : counters_.puts) += 1;
    if (!f.flags.restricted) counters_.unrestricted += 1;
    counters_.bytes += op.bytes;
    counters_.packets += packets_of(op.bytes);
    if (!op.is_get()) {
      if (f.flags.event_ct_send) count(f.ct, f.flags.event_ct_bytes ? op.bytes : 1, 0);
      if (!f.flags.event_send_disable && f.eq != 0) {
        InitiatorEvent e;
        e.type = EventType::send;
        e.user_ptr = op.user_ptr;
        e.mlength = static_cast<u32>(op.bytes);
        write_event(f.eq, e);
      }
    }
  } else {
    counters_.refused_operations += 1;
  }
  acknowledge(op, result, injected);
  return ReturnCode::ok;
}

// --- the two ends ----------------------------------------------------------------------------------------

/// Finds the mapped memory that contains all of the bytes, if the NIC may use it in this way.
const MappedMemory* Engine::find(u32 lac, Iova at, u64 bytes, Access want, ReturnCode& code) {
  const std::vector<MappedMemory>& context = contexts_[lac];
  if (context.empty()) {
    code = ReturnCode::invalid_ac;
    return nullptr;
  }
  for (const MappedMemory& m : context) {
    if (!m.covers(at, bytes)) continue;
    if (allows(m.access, want)) return &m;
    code = ReturnCode::page_perm_error;
    return nullptr;
  }
  code = ReturnCode::no_translation;
  return nullptr;
}

/// Finds the portals entry of an address, in the queue's network.
TableEntry* Engine::route(WorkQueue& q, const Dfa& dfa, ReturnCode& code) {
  if (q.epoch == epoch_ && q.dfa.value == dfa.value && q.dfa.index_ext == dfa.index_ext) [[likely]]
    return q.pte;
  const EntryAddress t = split_dfa(dfa, shared_.config.pid_bits);
  if (t.nid != nid_) {
    code = ReturnCode::undeliverable;
    return nullptr;
  }
  const auto domain =
      std::ranges::find_if(domains_, [&](const Domain& d) { return d.vni == q.vni && d.pid == t.pid; });
  if (domain == domains_.end()) {
    code = ReturnCode::vni_not_found;
    return nullptr;
  }
  const auto pte = std::ranges::find_if(table_, [&](const TableEntry* p) {
    return p != nullptr && p->vni == q.vni && p->pid == t.pid && p->idx == t.idx;
  });
  if (pte == table_.end()) {
    code = ReturnCode::ptlte_not_found;
    return nullptr;
  }
  q.epoch = epoch_;
  q.memory = nullptr;
  q.dfa = dfa;
  q.pte = *pte;
  return *pte;
}

/// Finds the buffer that takes the operation: the first of the priority list, else of the overflow list.
ListEntry* Engine::list_entry(TableEntry& pte, const Operation& op, ReturnCode& code) {
  std::vector<ListEntry>* const list = !pte.lists[0].empty()   ? &pte.lists[0]
                                       : !pte.lists[1].empty() ? &pte.lists[1]
                                                               : nullptr;
  if (list == nullptr) {
    code = ReturnCode::dropped;
    return nullptr;
  }
  ListEntry& entry = list->front();
  const Append& a = entry.append;
  if (!entry.has(op.is_get() ? append_flag::op_get : append_flag::op_put)) {
    code = ReturnCode::op_violation;
    return nullptr;
  }
  const u64 offset = op.fields->remote_offset;
  if (offset > a.length || op.bytes > a.length - offset) {
    code = ReturnCode::addr_out_of_range;
    return nullptr;
  }
  if (entry.epoch != epoch_ || entry.memory == nullptr) {
    entry.memory = find(a.lac, a.start, a.length, op.is_get() ? Access::read : Access::write, code);
    entry.epoch = epoch_;
    if (entry.memory == nullptr) return nullptr;
  }
  if (!allows(entry.memory->access, op.is_get() ? Access::read : Access::write)) {
    code = ReturnCode::page_perm_error;
    return nullptr;
  }
  return &entry;
}

Engine::Result Engine::transfer(WorkQueue& q, const Operation& op, const model::InjectedFault& injected) {
  const DmaFields& f = *op.fields;
  ReturnCode code = ReturnCode::ok;
  const Dfa dfa{f.dfa, f.index_ext};
  TableEntry* const pte = route(q, dfa, code);

  // The initiator's own memory is checked first: an error there never leaves the NIC.
  DmaPlace local{const_cast<u8*>(op.inlined), nullptr, false};
  if (op.inlined == nullptr && op.bytes > 0) {
    const Access want = op.is_get() ? Access::write : Access::read;
    const bool known = pte != nullptr && q.memory != nullptr && q.lac == f.lac &&
                       q.memory->covers(f.local_addr, op.bytes) && allows(q.memory->access, want);
    const MappedMemory* m = q.memory;
    if (!known) {
      ReturnCode local_code = ReturnCode::ok;
      m = find(f.lac, f.local_addr, op.bytes, want, local_code);
      if (m == nullptr) return {local_code, false};
      if (pte != nullptr) q.memory = m, q.lac = f.lac;
    }
    local = m->at(f.local_addr);
  }
  if (pte == nullptr) return {code, code != ReturnCode::undeliverable};

  ++pte->operations;
  if (shared_.config.pte_disable > 0 && pte->operations > shared_.config.pte_disable && !pte->fault_applied) {
    pte->fault_applied = true;
    counters_.pte_disabled += 1;
    change_state(*pte, PtlteState::disabled, true);
  }
  if (pte->state != PtlteState::enabled) return {ReturnCode::pt_disabled, true};
  ListEntry* const entry = list_entry(*pte, op, code);
  if (entry == nullptr) return {code, true};
  const Result result = move(op, local, *entry, injected);
  if (result.code == ReturnCode::ok) delivered(*pte, *entry, op);
  return result;
}

// --- the bytes -------------------------------------------------------------------------------------------

Engine::Result Engine::move(const Operation& op, const DmaPlace& local, const ListEntry& entry,
                            const model::InjectedFault& injected) {
  if (op.bytes == 0) return {};
  const Append& a = entry.append;
  const u64 offset = op.fields->remote_offset;
  const DmaPlace remote = entry.memory->at(a.start + offset);
  DmaPlace to = op.is_get() ? local : remote;
  DmaPlace from = op.is_get() ? remote : local;
  const Result broken{ReturnCode::undeliverable, false};
  std::optional<model::DeliberateRace> race;
  if (injected.fault != Fault::none) [[unlikely]] {
    switch (injected.fault) {
      case Fault::stale:
        shared_.faults.count(injected.fault);
        return {};
      case Fault::misplace: {
        // A put then writes to another place in the buffer, and a get reads from another place.
        const auto other = model::InjectedFault::elsewhere(offset, op.bytes, a.length);
        if (!other) break;
        race.emplace();
        (op.is_get() ? from : to) = entry.memory->at(a.start + *other);
        shared_.faults.count(injected.fault);
        break;
      }
      case Fault::corrupt: {
        scratch_.resize(op.bytes);
        const DmaPlace wire{scratch_.data(), nullptr, false};
        if (!copier_.copy(wire, from, op.bytes) || !settle()) return broken;
        injected.corrupt(scratch_.data(), op.bytes);
        shared_.faults.count(injected.fault);
        const bool done = copier_.copy(to, wire, op.bytes) && settle();
        return done ? Result{} : broken;
      }
      default:
        break;
    }
  }
  // A GPU copy is complete only after a round trip to the GPU, so many copies have to share one.
  burst_bytes_ += to.gpu || from.gpu ? op.bytes / kGpuShare : op.bytes;
  // ThreadSanitizer is told of a deliberate race of this thread's only.
  const bool done = race ? copier_.copy_alone(to, from, op.bytes) : copier_.copy(to, from, op.bytes);
  return done ? Result{} : broken;
}

/// Writes the target's own events and counts.
void Engine::delivered(TableEntry& pte, ListEntry& entry, const Operation& op) {
  const Append& a = entry.append;
  if (entry.has(append_flag::ct_comm) && a.ct != 0)
    count(a.ct, entry.has(append_flag::ct_bytes) ? op.bytes : 1, 0);
  const bool once = entry.has(append_flag::use_once);
  if (!entry.has(append_flag::success_disable) && !entry.has(append_flag::comm_disable)) {
    TargetLongEvent e;
    e.type = op.is_get() ? EventType::get : EventType::put;
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
    if (op.bytes > kLongestShortEvent) {
      write_event(pte.eq, e);
    } else {
      TargetEvent brief;
      static_cast<TargetHead&>(brief) = e;
      brief.length = e.mlength;
      write_event(pte.eq, brief);
    }
  }
  if (!once) return;
  if (!entry.has(append_flag::unlink_disable)) {
    TargetEvent e;
    e.type = EventType::unlink;
    e.ptlte_index = pte.index;
    e.buffer_id = a.buffer_id;
    e.ptl_list = a.ptl_list;
    e.auto_unlinked = true;
    write_event(pte.eq, e);
  }
  std::vector<ListEntry>& list = pte.lists[static_cast<u32>(a.ptl_list)];
  list.erase(list.begin());
  --list_entries_;
}

// --- reports to the initiator ----------------------------------------------------------------------------

void Engine::acknowledge(const Operation& op, const Result& result, const model::InjectedFault& injected) {
  const DmaFields& f = *op.fields;
  Acknowledgement a;
  a.flags = f.flags;
  a.is_get = op.is_get();
  a.result = result;
  a.ct = f.ct;
  a.eq = f.eq;
  a.bytes = op.bytes;
  a.user_ptr = op.user_ptr;
  if (careful_) [[unlikely]]
    return acknowledge_carefully(a, injected);
  complete(a);
}

/// Acknowledges at the time that the configuration asks for, and with the operation's fault. Its own
/// function, so that it costs nothing where neither is asked for.
[[gnu::noinline]] void Engine::acknowledge_carefully(const Acknowledgement& a,
                                                     const model::InjectedFault& injected) {
  u64 due_ns = 0;
  if (shared_.link.limited())
    due_ns = shared_.link.finish_time(now(), a.bytes + packets_of(a.bytes) * shared_.config.overhead);
  const u64 serial = acknowledged_++;
  if (shared_.config.jitter_ns > 0)
    due_ns = std::max(due_ns, now()) +
             pattern::mix64(shared_.config.seed ^ pattern::mix64(serial)) % (shared_.config.jitter_ns + 1);
  const bool reported = a.result.code != ReturnCode::ok || (a.eq != 0 && !a.flags.event_success_disable) ||
                        (a.ct != 0 && (a.is_get ? a.flags.event_ct_reply : a.flags.event_ct_ack));
  model::CompletionReport t{1, due_ns};
  // Without a report to the initiator nothing can be lost, late or reported twice.
  if (reported) t = shared_.faults.apply_to_completion(injected, due_ns, [this] { return now(); });
  for (; t.times > 0; --t.times) {
    if (t.due_ns == 0) complete(a);
    else late_.push(t.due_ns, a);
  }
}

/// Handles an acknowledgement that has arrived.
void Engine::complete(const Acknowledgement& a) {
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
  e.user_ptr = a.user_ptr;
  e.mlength = ok ? static_cast<u32>(a.bytes) : 0;
  if (a.eq != 0) write_event(a.eq, e);
}

bool Engine::release_late() {
  bool work = false;
  while (late_.due(now())) {
    complete(late_.pop());
    work = true;
  }
  return work;
}

}  // namespace doorbell::cxi
