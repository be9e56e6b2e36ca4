// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Programs on the drop-in libcxi that move data: puts, gets, atomic operations, with their events and counts.
#include <poll.h>

#include <algorithm>
#include <cstring>

#include "cxi/atomics.hpp"
#include "cxi/dropin/program.hpp"

namespace doorbell::cxi::program {

TEST(DropinTransfers, PutsAndGetsOfEverySize) {
  End e;
  Target t(e, 1 << 20, kQuietPutGet);
  Initiator i(e, 1 << 20);
  for (u32 n = 1; n <= 1 << 20; n = n * 5 + 3) {
    std::memset(t.memory.buffer.data, 0, 1 << 20);
    i.commands.submit(i.operation(Opcode::put, e.pid(), n, 0, 0));
    const auto ack = i.events.expect<InitiatorEvent>(EventType::ack);
    EXPECT_EQ(ack.user_ptr, 77u);
    EXPECT_EQ(ack.mlength, n);
    EXPECT_EQ(std::memcmp(i.memory.buffer.data, t.memory.buffer.data, n), 0) << n;
    EXPECT_TRUE(n == 1 << 20 || t.memory.buffer.data[n] == 0) << n;
    for (u32 k = 0; k < n; ++k) t.memory.buffer.data[k] = static_cast<u8>(k * 3 + n);
    i.commands.submit(i.operation(Opcode::get, e.pid(), n, 0, 0));
    (void)i.events.expect<InitiatorEvent>(EventType::reply);
    EXPECT_EQ(std::memcmp(i.memory.buffer.data, t.memory.buffer.data, n), 0) << n;
  }
}

TEST(DropinTransfers, BetweenTwoEndsWithNamesOfTheirOwn) {
  End a, b(10), c(1, 200);
  Initiator i(a, 8192);
  Target far(c, 8192, kQuietPutGet, 37);
  EXPECT_NE(a.pid(), c.pid());
  i.commands.submit(i.operation(Opcode::put, 200, 4096, 0, 0, 37));
  (void)i.events.expect<InitiatorEvent>(EventType::ack);
  EXPECT_EQ(std::memcmp(i.memory.buffer.data, far.memory.buffer.data, 4096), 0);
  // Where nobody is, and another network's process.
  i.commands.submit(i.operation(Opcode::put, 199, 64));
  EXPECT_TRUE(i.events.expect<InitiatorEvent>(EventType::ack, ReturnCode::vni_not_found).tgt_error);
  i.commands.submit(i.operation(Opcode::put, 200, 64, 0, 0, 38));
  (void)i.events.expect<InitiatorEvent>(EventType::ack, ReturnCode::ptlte_not_found);
  // The profile decides the network; its command names it.
  void* other = nullptr;
  ASSERT_EQ(cxil_alloc_cp(a.lni, 10, kBestEffort, 0, &other), 0);
  Lcid lcid;
  lcid.lcid = field<u32>(other, 12);
  i.commands.submit(lcid);
  i.commands.submit(i.operation(Opcode::put, 200, 64, 0, 0, 37));
  (void)i.events.expect<InitiatorEvent>(EventType::ack, ReturnCode::vni_not_found);
  EXPECT_EQ(cxil_destroy_cp(other), 0);
}

TEST(DropinTransfers, ObjectsOfAnotherLniAreNotReached) {
  End a, b;
  Initiator mine(a, 8192), theirs(b, 8192);
  Target target(b, 8192, kQuietPutGet);
  // Its mapping has no meaning for this LNI, although the address is known.
  FullDma put = mine.operation(Opcode::put, b.pid(), 64);
  put.local_addr = theirs.memory.iova();
  mine.commands.submit(put);
  const auto e = mine.events.expect<InitiatorEvent>(EventType::ack, ReturnCode::no_translation);
  EXPECT_FALSE(e.tgt_error);
  // Nor have its queue, its counter and its portals entry: the command queue stops.
  void* ct = nullptr;
  ASSERT_EQ(cxil_alloc_ct(b.lni, nullptr, &ct), 0);
  put = mine.operation(Opcode::put, b.pid(), 64);
  put.ct = field<u32>(ct, 8);
  mine.commands.submit(put);
  (void)mine.events.expect<CommandFailureEvent>(EventType::command_failure, ReturnCode::cmd_invalid_arg);
  Commands again(a.lni, mine.events.eq, {.count = 64, .flags = kTx, .lcid = a.lcid()});
  put = mine.operation(Opcode::put, b.pid(), 64);
  put.eq = theirs.events.index();
  again.submit(put);
  (void)mine.events.expect<CommandFailureEvent>(EventType::command_failure, ReturnCode::cmd_invalid_arg);
  Commands portals(a.lni, mine.events.eq, {.count = 64});
  Unlink u;
  u.ptlte_index = target.index();
  u.buffer_id = 7;
  portals.submit(u);
  (void)mine.events.expect<CommandFailureEvent>(EventType::command_failure, ReturnCode::cmd_invalid_arg);
  EXPECT_EQ(cxil_destroy_ct(ct), 0);
  // And what was tried has changed nothing.
  theirs.commands.submit(theirs.operation(Opcode::put, b.pid(), 64));
  (void)theirs.events.expect<InitiatorEvent>(EventType::ack);
}

TEST(DropinEvents, OfATargetAndTheirSizes) {
  End e;
  Target t(e, 8192, append_flag::op_put | append_flag::use_once);
  t.append(append_flag::op_put | append_flag::use_once, 8);
  t.append(append_flag::op_put | append_flag::op_get, 9);
  Initiator i(e, 8192);
  for (const u32 id : {7u, 8u}) {
    FullDma put = i.operation(Opcode::put, e.pid(), 256, 0, 64);
    put.header_data = 0x1234;
    i.commands.submit(put);
    (void)i.events.expect<InitiatorEvent>(EventType::ack);
    // The buffer goes first, as hardware says it.
    const auto gone = t.events.expect<TargetLongEvent>(EventType::unlink);
    EXPECT_EQ(gone.buffer_id, id);
    EXPECT_TRUE(gone.auto_unlinked);
    const auto arrived = t.events.expect<TargetEvent>(EventType::put);
    EXPECT_EQ(arrived.length, 256u);
    EXPECT_EQ(arrived.buffer_id, id);
    EXPECT_EQ(arrived.header_data, 0x1234u);
    EXPECT_EQ(arrived.vni, 1u);
  }
  i.commands.submit(i.operation(Opcode::get, e.pid(), 100));
  (void)i.events.expect<InitiatorEvent>(EventType::reply);
  EXPECT_EQ(t.events.expect<TargetEvent>(EventType::get).length, 100u);
  t.unlink(9);
  t.unlink(9, ReturnCode::entry_not_found);
  i.commands.submit(i.operation(Opcode::put, e.pid(), 100));
  (void)i.events.expect<InitiatorEvent>(EventType::ack, ReturnCode::dropped);
  constexpr u64 kUseLongEvent = 1 << 3;
  Target longer(e, 8192, append_flag::op_put, 5, kUseLongEvent);
  i.commands.submit(i.operation(Opcode::put, e.pid(), 100, 0, 32, 5));
  (void)i.events.expect<InitiatorEvent>(EventType::ack);
  EXPECT_EQ(longer.events.expect<TargetLongEvent>(EventType::put).remote_offset, 32u);
}

TEST(DropinEvents, AWaitObjectWakesThePoll) {
  End e;
  void* wait = nullptr;
  EXPECT_EQ(cxil_alloc_wait_obj(nullptr, &wait), -EINVAL);
  EXPECT_EQ(cxil_alloc_wait_obj(e.lni, nullptr), -EINVAL);
  ASSERT_EQ(cxil_alloc_wait_obj(e.lni, &wait), 0);
  {
    Target t(e, 8192, kQuietPutGet);
    Initiator i(e, 8192);
    Events signalled(e.lni, kPageBytes, wait);
    pollfd p{cxil_get_wait_obj_fd(wait), POLLPRI, 0};
    EXPECT_EQ(::poll(&p, 1, 0), 0);
    EXPECT_EQ(cxil_destroy_wait_obj(wait), -EBUSY);
    for (int n = 0; n < 3; ++n) {
      FullDma put = i.operation(Opcode::put, e.pid(), 64);
      put.eq = signalled.index();
      for (int k = 0; k < 20; ++k) i.commands.submit(put);
      ASSERT_EQ(::poll(&p, 1, 20'000), 1) << n;
      EXPECT_NE(p.revents & POLLPRI, 0);
      for (int k = 0; k < 20; ++k) (void)signalled.expect<InitiatorEvent>(EventType::ack);
      cxil_clear_wait_obj(wait);
      EXPECT_EQ(::poll(&p, 1, 0), 0) << n;
    }
    // Masked by the reader's register.
    EventQueueCsr csr;
    csr.rd_ptr = signalled.queue->state().acked / 64;
    csr.event_int_disable = true;
    signalled.queue->ack(lane);
    csr.rd_ptr = signalled.queue->state().acked / 64;
    store64_release(signalled.queue->state().memory.csr, pack(csr).w[0]);
    FullDma put = i.operation(Opcode::put, e.pid(), 64);
    put.eq = signalled.index();
    i.commands.submit(put);
    EventQueue<OneLane>::Polled got;
    EXPECT_TRUE(eventually([&] { return (got = signalled.queue->poll(lane)).bytes != 0; }));
    EXPECT_EQ(::poll(&p, 1, 0), 0);
  }
  EXPECT_EQ(cxil_destroy_wait_obj(wait), 0);
  EXPECT_EQ(cxil_destroy_wait_obj(nullptr), -EINVAL);
  EXPECT_EQ(cxil_get_wait_obj_fd(nullptr), -EINVAL);
}

TEST(DropinEvents, AQueueMovesToALargerOne) {
  End e;
  Target t(e, 8192, kQuietPutGet);
  Initiator i(e, 8192);
  auto moving = std::make_unique<Events>(e.lni, kPageBytes);
  auto larger = std::make_unique<Mapped>(e.lni, 4 * kPageBytes);
  FullDma put = i.operation(Opcode::put, e.pid(), 64);
  put.eq = moving->index();
  for (u64 n = 0; n < 10; ++n) {
    put.user_ptr = n;
    i.commands.submit(put);
  }
  for (u64 n = 0; n < 4; ++n) EXPECT_EQ(moving->expect<InitiatorEvent>(EventType::ack).user_ptr, n);
  i.commands.submit(i.operation(Opcode::put, e.pid(), 64));
  (void)i.events.expect<InitiatorEvent>(EventType::ack);  // those before it have been written, too
  EXPECT_EQ(cxil_evtq_resize(moving->eq, larger->buffer.data, 100, larger->md), -EINVAL);
  ASSERT_EQ(cxil_evtq_resize(moving->eq, larger->buffer.data, 4 * kPageBytes, larger->md), 0);
  EXPECT_EQ(cxil_evtq_resize(moving->eq, larger->buffer.data, 4 * kPageBytes, larger->md), -EBUSY);
  for (u64 n = 10; n < 200; ++n) {
    put.user_ptr = n;
    i.commands.submit(put);
  }
  for (u64 n = 4; n < 10; ++n) EXPECT_EQ(moving->expect<InitiatorEvent>(EventType::ack).user_ptr, n);
  EventQueue<OneLane>::Polled p;
  moving->queue->ack(lane);
  ASSERT_TRUE(eventually([&] { return (p = moving->queue->poll(lane)).bytes != 0; }));
  EXPECT_EQ(p.type, EventType::eq_switch);
  ASSERT_EQ(cxil_evtq_resize_complete(moving->eq), 0);
  EXPECT_EQ(field<u32>(moving->eq, 0), 4 * kPageBytes);
  EXPECT_EQ(field<u8*>(moving->eq, 64), larger->buffer.data);
  EXPECT_EQ(field<u32>(moving->eq, 40), 64u);
  EXPECT_NE(field<u64>(moving->eq, 8) & u64{1} << 31, 0u) << "the reader's buffer";
  EventQueueState s = moving->queue->state();
  s.memory.events = larger->buffer.data;
  s.memory.bytes = 4 * kPageBytes;
  s.read = s.acked = 64;
  moving->queue.emplace(s);
  for (u64 n = 10; n < 200; ++n) {
    ASSERT_TRUE(eventually([&] { return (p = moving->queue->poll(lane)).bytes != 0; })) << n;
    InitiatorEvent ack;
    EXPECT_TRUE(decode_event(p.words, ack));
    EXPECT_EQ(ack.user_ptr, n);
  }
  moving.reset();  // before the mapping that it has moved to
}

TEST(DropinCounters, WriteBackWhenAskedAndWhenSomethingFails) {
  End e;
  void* trig = nullptr;
  ASSERT_EQ(cxil_alloc_trig_cp(e.lni, 1, kBestEffort, 0, kTrigLcid, &trig), 0);
  Target t(e, 8192, kQuietPutGet);
  Initiator i(e, 8192);
  Buffer counts(2 * kPageBytes);
  auto* const first = reinterpret_cast<u64*>(counts.data + 64);
  auto* const second = reinterpret_cast<u64*>(counts.data + kPageBytes + 8);
  void* ct = nullptr;
  EXPECT_EQ(cxil_alloc_ct(e.lni, counts.data + 1, &ct), -EINVAL);
  EXPECT_EQ(cxil_alloc_ct(nullptr, first, &ct), -EINVAL);
  EXPECT_EQ(cxil_alloc_ct(e.lni, first, nullptr), -EINVAL);
  ASSERT_EQ(cxil_alloc_ct(e.lni, first, &ct), 0);
  EXPECT_EQ(field<void*>(ct, 16), first);
  const u32 number = field<u32>(ct, 8);
  {
    Commands triggered(e.lni, i.events.eq, {.count = 64, .flags = kTx | kTrig, .lcid = field<u32>(trig, 12)});
    FullDma put = i.operation(Opcode::put, e.pid(), 64);
    put.ct = number;
    put.flags.event_ct_ack = true;
    for (int n = 0; n < 5; ++n) {
      i.commands.submit(put);
      (void)i.events.expect<InitiatorEvent>(EventType::ack);
    }
    triggered.submit(CounterCommand::trig_event(number, 5, i.events.index()));
    EXPECT_EQ(i.events.expect<TriggeredEvent>(EventType::triggered_op).threshold, 5u);
    EXPECT_EQ(load64_acquire(first), 0u) << "nobody has asked";
    CounterCommand get;
    get.opcode = CounterOpcode::get;
    get.ct = number;
    triggered.submit(get);
    EXPECT_TRUE(eventually([&] { return load64_acquire(first) == (u64{1} << 63 | 5); }));
    EXPECT_EQ(cxil_ct_wb_update(ct, counts.data + 3), -EINVAL);
    EXPECT_EQ(cxil_ct_wb_update(nullptr, second), -EINVAL);
    ASSERT_EQ(cxil_ct_wb_update(ct, second), 0);
    EXPECT_EQ(field<void*>(ct, 16), second);
    // The program's own additions, then one that fails.
    store64_release(field<u64*>(ct, 0) + Counter::kSuccess, 10);
    put.to(make_dfa(e.nid, 450, e.pid_bits, 0));
    i.commands.submit(put);
    (void)i.events.expect<InitiatorEvent>(EventType::ack, ReturnCode::vni_not_found);
    triggered.submit(get);
    EXPECT_TRUE(eventually([&] { return load64_acquire(second) == (u64{1} << 63 | u64{1} << 48 | 15); }))
        << std::hex << load64_acquire(second);
    EXPECT_EQ(load64_acquire(first), (u64{1} << 63 | 5));
    // Counts that are set or reset are shown unasked.
    triggered.submit(CounterCommand::set(number, 7, 2));
    EXPECT_TRUE(eventually([&] { return load64_acquire(second) == (u64{1} << 63 | u64{2} << 48 | 7); }));
    store64_release(field<u64*>(ct, 0) + Counter::kResetSuccess, 0);
    EXPECT_TRUE(eventually([&] { return load64_acquire(second) == (u64{1} << 63 | u64{2} << 48); }));
    store64_release(field<u64*>(ct, 0) + Counter::kResetFailure, 0);
    EXPECT_TRUE(eventually([&] { return load64_acquire(second) == u64{1} << 63; }));
  }
  EXPECT_EQ(cxil_destroy_ct(ct), 0);
  EXPECT_EQ(cxil_destroy_ct(nullptr), -EINVAL);
  EXPECT_EQ(cxil_destroy_cp(trig), 0);
}

TEST(DropinTransfers, ACommandQueueInTheProgramsMemory) {
  End e;
  Target t(e, 8192, kQuietPutGet);
  Initiator i(e, 8192);
  Buffer ring(kPageBytes);
  Commands own(e.lni, CqOptsBuf{.opts = {.count = 64, .flags = kTx, .lcid = e.lcid()}, .buf = ring.data});
  EXPECT_EQ(field<u8*>(own.cq, 40), ring.data);
  for (int n = 0; n < 500; ++n) {  // several times around
    own.submit(i.operation(Opcode::put, e.pid(), 64, 0, 64));
    (void)i.events.expect<InitiatorEvent>(EventType::ack);
  }
  EXPECT_EQ(std::memcmp(i.memory.buffer.data, t.memory.buffer.data + 64, 64), 0);
}

TEST(DropinTransfers, DataInTheCommand) {
  End e;
  Target t(e, 8192, kQuietPutGet);
  Initiator i(e, 8192);
  CState state;
  state.eq = i.events.index();
  state.flags.restricted = true;
  state.flags.event_send_disable = true;
  state.user_ptr = 5;
  i.commands.submit(state);
  for (const u32 n : {1u, 16u, 17u, 48u, 112u, 224u}) {
    IdcPut put;
    put.dfa = make_dfa(e.nid, e.pid(), e.pid_bits, 0).value;
    put.remote_offset = 1000;
    put.bytes = n;
    put.payload = i.memory.buffer.data + n;
    i.commands.submit(put);
    EXPECT_EQ(i.events.expect<InitiatorEvent>(EventType::ack).user_ptr, 5u);
    EXPECT_EQ(std::memcmp(i.memory.buffer.data + n, t.memory.buffer.data + 1000, n), 0) << n;
  }
}

// --- atomic operations -------------------------------------------------------------------------------------

struct AtomicCase {
  AtomicOp op;
  AtomicType type;
  u64 memory, first, second, expected;
  SwapIf swap_if = SwapIf::equal;
};

u64 bits(float f) {
  u32 b;
  std::memcpy(&b, &f, sizeof b);
  return b;
}
u64 bits(double d) {
  u64 b;
  std::memcpy(&b, &d, sizeof b);
  return b;
}

const AtomicCase kAtomicCases[] = {
    {AtomicOp::min, AtomicType::i8, 5, 0xfd, 0, 0xfd},
    {AtomicOp::min, AtomicType::u8, 5, 0xfd, 0, 5},
    {AtomicOp::max, AtomicType::i16, 0xffff, 1, 0, 1},
    {AtomicOp::max, AtomicType::u16, 0xffff, 1, 0, 0xffff},
    {AtomicOp::sum, AtomicType::i32, 0x7fff'ffff, 1, 0, 0x8000'0000},
    {AtomicOp::sum, AtomicType::u64, ~u64{0}, 3, 0, 2},
    {AtomicOp::logical_or, AtomicType::u32, 0, 8, 0, 1},
    {AtomicOp::logical_and, AtomicType::u64, 4, 8, 0, 1},
    {AtomicOp::logical_xor, AtomicType::i64, 4, 8, 0, 0},
    {AtomicOp::bit_or, AtomicType::u16, 0x0f00, 0x00f0, 0, 0x0ff0},
    {AtomicOp::bit_and, AtomicType::u8, 0x3c, 0x0f, 0, 0x0c},
    {AtomicOp::bit_xor, AtomicType::u64, 0xff, 0x0f, 0, 0xf0},
    {AtomicOp::swap, AtomicType::u64, 1, 2, 0, 2},
    {AtomicOp::and_xor, AtomicType::u64, 0xff, 0x5, 0xf0, 0xf5},
    {AtomicOp::compare_swap, AtomicType::u64, 7, 9, 7, 9},
    {AtomicOp::compare_swap, AtomicType::u64, 7, 9, 8, 7},
    {AtomicOp::compare_swap, AtomicType::i32, 7, 9, 8, 9, SwapIf::not_equal},
    {AtomicOp::compare_swap, AtomicType::i32, 7, 9, 7, 9, SwapIf::less_equal},
    {AtomicOp::compare_swap, AtomicType::i32, 7, 9, 0xffff'ffff, 9, SwapIf::less},
    {AtomicOp::compare_swap, AtomicType::u32, 7, 9, 0xffff'ffff, 7, SwapIf::less},
    {AtomicOp::compare_swap, AtomicType::u32, 7, 9, 8, 9, SwapIf::greater_equal},
    {AtomicOp::compare_swap, AtomicType::u32, 7, 9, 7, 7, SwapIf::greater},
    {AtomicOp::sum, AtomicType::f32, bits(1.5F), bits(2.25F), 0, bits(3.75F)},
    {AtomicOp::min, AtomicType::f64, bits(1.5), bits(-2.0), 0, bits(-2.0)},
    {AtomicOp::sum, AtomicType::f32_complex, bits(1.0F) | bits(2.0F) << 32, bits(3.0F) | bits(4.0F) << 32, 0,
     bits(4.0F) | bits(6.0F) << 32},
};

TEST(DropinAtomics, EveryOperationByEveryCommand) {
  End e;
  Target t(
      e, 8192,
      append_flag::success_disable | append_flag::comm_disable | append_flag::op_put | append_flag::op_get);
  Initiator i(e, 8192);
  CState state;
  state.eq = i.events.index();
  state.write_lac = i.memory.lac();
  state.flags.restricted = true;
  state.flags.event_send_disable = true;
  i.commands.submit(state);
  const u32 dfa = make_dfa(e.nid, e.pid(), e.pid_bits, 0).value;
  auto* const memory = reinterpret_cast<u64*>(t.memory.buffer.data + 64);
  auto* const local = reinterpret_cast<u64*>(i.memory.buffer.data);
  int number = 0;
  for (const AtomicCase& c : kAtomicCases) {
    SCOPED_TRACE(number++);
    Atomic a{c.op, c.type, c.swap_if, {c.first, 0}, {c.second, 0}};
    const u32 n = atomic_bytes(c.type);
    const u64 mask = n == 8 ? ~u64{0} : (u64{1} << 8 * n) - 1;
    const u64 around = 0xa5a5'a5a5'a5a5'a5a5 & ~mask;
    const auto expect = [&](bool fetching, EventType type) {
      (void)i.events.expect<InitiatorEvent>(type);
      EXPECT_EQ(*memory, (c.expected & mask) | around);
      EXPECT_EQ(local[1],
                fetching ? (c.memory & mask) | (0x1111'1111'1111'1111 & ~mask) : 0x1111'1111'1111'1111);
    };
    const auto begin = [&] {
      *memory = (c.memory & mask) | around;
      local[0] = c.first;
      local[1] = 0x1111'1111'1111'1111;
    };
    for (const bool fetching : {false, true}) {
      DmaAtomic dma;
      dma.to(make_dfa(e.nid, e.pid(), e.pid_bits, 0));
      dma.flags = state.flags;
      dma.lac = dma.write_lac = i.memory.lac();
      dma.remote_offset = 64;
      dma.local_addr = i.memory.iova();
      dma.local_write_addr = i.memory.iova(8);
      dma.request_len = n;
      dma.eq = i.events.index();
      dma.fetching = fetching;
      dma.atomic = a;
      begin();
      i.commands.submit(dma);
      expect(fetching, fetching ? EventType::reply : EventType::ack);
      IdcAtomic idc;
      idc.length = 64;
      idc.dfa = dfa;
      idc.remote_offset = 64;
      idc.fetching = fetching;
      idc.local_addr = i.memory.iova(8);
      idc.atomic = a;
      begin();
      i.commands.submit(idc);
      expect(fetching, fetching ? EventType::reply : EventType::ack);
    }
    if (c.op == AtomicOp::compare_swap || c.op == AtomicOp::and_xor) continue;
    SmallAtomic small;
    small.length = 32;
    small.dfa = dfa;
    small.remote_offset = 64;
    small.atomic = a;
    begin();
    i.commands.submit(small);
    expect(false, EventType::ack);
  }
}

TEST(DropinAtomics, SixteenBytesAndRefusals) {
  End e;
  Target t(e, 8192, append_flag::op_put | append_flag::op_get);
  Initiator i(e, 8192);
  auto* const memory = reinterpret_cast<u64*>(t.memory.buffer.data);
  auto* const local = reinterpret_cast<u64*>(i.memory.buffer.data);
  DmaAtomic c;
  c.to(make_dfa(e.nid, e.pid(), e.pid_bits, 0));
  c.flags.event_send_disable = true;
  c.lac = c.write_lac = i.memory.lac();
  c.local_addr = i.memory.iova();
  c.local_write_addr = i.memory.iova(32);
  c.eq = i.events.index();
  c.fetching = true;
  c.request_len = 16;
  c.atomic = {AtomicOp::compare_swap, AtomicType::u128, SwapIf::equal, {}, {5, 6}};
  memory[0] = 5, memory[1] = 6;
  local[0] = 70, local[1] = 80;
  i.commands.submit(c);
  (void)i.events.expect<InitiatorEvent>(EventType::reply);
  EXPECT_EQ(memory[0], 70u);
  EXPECT_EQ(memory[1], 80u);
  EXPECT_EQ(local[4], 5u);
  EXPECT_EQ(local[5], 6u);
  const auto seen = t.events.expect<TargetEvent>(EventType::fetch_atomic);
  EXPECT_EQ(seen.length, 16u);
  const auto refused = [&](const Atomic& a, u64 remote, ReturnCode code) {
    c.atomic = a;
    c.request_len = atomic_bytes(a.type);
    c.remote_offset = remote;
    i.commands.submit(c);
    (void)i.events.expect<InitiatorEvent>(EventType::reply, code);
  };
  refused({AtomicOp::sum, AtomicType::u128}, 0, ReturnCode::amo_inval_op_error);
  refused({AtomicOp::bit_or, AtomicType::f32}, 0, ReturnCode::amo_inval_op_error);
  refused({static_cast<AtomicOp>(3), AtomicType::u32}, 0, ReturnCode::amo_inval_op_error);
  refused({AtomicOp::sum, AtomicType::u64}, 4, ReturnCode::amo_align_error);
  refused({AtomicOp::sum, AtomicType::u64}, 8188, ReturnCode::addr_out_of_range);
  c.local_write_addr = i.memory.iova(1 << 20);
  refused({AtomicOp::sum, AtomicType::u64}, 0, ReturnCode::no_translation);
  EXPECT_EQ(memory[0], 70u);
  c.atomic.type = static_cast<AtomicType>(13);
  i.commands.submit(c);
  (void)i.events.expect<CommandFailureEvent>(EventType::command_failure, ReturnCode::cmd_invalid_arg);
}

}  // namespace doorbell::cxi::program
