// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Programs on the drop-in libcxi that send and receive: matching portals entries, unexpected messages,
// rendezvous.
#include <algorithm>
#include <cstring>

#include "cxi/dropin/messages.hpp"

namespace doorbell::cxi::program {
namespace {

using namespace append_flag;

TEST(DropinMessages, ExpectedThenUnexpected) {
  End a, b;
  Initiator i(a, 8192);
  Receiver r(b);
  r.link(r.memory(1, kBits, 0, 4096, op_put | use_once | no_truncate));
  Append spare = r.memory(2, 0, 32768, 32768, op_put | manage_local | no_truncate | unlink_disable);
  spare.ptl_list = PortalsList::overflow;
  spare.ignore_bits = ~u64{0};
  r.link(spare);
  const auto send = [&](u64 local, PortalsList list) {
    i.commands.submit(message(i, b.pid(), kBits, 4096, local));
    const auto ack = i.events.expect<InitiatorEvent>(EventType::ack);
    EXPECT_EQ(ack.ptl_list, list);
    EXPECT_EQ(ack.mlength, 4096u);
  };
  send(0, PortalsList::priority);
  EXPECT_TRUE(r.events.expect<TargetLongEvent>(EventType::unlink).auto_unlinked);
  const auto put = r.events.expect<TargetEvent>(EventType::put);
  EXPECT_EQ(put.match_bits, kBits);
  EXPECT_EQ(put.header_data, ~kBits);
  EXPECT_EQ(put.initiator, initiator_id(a.nid, a.pid(), a.pid_bits));
  EXPECT_EQ(std::memcmp(r.data(), i.memory.buffer.data, 4096), 0);
  send(4096, PortalsList::overflow);
  EXPECT_EQ(r.events.expect<TargetLongEvent>(EventType::put).start, r.Target::memory.iova(32768));
  r.commands.submit(r.memory(3, kBits, 0, 4096, op_put | use_once | unlink_disable));
  const auto late = r.events.expect<TargetLongEvent>(EventType::put_overflow);
  EXPECT_EQ(late.buffer_id, 3u);
  EXPECT_EQ(late.header_data, ~kBits);
  EXPECT_EQ(std::memcmp(r.data(late.start - r.Target::memory.iova()), i.memory.buffer.data + 4096, 4096), 0);
}

TEST(DropinMessages, RendezvousBetweenTwoEnds) {
  End a, b;
  Initiator i(a, 1 << 16);
  Source source(a, i, 0x42);
  Receiver r(b);
  r.link(r.memory(1, kBits, 0, 1 << 16));
  for (const u32 n : {0u, 100u, 2048u, 50'000u}) {
    std::memset(r.Target::memory.buffer.data, 0, 1 << 16);
    FullDma c = message(i, b.pid(), kBits, n, 0, Opcode::rendezvous_put);
    c.eager_length = 2048;
    c.rendezvous_id = 0x42;
    i.commands.submit(c);
    const u32 eager = std::min(n, 2048u);
    EXPECT_EQ(i.events.expect<InitiatorEvent>(EventType::ack).mlength, eager);
    EXPECT_EQ(r.events.expect<TargetLongEvent>(EventType::put).rlength, n);
    EXPECT_TRUE(r.events.expect<TargetLongEvent>(EventType::rendezvous).get_issued);
    EXPECT_EQ(r.events.expect<InitiatorEvent>(EventType::reply).mlength, n - eager);
    const auto get = source.events.expect<TargetEvent>(EventType::get);
    EXPECT_EQ(get.length, n - eager);
    EXPECT_EQ(get.initiator, initiator_id(b.nid, b.pid(), b.pid_bits));
    EXPECT_EQ(std::memcmp(r.data(), i.memory.buffer.data, n), 0) << n;
    EXPECT_TRUE(std::all_of(r.data(n), r.data(1 << 16), [](u8 v) { return v == 0; })) << n;
  }
}

TEST(DropinMessages, TheStatusNamesUnexpectedMessages) {
  constexpr std::size_t kCount = 24;  // where the status has the number of offsets, behind their place
  End e;
  Initiator i(e, 8192);
  Receiver r(e);
  Append spare = r.memory(2, 0, 0, 8192, op_put | manage_local);
  spare.ptl_list = PortalsList::overflow;
  spare.ignore_bits = ~u64{0};
  r.link(spare);
  std::vector<u64> offsets(100, 1);
  alignas(8) u8 status[32] = {};
  const auto ask = [&](std::vector<u64>* to, u32 room) {
    set_field(status, 16, to != nullptr ? to->data() : nullptr);
    set_field(status, kCount, static_cast<std::uint16_t>(room));
    EXPECT_EQ(cxil_pte_status(r.pte, status), 0);
    return field<std::uint16_t>(status, kCount);
  };
  EXPECT_EQ(ask(&offsets, 100), 0);
  for (u32 n = 0; n < 70; ++n) {
    FullDma c = message(i, e.pid(), n, 16);
    if (n == 40) {
      c.opcode = Opcode::rendezvous_put;
      c.eager_length = 16;
      c.request_len = 1000;
      c.remote_offset = 0x777;
      c.flags.use_offset_for_get = true;
    }
    i.commands.submit(c);
    (void)i.events.expect<InitiatorEvent>(EventType::ack);
    (void)r.events.expect<TargetLongEvent>(EventType::put);
  }
  EXPECT_EQ(ask(nullptr, 100), 0);
  EXPECT_EQ(ask(&offsets, 0), 70);
  EXPECT_EQ(offsets[0], 1u);
  EXPECT_EQ(ask(&offsets, 33), 70);
  EXPECT_EQ(offsets[33], 1u);
  EXPECT_EQ(ask(&offsets, 100), 70);
  for (u32 n = 0; n < 70; ++n) EXPECT_EQ(offsets[n], n == 40 ? 0x777 : r.Target::memory.iova(16 * n)) << n;
  EXPECT_EQ(offsets[70], 1u);
}

TEST(DropinMessages, OthersListsAreNotReached) {
  End a, b;
  Initiator i(a, 8192);
  Receiver mine(a), theirs(b);
  Append spare = theirs.memory(2, 0, 0, 4096, op_put | manage_local);
  spare.ptl_list = PortalsList::overflow;
  spare.ignore_bits = ~u64{0};
  theirs.link(spare);
  i.commands.submit(message(i, b.pid(), kBits, 64));
  (void)i.events.expect<InitiatorEvent>(EventType::ack);
  (void)theirs.events.expect<TargetLongEvent>(EventType::put);
  Search s;
  s.ptlte_index = theirs.index();
  s.ptl_list = PortalsList::unexpected;
  s.ignore_bits = ~u64{0};
  s.match_id = ~u32{0};
  s.opcode = QueueOpcode::search_and_delete;
  mine.commands.submit(s);
  (void)mine.events.expect<CommandFailureEvent>(EventType::command_failure, ReturnCode::cmd_invalid_arg);
  s.opcode = QueueOpcode::search;
  theirs.commands.submit(s);
  EXPECT_EQ(theirs.events.expect<TargetLongEvent>(EventType::search).match_bits, kBits);
}

/// A card whose next event is far has filled the block of this one.
TEST(DropinMessages, AnEventHasItsBlockToItself) {
  End e;
  Target t(e, 4096, op_put);
  Initiator i(e, 4096);
  i.commands.submit(i.operation(Opcode::put, e.pid(), 64));
  (void)i.events.expect<InitiatorEvent>(EventType::ack);
  (void)t.events.expect<TargetEvent>(EventType::put);
  const u8* const first = i.events.memory.buffer.data + 64;
  const u8* const third = t.events.memory.buffer.data + 3 * 64;
  EXPECT_EQ(first[31], 1);
  EXPECT_EQ(first[63], 1);
  EXPECT_EQ(third[63], 1);
  i.commands.submit(i.operation(Opcode::put, e.pid(), 64));
  (void)i.events.expect<InitiatorEvent>(EventType::ack);
  EXPECT_EQ(first[64 + 63], 1);
}

}  // namespace
}  // namespace doorbell::cxi::program
