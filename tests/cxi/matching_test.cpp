// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Tests of the software Cassini's matching portals entries: which memory takes what, what is kept of messages
// that nobody waited for, and what each end is told.

#include "cxi/atomics.hpp"
#include "matching_rig.hpp"

namespace doorbell::cxi {
namespace {

using namespace append_flag;

TEST(CxiMatching, AMessageGoesToTheFirstMemoryWithItsBits) {
  MatchingRig rig;
  rig.link(rig.memory(1, 0x10, 0, 4096));
  Append masked = rig.memory(2, 0x20, 4096, 4096);
  masked.ignore_bits = 0xf;
  rig.link(masked);
  rig.link(rig.memory(3, 0x21, 8192, 4096));  // never: the one before it takes the same bits
  const struct {
    u64 bits;
    u32 id;
    u64 at;
  } rows[] = {{0x10, 1, 0}, {0x21, 2, 4096}, {0x2f, 2, 4096}};
  for (const auto& r : rows) {
    rig.sent(rig.message(r.bits, 100, r.bits, 8), 100);
    EXPECT_TRUE(rig.arrived(100, r.bits, r.at + 8)) << r.bits;
    const auto e = rig.seen<TargetEvent>(EventType::put, r.id);
    EXPECT_EQ(e.match_bits, r.bits);
    EXPECT_EQ(e.header_data, r.bits * 3);
    EXPECT_EQ(e.initiator, rig.me());
    EXPECT_EQ(e.length, 100u);
    EXPECT_EQ(e.ptl_list, PortalsList::priority);
    EXPECT_FALSE(e.auto_unlinked);
  }
  rig.sent(rig.message(0x30, 100), 0, ReturnCode::entry_not_found);
  rig.sent(rig.message(0x10 | u64{1} << 63, 100), 0, ReturnCode::entry_not_found);
  rig.rx_events.expect_none();
  EXPECT_EQ(rig.counter("refused_operations"), 2u);
  EXPECT_TRUE(rig.untouched_behind(8192));
}

TEST(CxiMatching, TheMatchIdNamesInitiators) {
  MatchingRig rig;
  const Address a = rig.endpoint->address();
  const u32 any_nic = (1u << (32 - a.pid_bits)) - 1, any_pid = (1u << a.pid_bits) - 1;
  const struct {
    u32 match_id;
    bool takes;
  } rows[] = {{initiator_id(a.nid, a.pid, a.pid_bits), true},
              {initiator_id(a.nid, any_pid, a.pid_bits), true},
              {initiator_id(any_nic, a.pid, a.pid_bits), true},
              {kAnyone, true},
              {initiator_id(a.nid + 1, a.pid, a.pid_bits), false},
              {initiator_id(a.nid, a.pid + 1, a.pid_bits), false},
              {initiator_id(a.nid + 1, any_pid, a.pid_bits), false},
              {initiator_id(any_nic, a.pid + 1, a.pid_bits), false}};
  for (const auto& r : rows) {
    Append m = rig.memory(5, 9, 0, 4096, op_put | success_disable);
    m.match_id = r.match_id;
    rig.link(m);
    rig.sent(rig.message(9, 64), r.takes ? 64 : 0, r.takes ? ReturnCode::ok : ReturnCode::entry_not_found);
    rig.unlink(PortalsList::priority, 5);
  }
}

TEST(CxiMatching, UsedOnceIsGoneBeforeItsMessageIsTold) {
  MatchingRig rig;
  for (const u32 id : {1u, 2u}) rig.link(rig.memory(id, 7, id * 4096, 4096, op_put | use_once));
  for (const u32 id : {1u, 2u}) {
    rig.sent(rig.message(7, 64, id * 64), 64);
    EXPECT_TRUE(rig.seen<TargetLongEvent>(EventType::unlink, id).auto_unlinked);
    EXPECT_TRUE(rig.seen<TargetEvent>(EventType::put, id).auto_unlinked);
    EXPECT_TRUE(rig.arrived(64, id * 64, id * 4096));
  }
  rig.sent(rig.message(7, 64), 0, ReturnCode::entry_not_found);
  rig.link(rig.memory(3, 7, 0, 4096, op_put | use_once | unlink_disable | comm_disable));
  rig.sent(rig.message(7, 64), 64);
  rig.rx_events.expect_none();
}

TEST(CxiMatching, WhatDoesNotFitIsCutOffOrGoesToOtherMemory) {
  MatchingRig rig;
  rig.link(rig.memory(1, 7, 0, 100));
  rig.sent(rig.message(7, 300, 0, 40), 60);
  auto e = rig.seen<TargetLongEvent>(EventType::put, 1);
  EXPECT_EQ(e.mlength, 60u);
  EXPECT_EQ(e.rlength, 300u);
  EXPECT_EQ(e.remote_offset, 40u);
  EXPECT_EQ(e.start, rig.far.iova(40));
  EXPECT_TRUE(rig.arrived(60, 0, 40));
  EXPECT_TRUE(rig.untouched_behind(100));
  // From behind its end on nothing fits.
  for (const u64 offset : {u64{100}, u64{101}, (u64{1} << 56) - 1}) {
    rig.sent(rig.message(7, 300, 0, offset), 0);
    EXPECT_EQ(rig.seen<TargetLongEvent>(EventType::put, 1).mlength, 0u);
  }
  rig.unlink(PortalsList::priority, 1);
  rig.link(rig.memory(2, 7, 0, 100, op_put | no_truncate));
  rig.link(rig.memory(3, 7, 4096, 300, op_put | no_truncate));
  rig.sent(rig.message(7, 300), 300);
  EXPECT_EQ(rig.seen<TargetEvent>(EventType::put, 3).length, 300u);
  rig.sent(rig.message(7, 100), 100);
  (void)rig.seen<TargetEvent>(EventType::put, 2);
  rig.sent(rig.message(7, 301), 0, ReturnCode::entry_not_found);
  EXPECT_EQ(rig.counter("bytes"), 460u);
}

TEST(CxiMatching, MemoryThatTheDeviceHandsOut) {
  MatchingRig rig;
  // 3 KiB: unlinked when less than 1 KiB is left.
  Append m = rig.memory(1, 7, 0, 3072, op_put | manage_local | no_truncate);
  m.min_free = 1;
  rig.link(m);
  m.buffer_id = 2;
  m.start = rig.far.iova(8192);
  rig.link(m);
  u64 at = 0;
  for (const u32 n : {1000u, 1048u, 1u}) {
    rig.sent(rig.message(7, n, at, 555), n);  // the initiator's offset is for its own use
    const bool last = n == 1;
    if (last) {
      EXPECT_TRUE(rig.seen<TargetLongEvent>(EventType::unlink, 1).auto_unlinked);
    }
    const auto e = rig.seen<TargetLongEvent>(EventType::put, 1);
    EXPECT_EQ(e.start, rig.far.iova(at));
    EXPECT_EQ(e.remote_offset, 555u);
    EXPECT_EQ(e.mlength, n);
    EXPECT_EQ(e.auto_unlinked, last);
    at += n;
  }
  EXPECT_TRUE(rig.arrived(at));
  rig.sent(rig.message(7, 64), 64);
  EXPECT_EQ(rig.seen<TargetLongEvent>(EventType::put, 2).start, rig.far.iova(8192));
  rig.unlink(PortalsList::priority, 1, ReturnCode::entry_not_found);
  rig.unlink(PortalsList::priority, 2);
}

TEST(CxiMatching, UnexpectedMessagesWaitForTheirMemory) {
  MatchingRig rig;
  rig.link(rig.overflow(50, 65536, 65536));
  u64 at = 65536;
  for (const u64 bits : {1u, 2u, 3u, 2u}) {
    rig.sent(rig.message(bits, 100, bits * 200, 4), 100, ReturnCode::ok, PortalsList::overflow);
    const auto e = rig.seen<TargetLongEvent>(EventType::put, 50);
    EXPECT_EQ(e.ptl_list, PortalsList::overflow);
    EXPECT_EQ(e.start, rig.far.iova(at));
    EXPECT_TRUE(rig.arrived(100, bits * 200, at - 0));
    at += 100;
  }
  // For memory that is used once: the first with its bits, and it is never linked.
  rig.target.submit(rig.memory(2, 2, 0, 4096, op_put | use_once | unlink_disable));
  auto e = rig.seen<TargetLongEvent>(EventType::put_overflow, 2);
  EXPECT_EQ(e.match_bits, 2u);
  EXPECT_EQ(e.header_data, 6u);
  EXPECT_EQ(e.initiator, rig.me());
  EXPECT_EQ(e.start, rig.far.iova(65536 + 100));
  EXPECT_EQ(e.mlength, 100u);
  EXPECT_EQ(e.rlength, 100u);
  EXPECT_EQ(e.remote_offset, 0u) << "only the message's first event has it";
  EXPECT_EQ(e.ptl_list, PortalsList::priority);
  EXPECT_TRUE(e.auto_unlinked);
  rig.rx_events.expect_none();
  rig.target.submit(rig.memory(3, 9, 0, 4096, op_put | use_once));  // nobody has sent that
  (void)rig.seen<TargetLongEvent>(EventType::link, 3);
  // For memory that stays: all, the oldest first, and then it is linked.
  Append all = rig.memory(4, 0, 0, 4096);
  all.ignore_bits = 3;
  rig.target.submit(all);
  for (const u64 bits : {1u, 3u, 2u})
    EXPECT_EQ(rig.seen<TargetLongEvent>(EventType::put_overflow, 4).match_bits, bits);
  (void)rig.seen<TargetLongEvent>(EventType::link, 4);
  rig.sent(rig.message(3, 64), 64);
  (void)rig.seen<TargetEvent>(EventType::put, 4);
  rig.unlink(PortalsList::overflow, 50);
  EXPECT_TRUE(rig.untouched_behind(64));
}

TEST(CxiMatching, UnexpectedMessagesCountAndUseUpMemory) {
  MatchingRig rig;
  rig.link(rig.overflow(50, 65536, 65536));
  for (int n = 0; n < 3; ++n) {
    rig.sent(rig.message(7, 1000), 1000, ReturnCode::ok, PortalsList::overflow);
    (void)rig.seen<TargetLongEvent>(EventType::put, 50);
  }
  Append m = rig.memory(1, 7, 0, 2500, op_put | manage_local | ct_overflow | ct_bytes);
  m.ct = rig.ct.index();
  m.min_free = 1;
  rig.target.submit(m);
  EXPECT_FALSE(rig.seen<TargetLongEvent>(EventType::put_overflow, 1).auto_unlinked);
  EXPECT_TRUE(rig.seen<TargetLongEvent>(EventType::unlink, 1).auto_unlinked);
  EXPECT_TRUE(rig.seen<TargetLongEvent>(EventType::put_overflow, 1).auto_unlinked);
  rig.rx_events.expect_none();  // 500 bytes are left of it: it is not linked, and one message waits on
  rig.ct.expect(2000);
  rig.target.submit(rig.memory(2, 7, 0, 999, op_put | no_truncate | use_once));
  (void)rig.seen<TargetLongEvent>(EventType::link, 2);  // the message is longer
  rig.target.submit(rig.memory(3, 7, 0, 1000, op_put | no_truncate | use_once | unlink_disable));
  (void)rig.seen<TargetLongEvent>(EventType::put_overflow, 3);
}

TEST(CxiMatching, OverflowMemoryIsUnlinkedAndItsMessagesStay) {
  MatchingRig rig;
  rig.link(rig.overflow(50, 65536, 2048, 1, unlink_disable));
  for (const u64 bits : {1u, 2u}) {
    rig.sent(rig.message(bits, 700, bits * 900), 700, ReturnCode::ok, PortalsList::overflow);
    EXPECT_EQ(rig.seen<TargetLongEvent>(EventType::put, 50).auto_unlinked, bits == 2);
  }
  rig.sent(rig.message(3, 1), 0, ReturnCode::entry_not_found);
  rig.unlink(PortalsList::overflow, 50, ReturnCode::entry_not_found);
  // Memory that has been given back by hand is as good: events tell where the message was.
  rig.link(rig.overflow(51, 131072, 4096));
  rig.sent(rig.message(3, 10), 10, ReturnCode::ok, PortalsList::overflow);
  (void)rig.seen<TargetLongEvent>(EventType::put, 51);
  rig.unlink(PortalsList::overflow, 51);
  for (const u64 bits : {3u, 2u, 1u}) {
    rig.target.submit(rig.memory(4, bits, 0, 4096, op_put | use_once | unlink_disable));
    const auto e = rig.seen<TargetLongEvent>(EventType::put_overflow, 4);
    EXPECT_EQ(e.match_bits, bits);
    EXPECT_EQ(e.start, rig.far.iova(bits == 3 ? 131072 : 65536 + (bits - 1) * 700));
  }
  // Without its header a message is only in memory.
  rig.link(rig.overflow(52, 131072, 4096, 0, unexpected_hdr_disable));
  rig.sent(rig.message(3, 10), 10, ReturnCode::ok, PortalsList::overflow);
  (void)rig.seen<TargetLongEvent>(EventType::put, 52);
  rig.link(rig.memory(5, 3, 0, 4096));
}

TEST(CxiMatching, SearchFindsAndSearchAndDeleteTakes) {
  MatchingRig rig;
  rig.link(rig.overflow(50, 65536, 65536));
  for (const u64 bits : {0x11u, 0x12u, 0x21u}) {
    rig.sent(rig.message(bits, 10, 0, 5), 10, ReturnCode::ok, PortalsList::overflow);
    (void)rig.seen<TargetLongEvent>(EventType::put, 50);
  }
  const auto none = [&] {
    EXPECT_EQ(rig.rx_events.expect<TargetLongEvent>(EventType::search, ReturnCode::no_match).buffer_id, 60u);
  };
  const auto found = [&](EventType type, u64 bits) {
    const auto e = rig.seen<TargetLongEvent>(type, 60);
    EXPECT_EQ(e.match_bits, bits);
    EXPECT_EQ(e.rlength, 10u);
    EXPECT_EQ(e.ptl_list, PortalsList::unexpected);
  };
  rig.target.submit(rig.look_for(0x10, 0xf, QueueOpcode::search));
  found(EventType::search, 0x11);
  found(EventType::search, 0x12);
  none();
  rig.target.submit(rig.look_for(0x10, 0xf, QueueOpcode::search, use_once));
  found(EventType::search, 0x11);
  rig.target.submit(rig.look_for(0x30, 0xf, QueueOpcode::search, use_once));
  none();
  rig.target.submit(rig.look_for(0x12, 0, QueueOpcode::search_and_delete, use_once));  // in the middle
  found(EventType::put_overflow, 0x12);
  rig.target.submit(rig.look_for(0x21, 0, QueueOpcode::search_and_delete, use_once));  // the last
  found(EventType::put_overflow, 0x21);
  rig.sent(rig.message(0x31, 10), 10, ReturnCode::ok, PortalsList::overflow);
  (void)rig.seen<TargetLongEvent>(EventType::put, 50);
  rig.target.submit(rig.look_for(0, kAnyBits, QueueOpcode::search_and_delete));
  found(EventType::put_overflow, 0x11);
  found(EventType::put_overflow, 0x31);
  none();
  rig.link(rig.memory(1, 0x11, 0, 4096));  // nothing is left for it
  rig.rx_events.expect_none();
  EXPECT_EQ(name(rig.target.status().return_code), "OK");
}

TEST(CxiMatching, GetsAndTheirPermission) {
  MatchingRig rig;
  std::memset(rig.far.data(), 0x3c, 8192);
  rig.link(rig.memory(1, 7, 0, 4096, op_get));
  rig.sent(rig.message(7, 64, 0, 0, Opcode::get), 64);
  EXPECT_EQ(rig.near.data()[63], 0x3c);
  EXPECT_EQ(rig.seen<TargetEvent>(EventType::get, 1).length, 64u);
  rig.sent(rig.message(7, 64), 0, ReturnCode::op_violation);
  Append o = rig.overflow(50, 4096, 4096, 0, op_get);
  rig.link(o);
  rig.sent(rig.message(8, 32, 0, 0, Opcode::get), 32, ReturnCode::ok, PortalsList::overflow);
  (void)rig.seen<TargetLongEvent>(EventType::get, 50);
  rig.link(rig.memory(2, 8, 0, 4096, op_put | use_once));  // not for gets
  rig.target.submit(rig.memory(3, 8, 0, 4096, op_get | use_once | unlink_disable));
  EXPECT_EQ(rig.seen<TargetLongEvent>(EventType::get_overflow, 3).mlength, 32u);
}

TEST(CxiMatching, DataInTheCommandAndSendEvents) {
  MatchingRig rig;
  rig.link(rig.memory(1, 0, 0, 4096));
  rig.link(rig.memory(2, 77, 4096, 4096));
  CState state;
  state.index_ext = MatchingRig::kReceives;
  state.initiator = rig.me();
  state.user_ptr = 5;
  state.eq = rig.tx_events.index();
  rig.tx.submit(state);
  IdcPut put;
  put.dfa = rig.dfa(MatchingRig::kReceives).value;
  put.remote_offset = 16;
  put.bytes = 20;
  put.payload = rig.near.data() + 100;
  rig.tx.submit(put);
  EXPECT_EQ(rig.tx_events.expect<InitiatorEvent>(EventType::send).mlength, 20u);
  EXPECT_EQ(rig.tx_events.expect<InitiatorEvent>(EventType::ack).user_ptr, 5u);
  EXPECT_EQ(rig.seen<TargetEvent>(EventType::put, 1).length, 20u);
  EXPECT_TRUE(rig.arrived(20, 100, 16));
  IdcMessage small;
  small.dfa = put.dfa;
  small.match_bits = 77;
  small.header_data = 88;
  small.user_ptr = 99;
  for (const u32 bytes : {0u, 1u, 32u, 33u, 96u, 97u, 192u}) {
    small.bytes = bytes;
    small.payload = rig.near.data() + 3 * bytes;
    rig.tx.submit(small);
    EXPECT_EQ(rig.tx_events.expect<InitiatorEvent>(EventType::send).user_ptr, 99u);
    EXPECT_EQ(rig.tx_events.expect<InitiatorEvent>(EventType::ack).mlength, bytes);
    const auto e = rig.seen<TargetEvent>(EventType::put, 2);
    EXPECT_EQ(e.length, bytes);
    EXPECT_EQ(e.match_bits, 77u);
    EXPECT_EQ(e.header_data, 88u);
    EXPECT_EQ(e.initiator, rig.me());
    EXPECT_TRUE(rig.arrived(bytes, 3 * bytes, 4096)) << bytes;
  }
  small.bytes = 193;
  rig.tx.submit(small);
  (void)rig.tx_events.expect<CommandFailureEvent>(EventType::command_failure, ReturnCode::cmd_invalid_arg);
}

TEST(CxiMatching, AtomicsMatch) {
  MatchingRig rig;
  auto* const memory = reinterpret_cast<u64*>(rig.far.data());
  *reinterpret_cast<u64*>(rig.near.data()) = 5;
  rig.link(rig.memory(1, 7, 4096, 4096));
  rig.link(rig.memory(2, 8, 0, 12));
  DmaAtomic c;
  static_cast<DmaFields&>(c) = rig.message(8, 8);
  c.match_bits = 8;
  c.initiator = rig.me();
  c.atomic.op = AtomicOp::sum;
  c.atomic.type = AtomicType::u64;
  rig.tx.submit(c);
  (void)rig.tx_events.expect<InitiatorEvent>(EventType::ack);
  EXPECT_EQ(rig.seen<TargetEvent>(EventType::atomic, 2).length, 8u);
  EXPECT_EQ(memory[0], 5u);
  c.remote_offset = 8;  // the half of it would be behind the end
  rig.tx.submit(c);
  (void)rig.tx_events.expect<InitiatorEvent>(EventType::ack, ReturnCode::addr_out_of_range);
  EXPECT_EQ(memory[1], 0u);
}

// --- what must do no harm --------------------------------------------------------------------------------

TEST(CxiMatchingLimits, MessagesAndMemoriesShareTheRoom) {
  MatchingRig rig("cxi-model0:list-entries=3");
  for (int round = 0; round < 3; ++round) {
    rig.link(rig.overflow(50, 65536, 65536));
    for (const u64 bits : {1u, 2u}) {
      rig.sent(rig.message(bits, 64), 64, ReturnCode::ok, PortalsList::overflow);
      (void)rig.seen<TargetLongEvent>(EventType::put, 50);
    }
    rig.sent(rig.message(3, 64, 4096), 0, ReturnCode::no_space);
    EXPECT_TRUE(rig.untouched_behind(65536 + 128)) << "a message that is refused leaves no data";
    rig.target.submit(rig.memory(1, 1, 0, 64, op_put | use_once));
    (void)rig.rx_events.expect<TargetLongEvent>(EventType::link, ReturnCode::no_space);
    rig.target.submit(rig.look_for(1, 0, QueueOpcode::search_and_delete, use_once));
    (void)rig.seen<TargetLongEvent>(EventType::put_overflow, 60);
    rig.sent(rig.message(3, 64), 64, ReturnCode::ok, PortalsList::overflow);
    (void)rig.seen<TargetLongEvent>(EventType::put, 50);
    // A reset forgets all of it.
    for (const PtlteState state : {PtlteState::reset, PtlteState::enabled}) {
      SetState s;
      s.ptlte_index = rig.receives->index();
      s.ptlte_state = state;
      rig.target.submit(s);
      (void)rig.rx_events.expect<StateChangeLongEvent>(EventType::state_change);
    }
    rig.far.clear();
  }
}

TEST(CxiMatchingLimits, AnEntryThatGoesTakesItsMessagesAlong) {
  MatchingRig rig("cxi-model0:list-entries=2");
  for (int round = 0; round < 4; ++round) {
    rig.link(rig.overflow(50, 65536, 65536));
    rig.sent(rig.message(1, 64), 64, ReturnCode::ok, PortalsList::overflow);
    (void)rig.seen<TargetLongEvent>(EventType::put, 50);
    rig.receives.reset();
    rig.receives = rig.endpoint->create_portals_entry(*rig.rx_events.object, MatchingRig::kReceives, true);
    SetState s;
    s.ptlte_index = rig.receives->index();
    s.ptlte_state = PtlteState::enabled;
    rig.target.submit(s);
    (void)rig.rx_events.expect<StateChangeLongEvent>(EventType::state_change);
  }
}

TEST(CxiMatchingLimits, MemoryThatIsNotMappedIsNotReached) {
  MatchingRig rig;
  // All addresses that there are, of which two buffers are mapped.
  Append all = rig.memory(1, 7, 0, (u64{1} << 56) - 1, op_put | success_disable);
  all.start = 0;
  rig.link(all);
  const u64 end = rig.far.iova(1u << 20);
  rig.sent(rig.message(7, 64, 64, rig.far.iova(4096)), 64);
  EXPECT_TRUE(rig.arrived(64, 64, 4096));
  for (const u64 at : {end - 32, end, end + 4096, u64{0}, (u64{1} << 56) - 65})
    rig.sent(rig.message(7, 64, 0, at), 0, ReturnCode::no_translation);
  EXPECT_TRUE(rig.untouched_behind((1u << 20) - 32, 32));
  rig.unlink(PortalsList::priority, 1);
  all.start = (u64{1} << 57) - 1;
  rig.link(all);
  for (const u64 at : {u64{0}, u64{1}, (u64{1} << 56) - 65})
    rig.sent(rig.message(7, 64, 0, at), 0, ReturnCode::no_translation);
  // A wrong address context.
  rig.unlink(PortalsList::priority, 1);
  Append other = rig.memory(1, 7, 0, 4096);
  other.lac = (other.lac + 1) % kMaxContexts;
  rig.link(other);
  rig.sent(rig.message(7, 64), 0, ReturnCode::invalid_ac);
  EXPECT_EQ(rig.counter("refused_operations"), 9u);
}

TEST(CxiMatchingLimits, AMisplacedPutStaysInWhatIsMapped) {
  model::FaultRates faults;
  faults.probability[static_cast<u32>(model::Fault::misplace)] = 1;
  MatchingRig rig("cxi-model0", 65536, faults);
  Append all = rig.memory(1, 7, 0, (u64{1} << 56) - 1, op_put | success_disable);
  all.start = 0;
  rig.link(all);
  for (int n = 0; n < 200; ++n) rig.sent(rig.message(7, 64, 0, rig.far.iova(4096)), 64);
  EXPECT_EQ(rig.injected("misplace"), 200u);
  // All of the mapping has no other place, however much was appended.
  rig.sent(rig.message(7, 65536, 0, rig.far.iova()), 65536);
  EXPECT_TRUE(rig.arrived(65536));
  EXPECT_EQ(rig.injected("misplace"), 200u);
  EXPECT_EQ(rig.counter("dma_faults"), 0u);
}

TEST(CxiMatchingLimits, WrongListsAreRefused) {
  using Make = Append (*)(MatchingRig&);
  const Make rows[] = {
      [](MatchingRig& r) {
        Append a = r.memory(1, 7, 0, 4096);
        a.ptl_list = PortalsList::request;
        return a;
      },
      [](MatchingRig& r) {
        Append a = r.memory(1, 7, 0, 4096);
        a.ptl_list = PortalsList::unexpected;
        return a;
      },
      [](MatchingRig& r) {
        Append a = r.memory(1, 7, 0, 4096);
        a.ptlte_index = 2000;
        return a;
      },
      [](MatchingRig& r) {
        Append a = r.memory(1, 7, 0, 4096, op_put | manage_local);
        a.ptlte_index = r.pte->index();  // it does not match
        return a;
      },
  };
  for (const Make make : rows) {
    MatchingRig rig;
    rig.target.submit(make(rig));
    (void)rig.rx_events.expect<CommandFailureEvent>(EventType::command_failure, ReturnCode::cmd_invalid_arg);
  }
  for (const PortalsList list : {PortalsList::priority, PortalsList::overflow, PortalsList::request}) {
    MatchingRig rig;
    Search s = rig.look_for(7, 0, QueueOpcode::search_and_delete);
    s.ptl_list = list;
    rig.target.submit(s);
    (void)rig.rx_events.expect<CommandFailureEvent>(EventType::command_failure, ReturnCode::cmd_invalid_arg);
  }
}

TEST(CxiMatchingLimits, AKernelsCassiniSaysThatItHasNone) {
  const auto device = open_device({.spec = "cxi-model0:engine=kernel-on-cpu", .use = {.gpu_memory = false}});
  const auto endpoint = device->open(1);
  const Events events(*endpoint, 4096);
  EXPECT_THROW((void)endpoint->create_portals_entry(*events.object, 1, true), CallError);
  EXPECT_NE(endpoint->create_portals_entry(*events.object, 1, false), nullptr);
}

}  // namespace
}  // namespace doorbell::cxi
