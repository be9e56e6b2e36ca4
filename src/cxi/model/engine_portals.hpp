// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Engine: portals entries, their states and their buffers.
#pragma once

#include "cxi/model/engine.hpp"

namespace doorbell::cxi {

template <class Parts>
DOORBELL_GPU_NOINLINE void Engine<Parts>::remove_entry(u32 index) {
  TableEntry& pte = parts_.objects.table[index];
  empty(pte);
  pte = {};
}

/// Frees all buffers of a portals entry.
template <class Parts>
DOORBELL_GPU_NOINLINE void Engine<Parts>::empty(TableEntry& pte) {
  for (Chain& list : pte.lists)
    while (!list.empty()) drop_first(list);
  forget_all(pte);
}

/// Frees the first buffer of a list.
template <class Parts>
DOORBELL_HD void Engine<Parts>::drop_first(Chain& list) {
  const u32 place = list.first;
  ListEntry& entry = parts_.list_entry(place);
  list.first = entry.next;
  entry.next = free_entry_;
  free_entry_ = place;
  --list_entries_;
}

/// Frees the buffer at `place` of a list, behind the one at `before`.
template <class Parts>
DOORBELL_HD void Engine<Parts>::drop(Chain& list, u32 before, u32 place) {
  if (before == kNobody) return drop_first(list);
  ListEntry& entry = parts_.list_entry(place);
  parts_.list_entry(before).next = entry.next;
  if (list.last == place) list.last = before;
  entry.next = free_entry_;
  free_entry_ = place;
  --list_entries_;
}

template <class Parts>
DOORBELL_HD void Engine<Parts>::report_unlink(const TableEntry& pte, PortalsList list, u32 buffer_id,
                                              bool by_nic, ReturnCode code) {
  TargetLongEvent e;
  e.type = EventType::unlink;
  e.return_code = code;
  e.ptlte_index = pte.index;
  e.buffer_id = buffer_id;
  e.ptl_list = list;
  e.auto_unlinked = by_nic;
  write_event(pte.owner, pte.eq, e);
}

/// Takes the first buffer with the command's number out of a list.
template <class Parts>
DOORBELL_GPU_NOINLINE ReturnCode Engine<Parts>::unlink(const WorkQueue& q, const u64* words) {
  Unlink a;
  if (!decode(words, a)) return ReturnCode::cmd_invalid_arg;
  TableEntry* const pte = table_entry(q.owner, a.ptlte_index);
  if (pte == nullptr || (a.ptl_list != PortalsList::priority && a.ptl_list != PortalsList::overflow))
    return ReturnCode::cmd_invalid_arg;
  Chain& list = pte->lists[static_cast<u32>(a.ptl_list)];
  u32 before = kNobody;
  for (u32 place = list.first; place != kNobody; before = place, place = parts_.list_entry(place).next) {
    if (parts_.list_entry(place).append.buffer_id != a.buffer_id) continue;
    // All that the buffer has received is in place when its owner learns that he may free it.
    if (!settle()) return ReturnCode::ok;
    drop(list, before, place);
    report_unlink(*pte, a.ptl_list, a.buffer_id, false, ReturnCode::ok);
    return ReturnCode::ok;
  }
  report_unlink(*pte, a.ptl_list, a.buffer_id, false, ReturnCode::entry_not_found);
  return ReturnCode::ok;
}

template <class Parts>
DOORBELL_GPU_NOINLINE ReturnCode Engine<Parts>::append(const WorkQueue& q, const u64* words) {
  Append a;
  if (!decode(words, a)) return ReturnCode::cmd_invalid_arg;
  TableEntry* const pte = table_entry(q.owner, a.ptlte_index);
  const bool known_list = a.ptl_list == PortalsList::priority || a.ptl_list == PortalsList::overflow;
  if (pte == nullptr || !known_list || (a.ct != 0 && counting_event(q.owner, a.ct) == nullptr))
    return ReturnCode::cmd_invalid_arg;
  // Memory from which the NIC hands out one piece after the other: of matching portals entries only.
  if (!pte->matching && (a.flags & append_flag::manage_local) != 0) return ReturnCode::cmd_invalid_arg;

  const bool space = list_entries_ < parts_.rule.max_list_entries;
  if (space) {
    u32 place = free_entry_;
    if (place != kNobody) free_entry_ = parts_.list_entry(place).next;
    else place = fresh_entry_++;
    ListEntry& entry = parts_.list_entry(place);
    entry = {};
    entry.append = a;
    ++list_entries_;
    if constexpr (Parts::kMatching)
      if (pte->matching && a.ptl_list == PortalsList::priority && take_unexpected(*pte, entry)) {
        entry.next = free_entry_;
        free_entry_ = place;
        --list_entries_;
        return ReturnCode::ok;
      }
    Chain& list = pte->lists[static_cast<u32>(a.ptl_list)];
    (list.empty() ? list.first : parts_.list_entry(list.last).next) = place;
    list.last = place;
  }
  if (space && (a.flags & append_flag::link_disable) != 0) return ReturnCode::ok;
  TargetLongEvent e;
  e.type = EventType::link;
  e.return_code = space ? ReturnCode::ok : ReturnCode::no_space;
  e.ptlte_index = pte->index;
  e.ptl_list = a.ptl_list;
  e.buffer_id = a.buffer_id;
  write_event(pte->owner, pte->eq, e);
  return ReturnCode::ok;
}

template <class Parts>
DOORBELL_GPU_NOINLINE ReturnCode Engine<Parts>::set_state(const WorkQueue& q, const u64* words) {
  SetState s;
  if (!decode(words, s)) return ReturnCode::cmd_invalid_arg;
  TableEntry* const pte = table_entry(q.owner, s.ptlte_index);
  const bool known = s.ptlte_state == PtlteState::reset || s.ptlte_state == PtlteState::disabled ||
                     s.ptlte_state == PtlteState::enabled;
  // Ethernet, and matching by software, are not modelled.
  if (pte == nullptr || !known) return ReturnCode::cmd_invalid_arg;
  if (s.ptlte_state == PtlteState::reset) empty(*pte);
  change_state(*pte, s.ptlte_state, false);
  return ReturnCode::ok;
}

template <class Parts>
DOORBELL_GPU_NOINLINE void Engine<Parts>::change_state(TableEntry& pte, PtlteState state, bool by_nic) {
  pte.state = state;
  StateChangeLongEvent e;
  e.type = EventType::state_change;
  e.ptlte_state = state;
  e.by_nic = by_nic;
  e.ptlte_index = pte.index;
  write_event(pte.owner, pte.eq, e);
}

}  // namespace doorbell::cxi
