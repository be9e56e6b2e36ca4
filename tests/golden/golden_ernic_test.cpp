// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Every vector of ernic.json, both ways.

#include <doorbell/rdma/ernic.hpp>

#include "golden/rdma_golden.hpp"

namespace doorbell::golden {
namespace {

constexpr u32 kPage = 4096;  // the rings begin behind it

/// A queue pair's ring state and registers.
struct Registers {
  u32 state[4] = {};
  u64 doorbell = 0;
  QueuePairMemory memory(Keys& in) {
    QueuePairMemory m;
    m.qp_record = state;
    m.sq_doorbell = m.rq_doorbell = &doorbell;
    m.qpn = number32(in, "qpn");
    m.handle = number32(in, "qp_handle");
    return m;
  }
  /// The register's first dword; the other is not this queue's.
  [[nodiscard]] std::string dword0() const {
    EXPECT_EQ(doorbell >> 32, 0u);
    return hex_of(static_cast<u32>(doorbell));
  }
};

/// The position whose request carries the recorded wr_id.
RingPosition position(Keys& in, const std::string& depth) {
  RingPosition at;
  at.units = number32(in, depth);
  at.running = number32(in, "prod_tail");
  at.slot = at.running % at.units;
  at.serial = number32(in, "wr_id") - 1;
  return at;
}

void encode_receive(const json& vector) {
  Keys in(vector.at("inputs")), expect(vector.at("expect"));
  Registers registers;
  const QueuePairMemory m = registers.memory(in);
  const RingPosition at = position(in, "rq_depth");
  EXPECT_EQ(in("rq_index"), at.slot);
  EXPECT_EQ(expect("slot_stride"), Ernic::kReceiveParts * sizeof(Word16));
  const DecodedWqe d = expect_receive<Ernic>(receive_of(in), at, m, vector);
  EXPECT_EQ(d.wr_id, in("wr_id"));
  Ernic::ring_rq(m, advance(at, 1, 1, 1));
  EXPECT_EQ(registers.state[2], expect("next_prod_tail"));
  EXPECT_EQ(registers.state[0] | registers.state[1] | registers.state[3], 0u);
  EXPECT_EQ(registers.dword0(), expect.text("uar_dword0_le32"));
  EXPECT_EQ(Ernic::decode_doorbell(registers.doorbell).queue, DoorbellValue::Queue::receive);
  EXPECT_EQ(Ernic::decode_doorbell(registers.doorbell).id, m.handle);
  in.expect_all_used("inputs");
  expect.expect_all_used("expect");
}

void encode(const json& vector) {
  if (vector.at("inputs").at("op") == "recv") return encode_receive(vector);
  Keys in(vector.at("inputs")), expect(vector.at("expect"));
  Registers registers;
  const QueuePairMemory m = registers.memory(in);
  const Request request = request_of(in);
  const RingPosition at = position(in, "sq_depth");
  EXPECT_EQ(in("ring_slot"), at.slot);
  EXPECT_EQ(expect("slot_stride"), Ernic::kUnitParts * sizeof(Word16));
  EXPECT_EQ(expect("slot_byte_offset"), kPage + at.slot * Ernic::kUnitParts * sizeof(Word16));
  expect_encoded<Ernic>(request.wr, at, m, vector);
  const DecodedWqe d = expect_decoded<Ernic>(request, at, vector);
  EXPECT_EQ(d.wr_id, in("wr_id"));

  Ernic::ring_sq(m, advance(at, 1, Ernic::units(request.wr), 1), 0);
  EXPECT_EQ(registers.state[0], expect("next_prod_tail"));
  EXPECT_EQ(hex_of(registers.state[0]), expect.text("ring_prod_tail_le32"));
  EXPECT_EQ(registers.state[1] | registers.state[2] | registers.state[3], 0u);
  EXPECT_EQ(registers.dword0(), expect.text("uar_dword0_le32"));
  EXPECT_EQ(Ernic::decode_doorbell(registers.doorbell).queue, DoorbellValue::Queue::send);
  EXPECT_EQ(Ernic::decode_doorbell(registers.doorbell).id, m.handle);
  in.expect_all_used("inputs");
  expect.expect_all_used("expect");
}

/// The poll request, which the driver writes when it finds the ring empty; a model must know it.
void expect_poll_request(Keys& in, Keys& expect) {
  const Bytes raw = from_hex(expect.text("uar_dword1_le32"));
  u32 dword = 0;
  ASSERT_EQ(raw.size(), sizeof dword);
  std::memcpy(&dword, raw.data(), sizeof dword);
  const DoorbellValue rung = Ernic::decode_doorbell(u64{dword} << 32);
  EXPECT_EQ(rung.queue, DoorbellValue::Queue::completion);
  EXPECT_EQ(rung.id, in("cq_id"));
}

void decode(const json& vector) {
  Keys in(vector.at("inputs")), expect(vector.at("expect"));
  const u32 depth = number32(in, "cq_depth"), head = number32(in, "cons_head");
  const u32 filled = Ernic::ring_filled(number32(in, "prod_tail"), head, depth);
  ASSERT_NE(filled, Ernic::kBadIndex);
  EXPECT_EQ(filled != 0, expect("valid") != 0);
  if (filled == 0) {
    expect_poll_request(in, expect);
    in.expect_all_used("inputs");
    return expect.expect_all_used("expect");
  }

  const RecordedCqe<Ernic> cqe(vector);
  EXPECT_TRUE(Ernic::cqe_valid(cqe.b(), 0));
  EXPECT_TRUE(Ernic::cqe_valid(cqe.b(), 1));
  const Completion c = Ernic::decode_cqe(cqe.a(), cqe.b(), cqe.parts[Ernic::kCqePartC]);
  expect_completion(c, expect);
  EXPECT_FALSE(c.ignore);
  EXPECT_FALSE(c.flush_all);
  EXPECT_EQ(c.mark, expect("wr_id") & 0xffffffff);
  EXPECT_EQ(c.receive, expect("wc_opcode") >= 128);
  // Two parts say the same, but for what only the third has.
  Completion two = cqe.decoded();
  EXPECT_EQ(two.mark, c.mark);
  EXPECT_EQ(two.status, c.status);
  EXPECT_EQ(two.bytes, c.bytes);
  EXPECT_EQ(two.imm, c.imm);
  EXPECT_EQ(two.receive, c.receive);

  CqeFields fields;
  fields.completion = c;
  fields.op = op_of_completion(expect("wc_opcode"));
  fields.qpn = number32(expect, "qpn");
  fields.wr_id = expect("wr_id");
  RecordedCqe<Ernic>::expect_encoded(fields, 0, vector);

  u32 state[4] = {};
  RingPosition next;
  next.running = head + 1;
  next.units = depth;
  Ernic::ring_cq(state, nullptr, next, number32(in, "cq_id"));
  EXPECT_EQ(state[3], expect("next_cons_head"));
  EXPECT_EQ(state[0] | state[1] | state[2], 0u);
  in.expect_all_used("inputs");
  expect.expect_all_used("expect");
}

TEST(Golden, EveryErnicVector) {
  run_file("ernic", {{"encode", encode}, {"decode", decode}});
}

}  // namespace
}  // namespace doorbell::golden
