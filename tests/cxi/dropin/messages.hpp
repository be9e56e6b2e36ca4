// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The two ends of a program that sends: the receiver's matching portals entry, and what the sender has for
// gets of the rest of its rendezvous puts.
#pragma once

#include "cxi/dropin/program.hpp"

namespace doorbell::cxi::program {

inline constexpr u64 kMatching = 1 << 7;
inline constexpr u64 kBits = 0x1234'0000'0000'5678;
inline constexpr u32 kRendezvousIndex = 24;  // where the device's description has the index for gets

/// A receiver, whose memory is appended by the test.
struct Receiver : Target {
  explicit Receiver(End& e, u32 idx = 3) : Target(e, 1 << 16, kQuietPutGet, idx, kMatching) { unlink(7); }
  [[nodiscard]] Append memory(u32 id, u64 bits, u64 at, u64 bytes, u32 flags = append_flag::op_put) const {
    Append a;
    a.ptlte_index = index();
    a.flags = flags;
    a.lac = Target::memory.lac();
    a.start = Target::memory.iova(at);
    a.length = bytes;
    a.buffer_id = id;
    a.match_bits = bits;
    a.match_id = ~u32{0};
    return a;
  }
  void link(const Append& a) {
    commands.submit(a);
    EXPECT_EQ(events.expect<TargetLongEvent>(EventType::link).buffer_id, a.buffer_id);
  }
  [[nodiscard]] const u8* data(u64 at = 0) const { return Target::memory.buffer.data + at; }
};

/// Memory of the sender, for gets of the rest of its rendezvous puts.
struct Source {
  Source(End& e, Initiator& i, u32 rendezvous_id)
      : events(e.lni, 4 * kPageBytes), commands(e.lni, events.eq, {.count = 64}) {
    const u64 options = kMatching;
    EXPECT_EQ(cxil_alloc_pte(e.lni, events.eq, &options, &pte), 0);
    EXPECT_EQ(cxil_map_pte(pte, e.domain, field<u32>(e.dev, kRendezvousIndex), false, &map), 0);
    SetState s;
    s.ptlte_index = field<u32>(pte, 0);
    s.ptlte_state = PtlteState::enabled;
    commands.submit(s);
    (void)events.expect<StateChangeLongEvent>(EventType::state_change);
    Append a;
    a.ptlte_index = s.ptlte_index;
    a.flags = append_flag::op_get;
    a.lac = i.memory.lac();
    a.start = i.memory.iova();
    a.length = i.memory.buffer.bytes;
    a.match_bits = (kBits & u64{0xffff} << 48) | rendezvous_id;
    a.ignore_bits = 0xf00;
    a.match_id = initiator_id(e.nid, kAnyPid, e.pid_bits);
    commands.submit(a);
    (void)events.expect<TargetLongEvent>(EventType::link);
  }
  ~Source() {
    EXPECT_EQ(cxil_unmap_pte(map), 0);
    EXPECT_EQ(cxil_destroy_pte(pte), 0);
  }
  Events events;
  Commands commands;
  void* pte = nullptr;
  void* map = nullptr;
};

inline FullDma message(const Initiator& i, u32 to, u64 bits, u32 n, u64 local = 0,
                       Opcode opcode = Opcode::put) {
  FullDma c = i.operation(opcode, to, n, local, 0, 3);
  c.match_bits = bits;
  c.header_data = ~bits;
  c.initiator = initiator_id(i.end.nid, i.end.pid(), i.end.pid_bits);
  return c;
}

}  // namespace doorbell::cxi::program
