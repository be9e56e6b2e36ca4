// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A rig whose target has a matching portals entry; and where a rendezvous put leaves its data, one of the
// initiator's. Each step is the test's own.
#pragma once

#include <utility>

#include "rig.hpp"

namespace doorbell::cxi {

inline constexpr u64 kAnyBits = ~u64{0};
inline constexpr u32 kAnyone = ~u32{0};

struct MatchingRig : Rig {
  static constexpr u32 kReceives = 1, kSources = 255;
  explicit MatchingRig(const std::string& spec = "cxi-model0", u64 bytes = 1u << 20,
                       const model::FaultRates& faults = {})
      : Rig({.spec = spec, .faults = faults, .bytes = bytes, .enable = false}),
        source_events(*endpoint, 4096),
        receives(endpoint->create_portals_entry(*rx_events.object, kReceives, true)),
        sources(endpoint->create_portals_entry(*source_events.object, kSources, true)) {
    far.clear();
    for (const auto& [entry, events] :
         {std::pair(receives.get(), &rx_events), {sources.get(), &source_events}}) {
      SetState s;
      s.ptlte_index = entry->index();
      s.ptlte_state = PtlteState::enabled;
      target.submit(s);
      (void)events->expect<StateChangeLongEvent>(EventType::state_change);
    }
  }
  /// Memory of the target, from `at` on.
  [[nodiscard]] Append memory(u32 id, u64 bits, u64 at, u64 bytes, u32 flags = append_flag::op_put) const {
    Append a = entry(flags);
    a.ptlte_index = receives->index();
    a.buffer_id = id;
    a.match_bits = bits;
    a.ignore_bits = 0;
    a.match_id = kAnyone;
    a.start = far.iova(at);
    a.length = bytes;
    return a;
  }
  /// The same on the overflow list, for all bits: the device hands it out piece by piece.
  [[nodiscard]] Append overflow(u32 id, u64 at, u64 bytes, u32 min_free = 0, u32 flags = 0) const {
    Append a = memory(id, 0, at, bytes,
                      append_flag::op_put | append_flag::manage_local | append_flag::no_truncate | flags);
    a.ptl_list = PortalsList::overflow;
    a.ignore_bits = kAnyBits;
    a.min_free = min_free;
    return a;
  }
  void link(const Append& a) {
    target.submit(a);
    EXPECT_EQ(rx_events.expect<TargetLongEvent>(EventType::link).buffer_id, a.buffer_id);
  }
  [[nodiscard]] u32 me() const {
    const Address a = endpoint->address();
    return initiator_id(a.nid, a.pid, a.pid_bits);
  }
  [[nodiscard]] FullDma message(u64 bits, u32 bytes, u64 local_at = 0, u64 remote_at = 0,
                                Opcode opcode = Opcode::put) const {
    FullDma c;
    set(c, bytes, local_at, remote_at);
    c.to(dfa(kReceives));
    c.opcode = opcode;
    c.match_bits = bits;
    c.initiator = me();
    c.header_data = bits * 3;
    c.user_ptr = bits + 1;
    c.ct = 0;
    c.flags.event_success_disable = false;
    return c;
  }
  /// The initiator's event of an operation: what the target took, from which list.
  InitiatorEvent sent(const FullDma& c, u32 bytes, ReturnCode code = ReturnCode::ok,
                      PortalsList list = PortalsList::priority) {
    tx.submit(c);
    const auto e =
        tx_events.expect<InitiatorEvent>(c.opcode == Opcode::get ? EventType::reply : EventType::ack, code);
    EXPECT_EQ(e.user_ptr, c.user_ptr);
    EXPECT_EQ(e.mlength, bytes);
    EXPECT_EQ(e.ptl_list, list);
    EXPECT_EQ(e.tgt_error, code != ReturnCode::ok);
    return e;
  }
  template <class E>
  E seen(EventType type, u32 id) {
    const E e = rx_events.expect<E>(type);
    EXPECT_EQ(e.buffer_id, id) << name(type);
    EXPECT_EQ(e.ptlte_index, receives->index());
    return e;
  }
  void unlink(PortalsList list, u32 id, ReturnCode code = ReturnCode::ok) {
    Unlink u;
    u.ptlte_index = receives->index();
    u.ptl_list = list;
    u.buffer_id = id;
    target.submit(u);
    EXPECT_EQ(rx_events.expect<TargetLongEvent>(EventType::unlink, code).buffer_id, id);
  }
  [[nodiscard]] Search look_for(u64 bits, u64 ignore, QueueOpcode opcode, u32 flags = 0) const {
    Search s;
    static_cast<Append&>(s) = memory(60, bits, 0, 1u << 30, flags);
    s.opcode = opcode;
    s.ptl_list = PortalsList::unexpected;
    s.ignore_bits = ignore;
    return s;
  }
  /// Nothing but the first `bytes` behind `at` has been written.
  [[nodiscard]] bool untouched_behind(u64 at, u64 bytes = 4096) {
    for (u64 k = 0; k < bytes; ++k)
      if (far.data()[at + k] != 0) return false;
    return true;
  }

  Events source_events;
  std::unique_ptr<PortalsEntry> receives, sources;
};

}  // namespace doorbell::cxi
