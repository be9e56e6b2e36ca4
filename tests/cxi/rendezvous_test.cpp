// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Tests of rendezvous puts: the eager part, and the get of the rest, by the NIC or by the program.

#include "cxi/model/matching.hpp"
#include "matching_rig.hpp"

namespace doorbell::cxi {
namespace {

using namespace append_flag;

constexpr u64 kBits = 0xabcd'0000'0000'0077;
constexpr u32 kId = 0x5a;
constexpr u64 kSourceBits = 0xabcd'0000'0000'0f5a;  // as the NIC asks: id, transaction type, upper bits

struct RendezvousRig : MatchingRig {
  explicit RendezvousRig(const std::string& spec = "cxi-model0") : MatchingRig(spec) {}
  /// The initiator's data from `at` on, for gets.
  void expose(u64 at, u64 bytes, u32 flags = op_get) {
    Append a = memory(90, kSourceBits, 0, bytes, flags);
    a.ptlte_index = sources->index();
    a.lac = near.md->lac();
    a.start = near.iova(at);
    a.ignore_bits = 0xf00;
    target.submit(a);
    (void)source_events.expect<TargetLongEvent>(EventType::link);
  }
  [[nodiscard]] FullDma put(u32 bytes, u32 eager, u64 local_at = 0, u64 remote_at = 0) const {
    FullDma c = message(kBits, bytes, local_at, remote_at, Opcode::rendezvous_put);
    c.eager_length = eager;
    c.rendezvous_id = kId;
    return c;
  }
  void put_event(u32 id, u32 mlength, u32 rlength, EventType type = EventType::put) {
    const auto e = seen<TargetLongEvent>(type, id);
    EXPECT_EQ(e.match_bits, kBits);
    EXPECT_EQ(e.mlength, mlength);
    EXPECT_EQ(e.rlength, rlength);
    EXPECT_TRUE(e.rendezvous);
    EXPECT_EQ(e.rendezvous_id, kId);
    EXPECT_EQ(e.header_data, kBits * 3);
    EXPECT_EQ(e.initiator, me());
  }
  TargetLongEvent rendezvous_event(u32 id, bool issued) {
    const auto e = seen<TargetLongEvent>(EventType::rendezvous, id);
    EXPECT_EQ(e.get_issued, issued);
    EXPECT_TRUE(e.rendezvous);
    EXPECT_EQ(e.match_bits, kSourceBits);
    EXPECT_EQ(e.initiator, dfa(kSources).value) << "where the get goes";
    return e;
  }
  void reply(u32 id, u32 bytes, ReturnCode code = ReturnCode::ok) {
    const auto e = rx_events.expect<InitiatorEvent>(EventType::reply, code);
    EXPECT_TRUE(e.rendezvous);
    EXPECT_EQ(e.mlength, bytes);
    const auto p = unpack<RendezvousPointer>(&e.user_ptr);
    const Address a = endpoint->address();
    EXPECT_EQ(p.source_nid, a.nid);
    EXPECT_EQ(p.source_pid, a.pid);
    EXPECT_EQ(p.ptlte_index, receives->index());
    EXPECT_EQ(p.rendezvous_id, kId);
    EXPECT_EQ(p.buffer_id, id);
  }
};

TEST(CxiRendezvous, TheNicGetsWhatTheEagerPartHasNotBrought) {
  for (const u32 eager : {0u, 1u, 2048u, 10'000u, (1u << 20) - 1}) {
    SCOPED_TRACE(eager);
    RendezvousRig rig;
    rig.expose(3000, 10'000);
    Append m = rig.memory(1, kBits, 0, 65536, op_put | success_disable | ct_comm);
    m.ct = rig.ct.index();
    rig.link(m);
    const u32 brought = std::min(eager, 10'000u);
    EXPECT_TRUE(rig.sent(rig.put(10'000, eager, 3000, 500), brought).rendezvous);
    rig.put_event(1, brought, 10'000);
    const auto e = rig.rendezvous_event(1, true);
    EXPECT_EQ(e.start, rig.far.iova(500 + brought));
    EXPECT_EQ(e.remote_offset, brought);
    EXPECT_EQ(e.mlength, brought);
    rig.reply(1, 10'000 - brought);
    EXPECT_EQ(rig.source_events.expect<TargetEvent>(EventType::get).length, 10'000 - brought);
    EXPECT_TRUE(rig.arrived(10'000, 3000, 500));
    EXPECT_TRUE(rig.untouched_behind(10'500));
    rig.ct.expect(2);  // the put, and the reply
    EXPECT_EQ(rig.counter("bytes"), 10'000u);
    EXPECT_EQ(rig.counter("puts"), 1u);
    EXPECT_EQ(rig.counter("gets"), 1u);
  }
}

TEST(CxiRendezvous, TheOffsetCanBeTheSources) {
  RendezvousRig rig;
  rig.expose(0, 1u << 20);
  rig.link(rig.memory(1, kBits, 0, 65536));
  FullDma c = rig.put(5000, 1000, 7000, 7000);
  c.flags.use_offset_for_get = true;
  rig.sent(c, 1000);
  rig.put_event(1, 1000, 5000);
  EXPECT_EQ(rig.rendezvous_event(1, true).remote_offset, 8000u);
  rig.reply(1, 4000);
  EXPECT_TRUE(rig.arrived(5000, 7000, 0));
}

TEST(CxiRendezvous, AnUnexpectedOneWaitsForItsMemory) {
  RendezvousRig rig;
  rig.expose(0, 1u << 20);
  rig.link(rig.overflow(50, 65536, 65536));
  // Only the eager part needs room there, but a message that is not to be cut off does not fit.
  FullDma c = rig.put(6000, 1000, 4000, 4000);
  c.flags.use_offset_for_get = true;
  rig.sent(c, 1000, ReturnCode::ok, PortalsList::overflow);
  rig.put_event(50, 1000, 6000);
  rig.rx_events.expect_none();
  rig.target.submit(rig.memory(1, kBits, 0, 65536, op_put | use_once | unlink_disable | manage_local));
  rig.put_event(1, 1000, 6000, EventType::put_overflow);
  const auto e = rig.rendezvous_event(1, true);
  EXPECT_EQ(e.start, rig.far.iova(1000));
  EXPECT_EQ(e.remote_offset, 5000u);
  rig.reply(1, 5000);
  EXPECT_TRUE(rig.arrived(1000, 4000, 65536)) << "the eager part stays in the overflow list's memory";
  EXPECT_TRUE(rig.arrived(5000, 5000, 1000));
  EXPECT_TRUE(rig.untouched_behind(6000));
  // SEARCH_AND_DELETE leaves the get to the program.
  rig.sent(c, 1000, ReturnCode::ok, PortalsList::overflow);
  rig.put_event(50, 1000, 6000);
  rig.target.submit(rig.look_for(kBits, 0, QueueOpcode::search_and_delete, use_once));
  rig.put_event(60, 1000, 6000, EventType::put_overflow);
  rig.rx_events.expect_none();
}

TEST(CxiRendezvous, SeveralUnexpectedOnesShareMemory) {
  RendezvousRig rig;
  rig.expose(0, 1u << 20);
  rig.link(rig.overflow(50, 65536, 65536));
  for (u32 n = 0; n < 3; ++n) {
    FullDma c = rig.put(1000, 100, n * 2000, n * 2000);
    c.flags.use_offset_for_get = true;
    rig.sent(c, 100, ReturnCode::ok, PortalsList::overflow);
    rig.put_event(50, 100, 1000);
  }
  rig.target.submit(rig.memory(1, kBits, 0, 65536, op_put | manage_local));
  for (u32 n = 0; n < 3; ++n) {
    rig.put_event(1, 100, 1000, EventType::put_overflow);
    EXPECT_EQ(rig.rendezvous_event(1, true).start, rig.far.iova(n * 1000 + 100));
    rig.reply(1, 900);
    EXPECT_TRUE(rig.arrived(900, n * 2000 + 100, n * 1000 + 100)) << n;
  }
  (void)rig.seen<TargetLongEvent>(EventType::link, 1);
  for (u32 n = 0; n < 2; ++n) {
    FullDma c = rig.put(1000, 100, 50'000 + n, 50'000 + n);
    c.flags.use_offset_for_get = true;
    rig.sent(c, 100);
    rig.put_event(1, 100, 1000);
    EXPECT_EQ(rig.rendezvous_event(1, true).start, rig.far.iova(3100 + n * 1000));
    rig.reply(1, 900);
    EXPECT_TRUE(rig.arrived(1000, 50'000 + n, 3000 + n * 1000));
  }
}

TEST(CxiRendezvous, MemoryThatIsTooShortCutsTheGetOff) {
  RendezvousRig rig;
  rig.expose(0, 1u << 20);
  rig.link(rig.memory(1, kBits, 0, 3000, op_put | use_once | unlink_disable));
  rig.sent(rig.put(9000, 1000), 1000);
  rig.put_event(1, 1000, 9000);
  (void)rig.rendezvous_event(1, true);
  rig.reply(1, 2000);
  EXPECT_TRUE(rig.arrived(3000));
  EXPECT_TRUE(rig.untouched_behind(3000));
  rig.link(rig.memory(2, kBits, 0, 500, op_put | use_once | unlink_disable));
  rig.sent(rig.put(9000, 1000), 500);
  rig.put_event(2, 500, 9000);
  (void)rig.rendezvous_event(2, true);
  rig.reply(2, 0);
}

TEST(CxiRendezvous, TheProgramGetsItself) {
  RendezvousRig rig("cxi-model0:rendezvous-get=program");
  rig.expose(0, 1u << 20);
  rig.link(rig.memory(1, kBits, 0, 65536));
  rig.sent(rig.put(5000, 1000), 1000);
  rig.put_event(1, 1000, 5000);
  const auto e = rig.rendezvous_event(1, false);
  rig.rx_events.expect_none();
  EXPECT_TRUE(rig.untouched_behind(1000));
  FullDma get = rig.message(e.match_bits, e.rlength - e.mlength, 0, e.remote_offset, Opcode::get);
  get.to(rig.dfa(511));  // every index above the last one is the last
  get.lac = rig.far.md->lac();
  get.local_addr = e.start;
  EXPECT_FALSE(rig.sent(get, 4000).rendezvous);
  EXPECT_TRUE(rig.arrived(5000));
  EXPECT_EQ(rig.source_events.expect<TargetEvent>(EventType::get).length, 4000u);
}

TEST(CxiRendezvous, AGetThatFindsNothingIsToldByItsReply) {
  RendezvousRig rig;
  rig.link(rig.memory(1, kBits, 0, 65536));
  const auto fails = [&](ReturnCode code, const FullDma& c) {
    SCOPED_TRACE(name(code));
    rig.sent(c, 100);
    rig.rx_events.expect<TargetLongEvent>(EventType::put);
    rig.rx_events.expect<TargetLongEvent>(EventType::rendezvous);
    EXPECT_TRUE(rig.rx_events.expect<InitiatorEvent>(EventType::reply, code).tgt_error);
    EXPECT_TRUE(rig.untouched_behind(100));
  };
  fails(ReturnCode::entry_not_found, rig.put(5000, 100));  // nothing is exposed
  rig.expose(0, 65536, op_put);
  fails(ReturnCode::op_violation, rig.put(5000, 100));
  FullDma c = rig.put(5000, 100);
  c.initiator += 1u << (32 - 9);
  fails(ReturnCode::vni_not_found, c);  // a process that is not there
  rig.sources.reset();
  fails(ReturnCode::ptlte_not_found, rig.put(5000, 100));
  EXPECT_EQ(rig.counter("refused_operations"), 4u);
  EXPECT_EQ(rig.counter("bytes"), 400u);
  // To an entry that does not match there is none.
  c = rig.put(5000, 100);
  c.to(rig.dfa(0));
  SetState s;
  s.ptlte_index = rig.pte->index();
  s.ptlte_state = PtlteState::enabled;
  rig.target.submit(s);
  rig.rx_events.expect<StateChangeLongEvent>(EventType::state_change);
  Append plain = rig.memory(1, 0, 0, 4096);
  plain.ptlte_index = rig.pte->index();
  rig.target.submit(plain);
  rig.rx_events.expect<TargetLongEvent>(EventType::link);
  rig.sent(c, 0, ReturnCode::op_violation);
  // The source's memory is checked before anything is sent.
  c = rig.put(5000, 100);
  c.local_addr = rig.near.iova(1u << 20);
  rig.tx.submit(c);
  EXPECT_FALSE(rig.tx_events.expect<InitiatorEvent>(EventType::ack, ReturnCode::no_translation).tgt_error);
}

/// A process that receives where it exposes: the gets find messages in the list that they come from.
void pulls_from_itself(int messages) {
  RendezvousRig rig;
  const auto at_sources = [&](Append a) {
    a.ptlte_index = rig.sources->index();
    return a;
  };
  Append o = at_sources(rig.overflow(50, 65536, 65536, 0, op_get));
  rig.target.submit(o);
  (void)rig.source_events.expect<TargetLongEvent>(EventType::link);
  for (int n = 0; n < messages; ++n) {
    FullDma c = rig.put(500, 100);
    c.to(rig.dfa(MatchingRig::kSources));
    rig.sent(c, 100, ReturnCode::ok, PortalsList::overflow);
    (void)rig.source_events.expect<TargetLongEvent>(EventType::put);
  }
  Append all = at_sources(rig.memory(1, 0, 0, 4096, op_put | op_get));
  all.ignore_bits = kAnyBits;
  rig.target.submit(all);
  // Each message brings a get, which the overflow list keeps, too; and those go to the same memory at last.
  int puts = 0, gets = 0, replies = 0, linked = 0;
  while (linked == 0) {
    const auto p = rig.source_events.wait();
    ASSERT_TRUE(p.has_value());
    puts += p->type == EventType::put_overflow ? 1 : 0;
    gets += p->type == EventType::get_overflow ? 1 : 0;
    replies += p->type == EventType::reply ? 1 : 0;
    linked += p->type == EventType::link ? 1 : 0;
  }
  EXPECT_EQ(puts, messages);
  EXPECT_EQ(replies, messages);
  EXPECT_EQ(gets, messages);
}

TEST(CxiRendezvous, AProcessThatPullsFromItself) {
  pulls_from_itself(1);
  pulls_from_itself(5);
}

}  // namespace
}  // namespace doorbell::cxi
