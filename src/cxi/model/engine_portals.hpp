// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Engine: portals entries, their states and their buffers.
#pragma once

#include "cxi/model/engine.hpp"

namespace doorbell::cxi {

template <class Parts>
DOORBELL_GPU_NOINLINE void Engine<Parts>::remove_entry(u32 index) {
  TableEntry& pte = parts_.objects.table[index];
  for (Chain& list : pte.lists)
    while (!list.empty()) drop_first(list);
  pte = {};
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

template <class Parts>
DOORBELL_GPU_NOINLINE ReturnCode Engine<Parts>::append(const u64* words) {
  Append a;
  if (!decode(words, a)) return ReturnCode::cmd_invalid_arg;
  TableEntry* const pte = table_entry(a.ptlte_index);
  const bool known_list = a.ptl_list == PortalsList::priority || a.ptl_list == PortalsList::overflow;
  // Buffers from which the NIC hands out one piece after the other are not modelled.
  const bool modelled = known_list && (a.flags & append_flag::manage_local) == 0;
  if (pte == nullptr || !modelled || (a.ct != 0 && counting_event(a.ct) == nullptr))
    return ReturnCode::cmd_invalid_arg;

  const bool space = list_entries_ < parts_.rule.max_list_entries;
  if (space) {
    u32 place = free_entry_;
    if (place != kNobody) free_entry_ = parts_.list_entry(place).next;
    else place = fresh_entry_++;
    ListEntry& entry = parts_.list_entry(place);
    entry = {};
    entry.append = a;
    Chain& list = pte->lists[static_cast<u32>(a.ptl_list)];
    (list.empty() ? list.first : parts_.list_entry(list.last).next) = place;
    list.last = place;
    ++list_entries_;
  }
  if (space && (a.flags & append_flag::link_disable) != 0) return ReturnCode::ok;
  TargetEvent e;
  e.type = EventType::link;
  e.return_code = space ? ReturnCode::ok : ReturnCode::no_space;
  e.ptlte_index = pte->index;
  e.ptl_list = a.ptl_list;
  e.buffer_id = a.buffer_id;
  write_event(pte->eq, e);
  return ReturnCode::ok;
}

template <class Parts>
DOORBELL_GPU_NOINLINE ReturnCode Engine<Parts>::set_state(const u64* words) {
  SetState s;
  if (!decode(words, s)) return ReturnCode::cmd_invalid_arg;
  TableEntry* const pte = table_entry(s.ptlte_index);
  const bool known = s.ptlte_state == PtlteState::reset || s.ptlte_state == PtlteState::disabled ||
                     s.ptlte_state == PtlteState::enabled;
  // Ethernet, and matching by software, are not modelled.
  if (pte == nullptr || !known) return ReturnCode::cmd_invalid_arg;
  if (s.ptlte_state == PtlteState::reset) {
    for (Chain& list : pte->lists)
      while (!list.empty()) drop_first(list);
  }
  change_state(*pte, s.ptlte_state, false);
  return ReturnCode::ok;
}

template <class Parts>
DOORBELL_GPU_NOINLINE void Engine<Parts>::change_state(TableEntry& pte, PtlteState state, bool by_nic) {
  pte.state = state;
  StateChangeEvent e;
  e.type = EventType::state_change;
  e.ptlte_state = state;
  e.by_nic = by_nic;
  e.ptlte_index = pte.index;
  write_event(pte.eq, e);
}

}  // namespace doorbell::cxi
