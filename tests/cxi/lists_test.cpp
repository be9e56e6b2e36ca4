// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Tests of the software Cassini's lists: buffers that are appended, used once, unlinked, and the room that
// they give back.

#include "rig.hpp"

namespace doorbell::cxi {
namespace {

constexpr u32 kSilent =
    append_flag::unlink_disable | append_flag::success_disable | append_flag::comm_disable;

TEST(CxiLists, RoomEndsAndComesBack) {
  Rig rig({.spec = "cxi-model0:list-entries=2"});
  rig.append(kSilent | append_flag::op_put);
  rig.target.submit(rig.entry(kSilent | append_flag::op_put));
  const auto full = rig.rx_events.expect<TargetLongEvent>(EventType::link, ReturnCode::no_space);
  EXPECT_EQ(full.ptlte_index, rig.pte->index());
  rig.set_state(PtlteState::reset);
  rig.append(kSilent | append_flag::op_put);
}

TEST(CxiLists, ABufferThatIsUsedOnceGivesItsRoomBack) {
  Rig rig({.spec = "cxi-model0:list-entries=2", .enable = false});
  rig.set_state(PtlteState::enabled);
  for (const PortalsList list : {PortalsList::priority, PortalsList::overflow})
    for (u32 n = 0; n < 5; ++n) {
      Append a = rig.entry(kSilent | append_flag::op_put | append_flag::use_once);
      a.ptl_list = list;
      for (int twice = 0; twice < 2; ++twice) {
        rig.target.submit(a);
        (void)rig.rx_events.expect<TargetLongEvent>(EventType::link);
      }
      const u64 done = rig.ct.read().success;
      rig.tx.submit(rig.put(64));
      rig.tx.submit(rig.put(64));
      rig.ct.expect(done + 2);
      if (HasFailure()) return;  // each wait for what never comes is long
    }
}

TEST(CxiLists, APortalsEntryThatGoesGivesTheRoomOfItsBuffersBack) {
  Rig rig({.spec = "cxi-model0:list-entries=2"});
  for (u32 n = 0; n < 5; ++n) {
    const auto other = rig.endpoint->create_portals_entry(*rig.rx_events.object, 7);
    Append a = rig.entry(kSilent | append_flag::op_put);
    a.ptlte_index = other->index();
    rig.target.submit(a);
    EXPECT_EQ(rig.rx_events.expect<TargetLongEvent>(EventType::link).ptlte_index, other->index());
    if (HasFailure()) return;
  }
}

TEST(CxiLists, LinkEventsCanBeLeftOutButNotTheirFailure) {
  Rig rig({.spec = "cxi-model0:list-entries=1",
           .append_flags = kSilent | append_flag::link_disable | append_flag::op_put});
  rig.rx_events.expect_none();
  rig.tx.submit(rig.put(64));
  rig.ct.expect(1);
  rig.target.submit(rig.entry(kSilent | append_flag::link_disable | append_flag::op_put));
  (void)rig.rx_events.expect<TargetLongEvent>(EventType::link, ReturnCode::no_space);
}

TEST(CxiLists, UsedOnceThenTheNextThenOverflow) {
  Rig rig({.enable = false});
  rig.set_state(PtlteState::enabled);
  const u32 flags = append_flag::success_disable | append_flag::comm_disable | append_flag::op_put;
  Append a = rig.entry(flags);
  a.ptl_list = PortalsList::overflow;
  a.start = rig.far.iova(8192);
  a.length = 4096;
  rig.target.submit(a);
  a = rig.entry(flags | append_flag::use_once);
  for (u32 n = 0; n < 2; ++n) {
    a.start = rig.far.iova(n * 4096);
    a.length = 4096;
    a.buffer_id = 70 + n;
    rig.target.submit(a);
  }
  for (int n = 0; n < 3; ++n) (void)rig.rx_events.expect<TargetLongEvent>(EventType::link);
  for (u32 n = 0; n < 3; ++n) {
    rig.tx.submit(rig.put(100, n * 1000));
    rig.ct.expect(n + 1);
    EXPECT_TRUE(rig.arrived(100, n * 1000, n * 4096)) << n;
    if (n == 2) break;
    const auto e = rig.rx_events.expect<TargetLongEvent>(EventType::unlink);
    EXPECT_EQ(e.buffer_id, 70 + n);
    EXPECT_TRUE(e.auto_unlinked);
  }
  rig.rx_events.expect_none();
}

TEST(CxiLists, UnlinkTakesTheBufferOfItsNumberOutOfItsList) {
  Rig rig({.enable = false});
  rig.set_state(PtlteState::enabled);
  for (const PortalsList list : {PortalsList::priority, PortalsList::overflow})
    for (const u32 id : {7u, 8u, 9u}) {
      Append a = rig.entry(kSilent | append_flag::op_put);
      a.ptl_list = list;
      a.buffer_id = id;
      a.start = rig.far.iova(u64{id} * 4096);
      a.length = 4096;
      rig.target.submit(a);
      (void)rig.rx_events.expect<TargetLongEvent>(EventType::link);
    }
  const auto unlink = [&](PortalsList list, u32 id, ReturnCode code) {
    Unlink u;
    u.ptlte_index = rig.pte->index();
    u.ptl_list = list;
    u.buffer_id = id;
    rig.target.submit(u);
    const auto e = rig.rx_events.expect<TargetLongEvent>(EventType::unlink, code);
    EXPECT_EQ(e.buffer_id, id);
    EXPECT_EQ(e.ptl_list, list);
    EXPECT_FALSE(e.auto_unlinked);
  };
  u64 done = 0;
  const auto lands_in = [&](u32 id) {
    rig.tx.submit(rig.put(64, id * 100));
    rig.ct.expect(++done);
    EXPECT_TRUE(rig.arrived(64, id * 100, u64{id} * 4096)) << id;
  };
  unlink(PortalsList::priority, 8, ReturnCode::ok);  // in the middle
  unlink(PortalsList::priority, 8, ReturnCode::entry_not_found);
  lands_in(7);
  unlink(PortalsList::priority, 7, ReturnCode::ok);  // the first
  lands_in(9);
  unlink(PortalsList::overflow, 9, ReturnCode::ok);  // the last
  unlink(PortalsList::priority, 9, ReturnCode::ok);  // the only one
  lands_in(7);
  unlink(PortalsList::overflow, 7, ReturnCode::ok);
  unlink(PortalsList::overflow, 8, ReturnCode::ok);
  rig.append(kSilent | append_flag::op_put);  // an empty list takes a new one
  rig.tx.submit(rig.put(64, 300));
  rig.ct.expect(++done);
  EXPECT_TRUE(rig.arrived(64, 300, 0));
}

}  // namespace
}  // namespace doorbell::cxi
