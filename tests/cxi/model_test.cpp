// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Tests of the software Cassini alone: puts and gets that succeed, and each reason for which one is refused.

#include "rig.hpp"

namespace doorbell::cxi {
namespace {

constexpr u32 kQuiet = append_flag::unlink_disable | append_flag::success_disable | append_flag::comm_disable;

// --- what works --------------------------------------------------------------------------------------------

TEST(CxiModel, PutsOfEverySizeArriveWhole) {
  Rig rig;
  u64 done = 0;
  for (const u32 bytes : {0u, 1u, 3u, 64u, 2047u, 2048u, 2049u, 65536u, 1u << 20}) {
    SCOPED_TRACE(bytes);
    rig.far.clear();
    const u64 at = bytes == 1u << 20 ? 0 : 777;
    rig.tx.submit(rig.put(bytes, at, at));
    rig.ct.expect(++done);
    EXPECT_TRUE(rig.arrived(bytes, at, at));
    if (at > 0) {
      EXPECT_EQ(rig.far.data()[at - 1], 0);
      EXPECT_EQ(rig.far.data()[at + bytes], 0);
    }
  }
  EXPECT_EQ(rig.counter("puts"), done);
  EXPECT_EQ(rig.counter("packets"), 1u + 1 + 1 + 1 + 1 + 1 + 2 + 32 + 512);
  rig.tx_events.expect_none();
}

TEST(CxiModel, GetsBringBytesBack) {
  Rig rig;
  rig.far.fill(99);
  rig.tx.submit(rig.get(5000, 100, 40));
  rig.ct.expect(1);
  EXPECT_TRUE(rig.arrived(5000, 100, 40));
  FullDma full;
  rig.set(full, 3000, 20000, 10000);
  full.opcode = Opcode::get;
  full.user_ptr = 0x1234;
  full.flags.event_success_disable = false;
  full.flags.event_ct_reply = full.flags.event_ct_bytes = true;
  rig.tx.submit(full);
  const auto reply = rig.tx_events.expect<InitiatorEvent>(EventType::reply);
  EXPECT_EQ(reply.user_ptr, 0x1234u);
  EXPECT_EQ(reply.mlength, 3000u);
  rig.ct.expect(3001);
  EXPECT_TRUE(rig.arrived(3000, 20000, 10000));
  EXPECT_EQ(rig.counter("gets"), 2u);
}

TEST(CxiModel, EventsSayWhatWasAskedFor) {
  Rig rig({.append_flags = append_flag::op_put});
  FullDma full;
  rig.set(full, 4096, 0, 64);
  full.user_ptr = 0xdeadbeef;
  full.header_data = 0x1122334455667788;
  full.match_bits = 7;
  full.initiator = 0x0f800400;
  full.flags.event_send_disable = full.flags.event_success_disable = false;
  full.flags.event_ct_send = full.flags.event_ct_ack = true;
  rig.tx.submit(full);
  EXPECT_EQ(rig.tx_events.expect<InitiatorEvent>(EventType::send).user_ptr, 0xdeadbeefu);
  const auto ack = rig.tx_events.expect<InitiatorEvent>(EventType::ack);
  EXPECT_EQ(ack.user_ptr, 0xdeadbeefu);
  EXPECT_EQ(ack.mlength, 4096u);
  EXPECT_FALSE(ack.tgt_error);
  rig.ct.expect(2);
  const auto put = rig.rx_events.expect<TargetEvent>(EventType::put);
  EXPECT_EQ(put.header_data, full.header_data);
  EXPECT_EQ(put.match_bits, full.match_bits);
  EXPECT_EQ(put.initiator, full.initiator);
  EXPECT_EQ(put.ptlte_index, rig.pte->index());
  EXPECT_EQ(put.vni, rig.endpoint->address().vni);
  EXPECT_EQ(put.length, 4096u);

  // A length of 20 bits is not enough for everything.
  rig.tx.submit(rig.put(1u << 20));
  const auto large = rig.rx_events.expect<TargetLongEvent>(EventType::put);
  EXPECT_EQ(large.mlength, 1u << 20);
  EXPECT_EQ(large.start, rig.far.iova());
  EXPECT_EQ(large.remote_offset, 0u);
}

TEST(CxiModel, TheTargetCountsToo) {
  Rig rig({.enable = false});
  Counting ct(*rig.endpoint);
  rig.set_state(PtlteState::enabled);
  Append a = rig.entry(kQuiet | append_flag::op_put | append_flag::ct_comm | append_flag::ct_bytes);
  a.ct = ct.index();
  rig.target.submit(a);
  (void)rig.rx_events.expect<TargetLongEvent>(EventType::link);
  rig.tx.post(rig.put(100));
  rig.tx.submit(rig.put(23));
  ct.expect(123);
  rig.ct.expect(2);
}

TEST(CxiModel, IdcPutsOfEveryLengthAfterACstate) {
  Rig rig;
  CState state;
  state.write_lac = rig.near.md->lac();
  state.flags = rig.put(0).flags;
  state.flags.restricted = true;
  state.index_ext = rig.dfa().index_ext;
  state.ct = rig.ct.index();
  state.eq = rig.tx_events.index();
  state.user_ptr = 55;
  rig.tx.post(state);
  for (u32 bytes = 0; bytes <= idc_limit(true); ++bytes) {
    IdcPut put;
    put.dfa = rig.dfa().value;
    put.remote_offset = u64{bytes} * 256;
    put.bytes = bytes;
    put.payload = rig.near.data() + u64{bytes} * 256;
    rig.tx.submit(put);
  }
  rig.ct.expect(idc_limit(true) + 1);
  for (u32 bytes = 0; bytes <= idc_limit(true); ++bytes) {
    EXPECT_TRUE(rig.arrived(bytes, u64{bytes} * 256, u64{bytes} * 256)) << bytes;
    EXPECT_EQ(rig.far.data()[u64{bytes} * 256 + bytes], 0) << bytes;
  }
  EXPECT_EQ(rig.counter("idc_puts"), idc_limit(true) + 1);

  // The state holds until the next one: unrestricted, with an event.
  state.flags.restricted = false;
  state.flags.event_success_disable = false;
  rig.tx.post(state);
  IdcPut put;
  put.dfa = rig.dfa().value;
  put.bytes = idc_limit(false);
  put.payload = rig.near.data();
  rig.tx.submit(put);
  EXPECT_EQ(rig.tx_events.expect<InitiatorEvent>(EventType::ack).user_ptr, 55u);
  put.bytes = idc_limit(false) + 1;
  rig.tx.submit(put);
  const auto e =
      rig.tx_events.expect<CommandFailureEvent>(EventType::command_failure, ReturnCode::cmd_invalid_arg);
  EXPECT_EQ(e.fail_command, put.part(0).w[0] & 0xff);
}

TEST(CxiModel, DataIsThereBeforeItsAcknowledgement) {
  Rig rig;
  for (u64 n = 1; n <= 2000; ++n) {
    std::memset(rig.near.data(), static_cast<int>(n), 256);
    rig.tx.submit(rig.put(256));
    ASSERT_TRUE(eventually([&] { return rig.ct.read().success >= n; }));
    ASSERT_TRUE(rig.arrived(256)) << n;
  }
}

TEST(CxiModel, TwoProcessesOfTwoNetworks) {
  Rig rig;
  const auto other = rig.device->open(2);
  EXPECT_EQ(rig.endpoint->address().vni, 1);
  EXPECT_EQ(other->address().vni, 10);
  EXPECT_EQ(other->address().nid, rig.endpoint->address().nid);
  EXPECT_NE(other->address().pid, rig.endpoint->address().pid);
  Memory there(*rig.device, *other, 4096);
  Events events(*other, 4096);
  Commands target(*other, CommandQueueKind::target, 64, events.object.get());
  const auto pte = other->create_portals_entry(*events.object, 33);
  SetState s;
  s.ptlte_index = pte->index();
  s.ptlte_state = PtlteState::enabled;
  target.submit(s);
  (void)events.expect<StateChangeLongEvent>(EventType::state_change);
  Append a = rig.entry(kQuiet | append_flag::op_put);
  a.ptlte_index = pte->index();
  a.lac = there.md->lac();
  a.start = there.iova();
  a.length = 4096;
  target.submit(a);
  (void)events.expect<TargetLongEvent>(EventType::link);

  const Address at = other->address();
  NomatchDma put = rig.put(100);
  put.to(make_dfa(at.nid, at.pid, at.pid_bits, 33));
  rig.expect_refused(put, ReturnCode::vni_not_found, true);
  // The communication profile is the queue's; an LCID command takes another one.
  Lcid lcid;
  lcid.lcid = 1;
  rig.tx.post(lcid);
  rig.tx.submit(put);
  rig.ct.expect(1, 1);
  EXPECT_EQ(std::memcmp(there.data(), rig.near.data(), 100), 0);
  // And from there the first process is out of reach.
  rig.expect_refused(rig.put(100), ReturnCode::vni_not_found, true);
}

// --- what is refused, operation by operation
// -----------------------------------------------------------------

TEST(CxiRefusals, TheInitiatorsOwnMemory) {
  Rig rig;
  NomatchDma put = rig.put(64);
  put.lac = (put.lac + 1) % kMaxContexts;
  rig.expect_refused(put, ReturnCode::invalid_ac, false);

  const u64 size = rig.near.md->bytes();
  rig.expect_refused(rig.put(64, size - 63), ReturnCode::no_translation, false);
  put = rig.put(64);
  put.local_addr -= 1;
  rig.expect_refused(put, ReturnCode::no_translation, false);
  put.local_addr = 0;
  rig.expect_refused(put, ReturnCode::no_translation, false);

  Memory read_only(*rig.device, *rig.endpoint, 4096, Access::read);
  Memory write_only(*rig.device, *rig.endpoint, 4096, Access::write);
  put.local_addr = write_only.iova();
  rig.expect_refused(put, ReturnCode::page_perm_error, false);
  NomatchDma get = rig.get(64);
  get.local_addr = read_only.iova();
  rig.expect_refused(get, ReturnCode::page_perm_error, false, EventType::reply);

  // The neighbours are all right.
  rig.tx.submit(rig.put(64, size - 64));
  put.local_addr = read_only.iova();
  rig.tx.submit(put);
  get.local_addr = write_only.iova();
  rig.tx.submit(get);
  rig.ct.expect(3, 6);
  EXPECT_EQ(rig.counter("refused_operations"), 6u);
}

TEST(CxiRefusals, MemoryThatWasUnmapped) {
  Rig rig;
  auto gone = std::make_unique<Memory>(*rig.device, *rig.endpoint, 4096);
  NomatchDma put = rig.put(64);
  put.local_addr = gone->iova();
  rig.tx.submit(put);
  rig.ct.expect(1);
  gone.reset();
  rig.expect_refused(put, ReturnCode::no_translation, false);
}

TEST(CxiRefusals, TheWay) {
  Rig rig;
  const Address a = rig.endpoint->address();
  NomatchDma put = rig.put(64);
  put.to(make_dfa(a.nid + 1, a.pid, a.pid_bits, 0));
  rig.expect_refused(put, ReturnCode::undeliverable, false);
  put.to(make_dfa(a.nid, a.pid + 1, a.pid_bits, 0));
  rig.expect_refused(put, ReturnCode::vni_not_found, true);
  for (const u32 idx : {1u, 32u, 255u}) {
    put.to(make_dfa(a.nid, a.pid, a.pid_bits, idx));
    rig.expect_refused(put, ReturnCode::ptlte_not_found, true);
  }
  put.to(rig.dfa());
  rig.tx.submit(put);
  rig.ct.expect(1, 5);
}

TEST(CxiRefusals, TheTarget) {
  Rig rig({.enable = false});
  const u64 size = rig.far.md->bytes();
  rig.expect_refused(rig.put(64), ReturnCode::pt_disabled, true);
  rig.set_state(PtlteState::enabled);
  rig.expect_refused(rig.put(64), ReturnCode::dropped, true);
  rig.append(kQuiet | append_flag::op_put);
  rig.expect_refused(rig.get(64), ReturnCode::op_violation, true, EventType::reply);
  rig.expect_refused(rig.put(64, 0, size - 63), ReturnCode::addr_out_of_range, true);
  rig.expect_refused(rig.put(64, 0, size + 1), ReturnCode::addr_out_of_range, true);
  rig.expect_refused(rig.put(64, 0, (u64{1} << 56) - 1), ReturnCode::addr_out_of_range, true);
  rig.tx.submit(rig.put(64, 0, size - 64));
  rig.tx.submit(rig.put(0, 0, size));
  rig.ct.expect(2, 6);
  EXPECT_TRUE(rig.arrived(64, 0, size - 64));
  rig.set_state(PtlteState::disabled);
  rig.expect_refused(rig.put(64), ReturnCode::pt_disabled, true);
  // Reset takes the buffers away.
  rig.set_state(PtlteState::reset);
  rig.set_state(PtlteState::enabled);
  rig.expect_refused(rig.put(64), ReturnCode::dropped, true);
}

TEST(CxiRefusals, TheTargetsMemory) {
  Rig rig({.enable = false});
  rig.set_state(PtlteState::enabled);
  Memory read_only(*rig.device, *rig.endpoint, 4096, Access::read);
  Append a = rig.entry(kQuiet | append_flag::op_put | append_flag::op_get | append_flag::use_once);
  a.start = read_only.iova();
  a.length = 4096;
  rig.target.submit(a);
  (void)rig.rx_events.expect<TargetLongEvent>(EventType::link);
  rig.expect_refused(rig.put(64), ReturnCode::page_perm_error, true);
  rig.tx.submit(rig.get(64));  // which is the one use
  rig.ct.expect(1, 1);
  a.length = 4097;
  rig.target.submit(a);
  (void)rig.rx_events.expect<TargetLongEvent>(EventType::link);
  rig.expect_refused(rig.put(64), ReturnCode::no_translation, true);
}

TEST(CxiRefusals, OpWithoutPermissionOfTheOtherKind) {
  Rig rig({.append_flags = kQuiet | append_flag::op_get});
  rig.expect_refused(rig.put(64), ReturnCode::op_violation, true);
  rig.tx.submit(rig.get(64));
  rig.ct.expect(1, 1);
}

TEST(CxiRefusals, WithoutAnEventQueueOnlyTheCounterTells) {
  Rig rig;
  NomatchDma put = rig.put(64, 0, rig.far.md->bytes());
  put.eq = 0;
  rig.tx.submit(put);
  rig.ct.expect(0, 1);
  put = rig.put(64, 0, rig.far.md->bytes());
  put.ct = 0;
  rig.tx.submit(put);
  (void)rig.tx_events.expect<InitiatorEvent>(EventType::ack, ReturnCode::addr_out_of_range);
  rig.tx_events.expect_none();
  rig.ct.expect(0, 1);
}

// --- what stops a queue
// --------------------------------------------------------------------------------------

/// A command that cannot be carried out: the status names it, an event too, and the queue stands still.
void expect_stopped(Commands& queue, Events& events, ReturnCode code, u32 header, u32 unit) {
  SCOPED_TRACE(testing::Message() << name(code) << " for header " << header);
  const auto e = events.expect<CommandFailureEvent>(EventType::command_failure, code);
  EXPECT_EQ(e.fail_command, header);
  EXPECT_EQ(e.fail_loc, unit / 2);
  const bool target = queue.memory.index >= kMaxTransmitQueues;
  EXPECT_EQ(e.is_target, target);
  EXPECT_EQ(e.cq_id, target ? queue.memory.index - kMaxTransmitQueues : queue.memory.index);
  EXPECT_TRUE(eventually([&] { return queue.status().return_code != ReturnCode::ok; }));
  const CommandQueueStatus s = queue.status();
  EXPECT_EQ(name(s.return_code), name(code));
  EXPECT_EQ(s.fail_command, header);
  EXPECT_EQ(s.fail_loc_32, unit % 2 != 0);
  EXPECT_EQ(s.rd_ptr, unit / 2);
  EXPECT_FALSE(s.fail_ll);
}

template <u32 kCount>
std::vector<u64> raw(const Words<kCount>& words) {
  return {std::begin(words.w), std::end(words.w)};
}

std::vector<u64> raw_header(u32 byte, u32 units) {
  std::vector<u64> words(u64{units} * 4);
  words[0] = byte;
  return words;
}

TEST(CxiFailures, ACommandThatIsNotAligned) {
  Rig rig;
  FullDma full;
  rig.set(full, 64, 0, 0);
  // Behind a put of 32 bytes, at half a slot.
  std::vector<u64> words = raw(encode(rig.put(64)));
  const std::vector<u64> behind = raw(encode(full));
  words.insert(words.end(), behind.begin(), behind.end());
  words.resize(16);
  rig.tx.submit_raw(words);
  expect_stopped(rig.tx, rig.tx_events, ReturnCode::cmd_align_error, 0x15, 9);
  rig.ct.expect(1);
  rig.tx.submit(rig.put(64));
  let_rounds_pass(*rig.endpoint);
  rig.ct.expect(1);
  EXPECT_EQ(rig.counter("command_failures"), 1u);
}

TEST(CxiFailures, UnknownCommands) {
  struct Case {
    CommandQueueKind kind;
    u32 header;
    ReturnCode code;
  };
  constexpr auto transmit = CommandQueueKind::transmit;
  constexpr auto triggered = CommandQueueKind::triggered;
  constexpr auto target = CommandQueueKind::target;
  const auto dma = [](u32 size, u32 opcode) { return header_byte(CommandType::dma, size, opcode); };
  const auto idc = [](u32 size, u32 opcode) { return header_byte(CommandType::idc, size, opcode); };
  const auto ct = [](u32 size, u32 opcode) { return header_byte(CommandType::counter, size, opcode); };
  const auto cq = [](u32 size, u32 opcode) { return header_byte(CommandType::queue, size, opcode); };
  const ReturnCode unmatched = served_by_kernel() ? ReturnCode::illegal_op : ReturnCode::cmd_invalid_arg;
  const std::vector<Case> cases = {
      // No such opcode, or no such size of it.
      {transmit, dma(0, 14), ReturnCode::cmd_invalid_arg},
      {transmit, dma(1, 15), ReturnCode::cmd_invalid_arg},
      {transmit, idc(0, 15), ReturnCode::cmd_invalid_arg},
      {transmit, idc(1, 10), ReturnCode::cmd_invalid_arg},
      {triggered, ct(1, 9), ReturnCode::cmd_invalid_arg},
      {triggered, ct(0, 8), ReturnCode::cmd_invalid_arg},
      {triggered, ct(3, 8), ReturnCode::cmd_invalid_arg},
      {triggered, ct(2, 8), ReturnCode::cmd_invalid_arg},
      {target, cq(1, 13), ReturnCode::cmd_invalid_arg},
      {target, cq(0, 12), ReturnCode::cmd_invalid_arg},
      // It exists, and the model does not do it.
      {transmit, dma(2, 13), ReturnCode::illegal_op},
      {transmit, dma(1, 6), ReturnCode::illegal_op},
      // A kernel's does no matching, and here what matching needs is missing.
      {transmit, idc(1, 7), unmatched},
      {target, cq(1, 9), unmatched},
      {target, cq(1, 10), unmatched},
      // Another kind of queue takes it.
      {transmit, ct(1, 8), ReturnCode::illegal_op},
      {transmit, cq(1, 8), ReturnCode::illegal_op},
      {triggered, dma(1, 1), ReturnCode::illegal_op},
      {triggered, idc(1, 1), ReturnCode::illegal_op},
      {triggered, cq(1, 12), ReturnCode::illegal_op},
      {triggered, dma(0, 8), ReturnCode::cmd_invalid_arg},
      {triggered, idc(0, 0), ReturnCode::cmd_invalid_arg},
      {target, dma(0, 8), ReturnCode::illegal_op},
      {target, ct(1, 3), ReturnCode::illegal_op},
      // An IDC put without the state that it needs.
      {transmit, idc(0, 1) | 16 << 8, ReturnCode::cmd_invalid_arg},
  };
  Rig rig;
  for (const Case& c : cases) {
    Commands queue(*rig.endpoint, c.kind, 64, rig.tx_events.object.get());
    queue.submit_raw(raw_header(c.header, 8));
    expect_stopped(queue, rig.tx_events, c.code, c.header & 0xff, 8);
  }
}

TEST(CxiFailures, HandlesThatDoNotExist) {
  Rig rig;
  const auto expect = [&](CommandQueueKind kind, const auto& command) {
    Commands queue(*rig.endpoint, kind, 64, rig.tx_events.object.get());
    queue.submit(command);
    expect_stopped(queue, rig.tx_events, ReturnCode::cmd_invalid_arg, command.header(), 8);
  };
  NomatchDma put = rig.put(64);
  put.ct = 2047;
  expect(CommandQueueKind::transmit, put);
  put = rig.put(64);
  put.eq = 2047;
  expect(CommandQueueKind::transmit, put);
  Lcid lcid;
  lcid.lcid = 15;
  expect(CommandQueueKind::transmit, lcid);
  expect(CommandQueueKind::triggered, CounterCommand::set(2047, 1, 0));
  expect(CommandQueueKind::triggered, CounterCommand::trig_event(2047, 1, rig.tx_events.index()));
  expect(CommandQueueKind::triggered, CounterCommand::trig_event(rig.ct.index(), 1, 2047));
  expect(CommandQueueKind::triggered, CounterCommand::trig_event(rig.ct.index(), 1, 0));
  Append a = rig.entry(kQuiet | append_flag::op_put);
  a.ptlte_index = 2047;
  expect(CommandQueueKind::target, a);
  SetState s;
  s.ptlte_index = 2047;
  expect(CommandQueueKind::target, s);
  s.ptlte_index = rig.pte->index();
  s.ptlte_state = PtlteState::ethernet;
  expect(CommandQueueKind::target, s);
}

TEST(CxiFailures, AQueueWithoutEventsTellsByItsStatus) {
  Rig rig;
  Commands queue(*rig.endpoint, CommandQueueKind::transmit, 64, nullptr);
  queue.submit_raw(raw_header(0xf1, 8));
  EXPECT_TRUE(eventually([&] { return queue.status().return_code == ReturnCode::cmd_invalid_arg; }));
  rig.tx_events.expect_none();
}

// --- set-up
// --------------------------------------------------------------------------------------------------

TEST(CxiSetUp, NamesAndServices) {
  EXPECT_EQ(open_device({.spec = "model"})->name(), "cxi-model0");
  EXPECT_EQ(open_device({.spec = "model:latency=1us"})->name(), "cxi-model0:latency=1us");
  const auto seven = open_device({.spec = "cxi-model7"});
  EXPECT_EQ(seven->name(), "cxi-model7");
  EXPECT_EQ(seven->kind(), "model");
  EXPECT_NE(seven->open(1)->address().nid, open_device({.spec = "cxi-model0"})->open(1)->address().nid);
  for (const char* spec :
       {"cxi0", "cxi-model", "cxi-modelx", "cxi-model-1", "models", "", "cxi-model99999999999"})
    EXPECT_THROW((void)open_device({.spec = spec}), Error) << spec;
  for (const char* spec :
       {"cxi-model0:x=1", "cxi-model0:bandwidth=-1", "cxi-model0:pid-bits=10", "model:latency"})
    EXPECT_THROW((void)open_device({.spec = spec}), Error) << spec;
  for (const u32 service : {0u, 3u, ~0u}) {
    try {
      (void)seven->open(service);
      ADD_FAILURE() << service;
    } catch (const CallError& e) {
      EXPECT_EQ(e.call(), CallError::Call::service);
      EXPECT_EQ(e.errno_code(), ENOENT);
    }
  }
}

TEST(CxiSetUp, ShapesAndLimits) {
  const auto device = open_device({.spec = "model"});
  const auto e = device->open(1);
  for (const auto& [asked, got] :
       std::vector<std::pair<u32, u32>>{{0, 64}, {64, 64}, {65, 128}, {32769, 65536}}) {
    const auto q = e->create_command_queue({.slots = asked});
    EXPECT_EQ(q->memory(Initiator::cpu).slots, got);
    EXPECT_THROW((void)q->memory(Initiator::gpu), Error);
  }
  EXPECT_THROW((void)e->create_command_queue({.slots = 65537}), CallError);
  EXPECT_THROW((void)e->create_command_queue({.queue_memory = Place::gpu}), Error);
  const auto eq = e->create_event_queue(4097, Place::pageable);
  EXPECT_EQ(eq->memory(Initiator::cpu).bytes, 8192u);
  EXPECT_THROW((void)e->create_event_queue(0, Place::pageable), CallError);
  EXPECT_THROW((void)e->create_portals_entry(*eq, 256), CallError);
  const auto pte = e->create_portals_entry(*eq, 255);
  EXPECT_THROW((void)e->create_portals_entry(*eq, 255), CallError) << "in use";
  EXPECT_EQ(e->create_counter(false, Place::pageable)->memory(Initiator::cpu).writeback, nullptr);
  EXPECT_EQ(*device->alive(Initiator::cpu), 1u);
  // Seven address contexts, one of which `e` has.
  std::vector<std::unique_ptr<Endpoint>> all;
  for (u32 i = 0; i < 6; ++i) all.push_back(device->open(1));
  EXPECT_THROW((void)device->open(1), CallError);
  all.pop_back();
  EXPECT_NO_THROW((void)device->open(1));
}

}  // namespace
}  // namespace doorbell::cxi
