// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Every vector of cxi.json, both ways.

#include <doorbell/cxi/commands.hpp>
#include <doorbell/cxi/event_queue.hpp>

#include <cstdio>

#include "cxi/names.hpp"
#include "golden/cxi_golden.hpp"

namespace doorbell::golden {
namespace {

/// Decoding gives what was encoded, and all of the bytes are told.
template <class C>
void expect_both_ways(const C& command, const json& vector) {
  expect_bytes(bytes_of_words(encode(command)), vector, "encoded");
  C decoded;
  ASSERT_TRUE(decode(Recorded(vector).data(), decoded));
  EXPECT_EQ(to_hex(bytes_of_words(pack(decoded))), to_hex(bytes_of_words(pack(command)))) << "decoded";
  expect_bytes(bytes_of_words(encode(decoded)), vector, "encoded again");
}

void nomatch_put(const json& vector) {
  Keys in(vector.at("inputs"));
  NomatchDma put;
  read_dma(in, put);
  expect_both_ways(put, vector);
  in.expect_all_used("inputs");
}

void full_put(const json& vector) {
  Keys in(vector.at("inputs"));
  FullDma put;
  read_dma(in, put);
  put.initiator = number32(in, "initiator");
  put.match_bits = in("match_bits");
  put.header_data = in("header_data");
  put.user_ptr = in("user_ptr");
  expect_both_ways(put, vector);
  in.expect_all_used("inputs");
}

void dfa(const json& vector) {
  Keys in(vector.at("inputs"));
  const u32 nid = number32(in, "nid"), pid = number32(in, "pid"), bits = number32(in, "pid_width"),
            idx = number32(in, "idx");
  const Dfa d = make_dfa(nid, pid, bits, idx);
  EXPECT_EQ(d.value, number32(in, "expect_dfa"));
  EXPECT_EQ(d.index_ext, number32(in, "expect_index_ext"));
  EXPECT_EQ(initiator_id(nid, pid, bits), number32(in, "expect_initiator_id"));
  expect_bytes(bytes_of(d.value), vector, "in memory");
  const EntryAddress t = split_dfa(d, bits);
  EXPECT_EQ(t.nid, nid);
  EXPECT_EQ(t.pid, pid);
  EXPECT_EQ(t.idx, idx);
  in.expect_all_used("inputs");
}

void set_state(const json& vector) {
  Keys in(vector.at("inputs"));
  SetState c;
  c.ptlte_index = number32(in, "ptlte_index");
  c.ptlte_state = static_cast<PtlteState>(in("ptlte_state"));
  c.drop_count = number32(in, "drop_count");
  expect_both_ways(c, vector);
  in.expect_all_used("inputs");
}

void append(const json& vector) {
  Keys in(vector.at("inputs"));
  Append c;
  c.ptl_list = static_cast<PortalsList>(in("ptl_list"));
  c.ptlte_index = number32(in, "ptlte_index");
  const u32 flags = number32(in, "le_flags");
  // The reference forgets one flag.
  c.flags = flags & 0x7fff & ~append_flag::unexpected_hdr_disable;
  c.restart_seq = (flags & 0x8000) != 0;
  c.ct = number32(in, "ct");
  c.buffer_id = number32(in, "buffer_id");
  c.lac = number32(in, "lac");
  c.start = in("start");
  c.length = in("length");
  c.min_free = number32(in, "min_free");
  c.match_id = number32(in, "match_id");
  c.match_bits = in("match_bits");
  c.ignore_bits = in("ignore_bits");
  expect_both_ways(c, vector);
  // Which is bit 1 of byte 5.
  Append with = c;
  with.flags |= append_flag::unexpected_hdr_disable;
  EXPECT_EQ(encode(with).w[0] ^ encode(c).w[0], u64{2} << 40);
  in.expect_all_used("inputs");
}

void counter_command(const json& vector) {
  Keys in(vector.at("inputs"));
  CounterCommand c;
  c.opcode = static_cast<CounterOpcode>(in("opcode"));
  c.ct = number32(in, "ct");
  c.trig_ct = number32(in, "trig_ct");
  c.eq = number32(in, "eq");
  c.ct_success = in("ct_success");
  c.ct_failure = number32(in, "ct_failure");
  c.set_ct_success = in("set_ct_success") != 0;
  c.set_ct_failure = in("set_ct_failure") != 0;
  c.threshold = in("threshold");
  (void)in.has("note");
  expect_both_ways(c, vector);
  CounterCommand decoded;
  EXPECT_TRUE(decode(Recorded(vector).data(), decoded) && decoded.opcode == c.opcode);
  in.expect_all_used("inputs");
}

void trig_put(const json& vector) {
  Keys in(vector.at("inputs")), dma(vector.at("inputs").at("dma"));
  (void)in.raw("dma");
  (void)in.has("note");
  TrigDma c;
  c.when.trig_ct = number32(in, "trig_ct");
  c.when.eq = number32(in, "eq");
  c.when.threshold = in("threshold");
  read_dma(dma, c.dma);
  Ring ring(64, 0);
  ring.state.memory.triggered = true;
  const u32 before = number32(in, "wp32_before");
  ring.at(before);
  CommandQueue<OneLane> queue(ring.state);
  ASSERT_TRUE(queue.post(lane, c));
  EXPECT_EQ(queue.state().wp32, number32(in, "wp32_after"));
  const Bytes want = from_hex(vector.at("bytes_hex").get<std::string>());
  EXPECT_EQ(to_hex(ring.bytes(before, want.size())), to_hex(want));
  TrigDma decoded;
  ASSERT_TRUE(decode(Recorded(vector).data() + (want.size() - 128) / 8, decoded));
  EXPECT_EQ(to_hex(bytes_of_words(encode(decoded))), to_hex(Bytes(want.end() - 128, want.end())));
  EXPECT_EQ(decoded.when.threshold, c.when.threshold);
  EXPECT_EQ(decoded.dma.request_len, c.dma.request_len);
  in.expect_all_used("inputs");
  dma.expect_all_used("dma");
}

void cstate(const json& vector) {
  Keys in(vector.at("inputs"));
  CState c;
  c.index_ext = number32(in, "index_ext");
  c.write_lac = number32(in, "write_lac");
  read_flags(in, c.flags);
  c.initiator = number32(in, "initiator");
  c.user_ptr = in("user_ptr");
  c.ct = number32(in, "ct");
  c.eq = number32(in, "eq");
  expect_both_ways(c, vector);
  in.expect_all_used("inputs");
}

template <class C>
Bytes bytes_of_command(const C& command) {
  Bytes out;
  for (u32 p = 0; p < 2 * command_units(command); ++p) {
    const Bytes part = bytes_of(command_part(command, p));
    out.insert(out.end(), part.begin(), part.end());
  }
  return out;
}

void idc_put(const json& vector) {
  Keys in(vector.at("inputs"));
  unsigned first = 0, step = 0;
  ASSERT_EQ(std::sscanf(in.text("payload_rule").c_str(), "byte[i] = (%u + %u*i) mod 256", &first, &step), 2);
  Bytes payload(in("payload_len"));
  for (std::size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<u8>(first + step * i);
  IdcPut c;
  c.dfa = read_dfa(in);
  c.remote_offset = in("remote_offset");
  c.bytes = static_cast<u32>(payload.size());
  c.payload = payload.data();
  (void)in.has("note");
  const Bytes got = bytes_of_command(c);
  EXPECT_EQ(got.size(), in("command_bytes"));
  expect_bytes(got, vector, "encoded");
  const Recorded recorded(vector);
  IdcPut d;
  ASSERT_TRUE(decode(recorded.data(), d));
  EXPECT_EQ(d.dfa, c.dfa);
  EXPECT_EQ(d.remote_offset, c.remote_offset);
  ASSERT_EQ(d.bytes, c.bytes);
  EXPECT_EQ(Bytes(d.payload, d.payload + d.bytes), payload);
  in.expect_all_used("inputs");
}

void lcid(const json& vector) {
  Keys in(vector.at("inputs"));
  const u8 fill = static_cast<u8>(in("ring_fill"));
  Ring ring(64, fill);
  const u32 before = number32(in, "wp32_before");
  ring.at(before);
  CommandQueue<OneLane> queue(ring.state);
  Lcid c;
  c.lcid = number32(in, "lcid");
  (void)in.has("note");
  ASSERT_TRUE(queue.post(lane, c));
  EXPECT_EQ(queue.state().wp32, number32(in, "wp32_after"));
  const Bytes want = from_hex(vector.at("bytes_hex").get<std::string>());
  expect_written(ring.bytes(before, want.size()), want, fill);
  Lcid decoded;
  ASSERT_TRUE(decode(Recorded(vector).data() + (want.size() - 128) / 8, decoded));
  EXPECT_EQ(decoded.lcid, c.lcid);
  in.expect_all_used("inputs");
}

// --- the queue as a state machine ------------------------------------------------------------------------

IdcPut filled_idc(const Bytes& payload) {
  IdcPut c;
  c.bytes = static_cast<u32>(payload.size());
  c.payload = payload.data();
  return c;
}

/// One step of a sequence; 0, or the error number that the reference returns.
int step(CommandQueue<OneLane>& queue, Ring& ring, const std::string& op) {
  unsigned a = 0, b = 0, c = 0;
  if (op == "ring") {
    queue.ring(lane);
    return 0;
  }
  if (std::sscanf(op.c_str(), "device sets rd_ptr=%u", &a) == 1) {
    ring.device_read(a);
    return 0;
  }
  if (std::sscanf(op.c_str(), "nomatch_put32 request_len=%u", &a) == 1) {
    NomatchDma put;
    put.request_len = a;
    return queue.post(lane, put) ? 0 : -28;
  }
  if (std::sscanf(op.c_str(), "full_dma_put64 request_len=%u", &a) == 1) {
    FullDma put;
    put.request_len = a;
    return queue.post(lane, put) ? 0 : -28;
  }
  if (std::sscanf(op.c_str(), "idc_put%u payload %u bytes of %x", &a, &b, &c) == 3) {
    const Bytes payload(b, static_cast<u8>(c));
    EXPECT_EQ(command_units(filled_idc(payload)) * 32, a);
    return queue.post(lane, filled_idc(payload)) ? 0 : -28;
  }
  ADD_FAILURE() << "unknown step " << op;
  return 0;
}

void sequence(const json& vector) {
  Keys in(vector.at("inputs"));
  const u32 slots = number32(in, "queue_slots");
  const u8 fill = static_cast<u8>(in("ring_fill"));
  Ring ring(slots, fill);
  CommandQueue<OneLane> queue(ring.state);
  const json& ops = in.raw("ops");
  const json& wp32 = in.raw("expect_wp32_after_each");
  const json& rc = in.raw("expect_rc_after_each");
  const json& doorbells = in.raw("expect_doorbell_u16");
  std::size_t rings = 0;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(step(queue, ring, ops.at(i).get<std::string>()), rc.at(i).get<int>());
    EXPECT_EQ(queue.state().wp32, wp32.at(i).get<u32>());
    if (ring.rung()) {
      EXPECT_EQ(ring.doorbell(), doorbells.at(rings++).get<u32>());
      ring.forget_doorbell();
    }
  }
  EXPECT_EQ(rings, doorbells.size());
  EXPECT_EQ(queue.bad_status(), 0u);
  (void)in.has("note");
  expect_written(ring.bytes(2 * kStatusSlots, u64{slots - kStatusSlots} * kSlotBytes),
                 from_hex(vector.at("bytes_hex").get<std::string>()), fill);
  in.expect_all_used("inputs");
}

void low_latency(const json& vector) {
  Keys in(vector.at("inputs"));
  Ring ring(64, 0);
  ring.at(number32(in, "hw_wp32_before"));
  CommandQueue<OneLane> queue(ring.state);
  std::vector<Bytes> payloads;
  for (u32 i = 0; i < in.raw("command_sizes").size(); ++i) {
    const u32 bytes = in.raw("command_sizes").at(i).get<u32>();
    if (bytes == 32) {
      NomatchDma put;
      put.request_len = 100 + i;
      put.local_addr = 0x1000 * u64{i + 1};
      ASSERT_TRUE(queue.post(lane, put));
    } else if (bytes == 64) {
      FullDma put;
      put.request_len = 100 + i;
      ASSERT_TRUE(queue.post(lane, put));
    } else {
      payloads.emplace_back(bytes == 128 ? 112 : 224, static_cast<u8>(0x30 + i));
      ASSERT_TRUE(queue.post(lane, filled_idc(payloads.back())));
    }
  }
  queue.ring_low_latency(lane);
  const i64 doorbell = in.raw("expect_doorbell_u16").get<i64>();
  EXPECT_EQ(ring.rung(), doorbell >= 0);
  if (doorbell >= 0) {
    EXPECT_EQ(ring.doorbell(), doorbell);
  }
  EXPECT_EQ(queue.state().rung32, number32(in, "expect_hw_wp32_after"));
  // The window has the recorded bytes, and nothing else of the page was touched.
  const i64 window = in.raw("expect_window_first_byte").get<i64>();
  Bytes want(kLaunchBytes, Ring::kUntouched), got(kLaunchBytes);
  std::memcpy(got.data(), ring.launch.data(), kLaunchBytes);
  const Bytes content = from_hex(vector.at("bytes_hex").get<std::string>());
  EXPECT_EQ(content.size(), in("expect_window_bytes"));
  if (window >= 0) std::copy(content.begin(), content.end(), want.begin() + window);
  std::copy(got.begin(), got.begin() + 8, want.begin());
  EXPECT_EQ(to_hex(got), to_hex(want));
  (void)in.has("note");
  in.expect_all_used("inputs");
}

// --- what the device writes ------------------------------------------------------------------------------

template <class E>
E expect_event(const json& vector, Keys& in) {
  const Recorded recorded(vector);
  E e;
  EXPECT_TRUE(decode_event(recorded.data(), e));
  EXPECT_EQ(EventHead::bytes(recorded.words[1]), in("expect_size_bytes"));
  EXPECT_EQ(static_cast<u32>(e.type), in("expect_type"));
  EXPECT_EQ(name(e.type), in.text("expect_type_name"));
  EXPECT_EQ(static_cast<u32>(e.return_code), in("expect_rc"));
  EXPECT_EQ(name(e.return_code), in.text("expect_rc_name"));
  expect_bytes(bytes_of_words(encode_event(e)), vector, "encoded again");
  return e;
}

void expect_initiator(const InitiatorEvent& e, Keys& in) {
  EXPECT_EQ(e.user_ptr, in("user_ptr"));
  EXPECT_EQ(e.mlength, in("mlength"));
  if (in.has("tgt_error")) {
    EXPECT_EQ(e.tgt_error, in("tgt_error") != 0);
  }
}

void expect_target(const TargetHead& e, Keys& in) {
  EXPECT_EQ(e.header_data, in("header_data"));
  EXPECT_EQ(e.initiator, in("initiator"));
  EXPECT_EQ(e.ptlte_index, in("ptlte_index"));
  EXPECT_EQ(static_cast<u32>(e.ptl_list), in("ptl_list"));
  EXPECT_EQ(e.auto_unlinked, in("auto_unlinked") != 0);
  EXPECT_EQ(e.match_bits, in("match_bits"));
  EXPECT_EQ(e.buffer_id, in("buffer_id"));
  EXPECT_EQ(e.vni, in("vni"));
}

void expect_target_long(const TargetLongEvent& e, Keys& in) {
  expect_target(e, in);
  EXPECT_EQ(e.rendezvous, in("rendezvous") != 0);
  EXPECT_EQ(e.get_issued, in("get_issued") != 0);
  EXPECT_EQ(e.ns, in("timestamp_ns"));
  EXPECT_EQ(e.sec_low, in("timestamp_sec_low"));
  EXPECT_EQ(e.mlength, in("mlength"));
  EXPECT_EQ(e.rlength, in("rlength"));
  EXPECT_EQ(e.remote_offset, in("remote_offset"));
  EXPECT_EQ(e.start, in("start"));
  EXPECT_EQ(e.lpe_stat_1, in("lpe_stat_1"));
  EXPECT_EQ(e.lpe_stat_2, in("lpe_stat_2"));
  EXPECT_EQ(e.atomic_type, in("atomic_type"));
  EXPECT_EQ(e.atomic_op, in("atomic_op"));
  EXPECT_EQ(e.cswap_op, in("cswap_op"));
  EXPECT_EQ(e.rendezvous_id, in("rendezvous_id"));
}

void expect_state_change(const StateChangeEvent& e, Keys& in) {
  EXPECT_EQ(e.ptlte_index, in("ptlte_index"));
  EXPECT_EQ(static_cast<u32>(e.ptlte_state), in("ptlte_state"));
  EXPECT_EQ(e.reason, in("sc_reason"));
  if (in.has("sc_nic_auto")) {
    EXPECT_EQ(e.by_nic, in("sc_nic_auto") != 0);
  }
}

void expect_command_failure(const CommandFailureEvent& e, Keys& in) {
  EXPECT_EQ(e.cq_id, in("cq_id"));
  EXPECT_EQ(e.is_target, in("is_target") != 0);
  EXPECT_EQ(e.fail_loc, in("fail_loc"));
  const CommandHeader h = header_of(e.fail_command);
  EXPECT_EQ(h.type, in("fail_cmd_type"));
  EXPECT_EQ(h.size_code, in("fail_cmd_size"));
  EXPECT_EQ(h.opcode, in("fail_opcode"));
}

void event(const json& vector) {
  Keys in(vector.at("inputs"));
  const std::string layout = in.text("layout");
  const bool state = in("expect_type") == static_cast<u32>(EventType::state_change);
  if (layout == "trig_op_short") {
    const auto e = expect_event<TriggeredEvent>(vector, in);
    EXPECT_EQ(e.threshold, in("threshold"));
    EXPECT_EQ(e.ct_handle, in("ct_handle"));
  } else if (layout == "initiator_short") {
    expect_initiator(expect_event<InitiatorEvent>(vector, in), in);
  } else if (layout == "initiator_long") {
    const auto e = expect_event<InitiatorLongEvent>(vector, in);
    expect_initiator(e, in);
    EXPECT_EQ(e.time.ns, in("timestamp_ns"));
    EXPECT_EQ(e.time.sec, in("timestamp_sec"));
  } else if (layout == "target_long" && state) {
    expect_state_change(expect_event<StateChangeLongEvent>(vector, in), in);
  } else if (layout == "target_long") {
    expect_target_long(expect_event<TargetLongEvent>(vector, in), in);
  } else if (layout == "target_short" && state) {
    expect_state_change(expect_event<StateChangeEvent>(vector, in), in);
  } else if (layout == "target_short") {
    const auto e = expect_event<TargetEvent>(vector, in);
    expect_target(e, in);
    EXPECT_EQ(e.length, in("length"));
  } else if (layout == "cmd_fail") {
    expect_command_failure(expect_event<CommandFailureEvent>(vector, in), in);
  } else {
    ADD_FAILURE() << "unknown layout " << layout;
  }
  in.expect_all_used("inputs");
}

void queue_status(const json& vector) {
  Keys in(vector.at("inputs"));
  const auto s = unpack<CommandQueueStatus>(Recorded(vector).data());
  EXPECT_EQ(s.rd_ptr, in("rd_ptr"));
  EXPECT_EQ(s.rejected, in("num_write_cmds_rejected"));
  EXPECT_EQ(s.fail_command, in("fail_command"));
  EXPECT_EQ(static_cast<u32>(s.return_code), in("return_code"));
  EXPECT_EQ(s.fail_loc_32, in("fail_loc_32") != 0);
  EXPECT_EQ(s.fail_ll, in("fail_ll") != 0);
  EXPECT_EQ(s.ll_disabled, in("ll_disabled") != 0);
  expect_bytes(bytes_of_words(pack(s)), vector, "encoded again");
  in.expect_all_used("inputs");
}

void event_queue_status(const json& vector) {
  Keys in(vector.at("inputs"));
  const auto s = unpack<EventQueueStatus>(Recorded(vector).data());
  EXPECT_TRUE(s.valid());
  EXPECT_EQ(s.ns, in("timestamp_ns"));
  EXPECT_EQ(s.sec, in("timestamp_sec"));
  EXPECT_EQ(s.thld_sts, in("thld_sts") != 0);
  EXPECT_EQ(s.thld_id, in("thld_id"));
  EXPECT_EQ(s.unackd_dropped, in("unackd_dropped_event") != 0);
  EXPECT_EQ(s.drop_seq, in("event_drop_seq_no") != 0);
  EXPECT_EQ(s.slots_free, in("event_slots_free"));
  EXPECT_EQ(s.slots_reserved, in("event_slots_rsrvd"));
  EXPECT_EQ(s.wr_ptr, in("wr_ptr"));
  EXPECT_EQ(s.buffer_b, in("using_buffer_b") != 0);
  (void)in.has("note");
  expect_bytes(bytes_of_words(pack(s)), vector, "encoded again");
  in.expect_all_used("inputs");
}

void writeback(const json& vector) {
  Keys in(vector.at("inputs"));
  const auto c = unpack<CounterCounts>(Recorded(vector).data());
  EXPECT_EQ(c.success, in("ct_success"));
  EXPECT_EQ(c.failure, in("ct_failure"));
  EXPECT_EQ(c.valid, in("ct_writeback") != 0);
  expect_bytes(bytes_of_words(pack(c)), vector, "encoded again");
  in.expect_all_used("inputs");
}

void csr(const json& vector) {
  Keys in(vector.at("inputs"));
  const auto c = unpack<EventQueueCsr>(Recorded(vector).data());
  EXPECT_EQ(c.rd_ptr, in("rd_ptr"));
  EXPECT_EQ(c.reading_buffer_b, in("reading_buffer_b") != 0);
  EXPECT_EQ(c.event_int_disable, in("event_int_disable") != 0);
  EXPECT_EQ(c.eq_sts_int_disable, in("eq_sts_int_disable") != 0);
  EXPECT_EQ(c.event_drop_seq_no, in("event_drop_seq_no") != 0);
  expect_bytes(bytes_of_words(pack(c)), vector, "encoded again");
  in.expect_all_used("inputs");
}

template <class E>
void store_event(u64* at, EventType type) {
  E e;
  e.type = type;
  const auto words = encode_event(e);
  for (u32 k = 0; k < E::kWords; ++k) at[k] |= words.w[k];
}

void walk(const json& vector) {
  Keys in(vector.at("inputs"));
  const u32 bytes = number32(in, "byte_size");
  std::vector<u64> memory(bytes / 8);
  u64 register_word = 0;
  EventQueueState state;
  state.memory = {reinterpret_cast<u8*>(memory.data()), &register_word, bytes, 1};
  EventQueue<OneLane> queue(state);
  const json& sizes = in.raw("event_sizes");
  const json& acks = in.raw("expect_csr_after_each_ack");
  const u64 every = in("ack_every");
  u32 at = kEventQueueHead;
  std::size_t acked = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const u32 size = sizes.at(i).get<u32>();
    const bool null = i == 1;
    u64* const to = memory.data() + at / 8;
    if (size == 16) store_event<InitiatorEvent>(to, null ? EventType::null_event : EventType::ack);
    else if (size == 32) store_event<InitiatorLongEvent>(to, null ? EventType::null_event : EventType::ack);
    else store_event<TargetLongEvent>(to, null ? EventType::null_event : EventType::put);
    at = at + size >= bytes ? kEventQueueHead : at + size;
    const auto p = queue.poll(lane);
    EXPECT_EQ(p.bytes, null ? 0 : size) << i;
    EXPECT_EQ(queue.state().read, at);
    if ((i + 1) % every != 0) continue;
    EXPECT_EQ(queue.ack(lane), 1u);
    EXPECT_EQ(register_word, acks.at(acked++).get<u64>());
  }
  EXPECT_EQ(acked, acks.size());
  EXPECT_EQ(queue.state().read, in("expect_rd_offset"));
  expect_bytes(bytes_of(register_word), vector, "the register");
  EXPECT_EQ(std::count(memory.begin(), memory.end(), 0) == static_cast<i64>(memory.size()),
            in("expect_all_zero_after") != 0);
  (void)in.has("note");
  in.expect_all_used("inputs");
}

void counter_doorbell(const json& vector) {
  Keys in(vector.at("inputs"));
  std::vector<u64> page(512);
  const Counter counter({page.data(), nullptr, 1});
  EXPECT_FALSE(counter.readable());
  counter.add_success(in("inc_success"));
  counter.add_failure(in("inc_failure"));
  EXPECT_EQ(page[0], in("expect_u64_at_0"));
  EXPECT_EQ(page[8], in("expect_u64_at_64"));
  Bytes got(from_hex(vector.at("bytes_hex").get<std::string>()).size());
  std::memcpy(got.data(), page.data(), got.size());
  expect_bytes(got, vector, "the page");
  page[in("reset_success_offset") / 8] = page[in("reset_failure_offset") / 8] = 7;
  counter.reset_success();
  counter.reset_failure();
  EXPECT_EQ(page[in("reset_success_offset") / 8] | page[in("reset_failure_offset") / 8], 0u);
  (void)in.has("note");
  in.expect_all_used("inputs");
}

TEST(Golden, EveryCxiVector) {
  const json document = read_file("cxi");
  ASSERT_TRUE(document.is_object());
  const u64 run = run_vectors(document.at("vectors"), {{"nomatch_put", nomatch_put},
                                                       {"full_dma_put", full_put},
                                                       {"dfa", dfa},
                                                       {"tgt_setstate", set_state},
                                                       {"tgt_append", append},
                                                       {"ct", counter_command},
                                                       {"ct_trig_nomatch_put", trig_put},
                                                       {"idc_cstate", cstate},
                                                       {"idc_put", idc_put},
                                                       {"cq_lcid", lcid},
                                                       {"cq_sequence", sequence},
                                                       {"cq_ll_ring", low_latency},
                                                       {"event_decode", event},
                                                       {"cq_status", queue_status},
                                                       {"eq_status", event_queue_status},
                                                       {"ct_writeback", writeback},
                                                       {"eq_sw_state", csr},
                                                       {"eq_walk", walk},
                                                       {"ct_doorbell", counter_doorbell}});
  EXPECT_GE(run, 75u);
}

}  // namespace
}  // namespace doorbell::golden
