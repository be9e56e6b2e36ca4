// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Portals entries: their states and their buffers.

#include "cxi/model/engine.hpp"

namespace doorbell::cxi {

ReturnCode Engine::append(const u64* words) {
  Append a;
  if (!decode(words, a)) return ReturnCode::cmd_invalid_arg;
  TableEntry* const pte = table_[a.ptlte_index];
  const bool known_list = a.ptl_list == PortalsList::priority || a.ptl_list == PortalsList::overflow;
  // Buffers from which the NIC hands out one piece after the other are not modelled.
  const bool modelled = known_list && (a.flags & append_flag::manage_local) == 0;
  if (pte == nullptr || !modelled || (a.ct != 0 && counting_event(a.ct) == nullptr))
    return ReturnCode::cmd_invalid_arg;

  const bool space = list_entries_ < shared_.config.max_list_entries;
  if (space) {
    pte->lists[static_cast<u32>(a.ptl_list)].push_back({a, nullptr, 0});
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

ReturnCode Engine::set_state(const u64* words) {
  SetState s;
  if (!decode(words, s)) return ReturnCode::cmd_invalid_arg;
  TableEntry* const pte = table_[s.ptlte_index];
  const bool known = s.ptlte_state == PtlteState::reset || s.ptlte_state == PtlteState::disabled ||
                     s.ptlte_state == PtlteState::enabled;
  // Ethernet, and matching by software, are not modelled.
  if (pte == nullptr || !known) return ReturnCode::cmd_invalid_arg;
  if (s.ptlte_state == PtlteState::reset) {
    for (auto& list : pte->lists) {
      list_entries_ -= static_cast<u32>(list.size());
      list.clear();
    }
  }
  change_state(*pte, s.ptlte_state, false);
  return ReturnCode::ok;
}

void Engine::change_state(TableEntry& pte, PtlteState state, bool by_nic) {
  pte.state = state;
  StateChangeEvent e;
  e.type = EventType::state_change;
  e.ptlte_state = state;
  e.by_nic = by_nic;
  e.ptlte_index = pte.index;
  write_event(pte.eq, e);
}

}  // namespace doorbell::cxi
