// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Every vector of bnxt.json, both ways.

#include <doorbell/rdma/bnxt.hpp>

#include "golden/rdma_golden.hpp"

namespace doorbell::golden {
namespace {

void encode_receive(const json& vector) {
  Keys in(vector.at("inputs")), expect(vector.at("expect"));
  u64 doorbell = 0;
  QueuePairMemory m;
  m.qpn = number32(in, "qpn");
  m.rq_doorbell = &doorbell;
  RingPosition at;
  at.units = number32(in, "rq_depth");
  at.slot = at.serial = at.running = number32(in, "rq_index");
  EXPECT_EQ(in("slots_per_wqe"), Bnxt::kReceiveParts);
  EXPECT_EQ(in("rq_slots"), at.units * Bnxt::kReceiveParts);
  EXPECT_EQ(in("start_slot"), at.slot * Bnxt::kReceiveParts);
  const DecodedWqe d = expect_receive<Bnxt>(receive_of(in), at, m, vector);
  EXPECT_EQ(d.index, at.slot);

  const RingPosition next = advance(at, 1, 1, 1);
  EXPECT_EQ(next.slot, expect("next_index"));
  EXPECT_EQ(next.slot * Bnxt::kReceiveParts, expect("next_slot"));
  Bnxt::ring_rq(m, next);
  EXPECT_EQ(hex_of(doorbell), expect.text("rq_doorbell_le64"));
  const DoorbellValue rung = Bnxt::decode_doorbell(doorbell);
  EXPECT_EQ(rung.queue, DoorbellValue::Queue::receive);
  EXPECT_EQ(rung.id, m.qpn);
  EXPECT_EQ(rung.index, next.slot);
  in.expect_all_used("inputs");
  expect.expect_all_used("expect");
}

void encode(const json& vector) {
  if (vector.at("inputs").at("op") == "recv") return encode_receive(vector);
  Keys in(vector.at("inputs")), expect(vector.at("expect"));
  u64 doorbell = 0;
  QueuePairMemory m;
  m.qpn = number32(in, "qpn");
  m.mtu = number32(in, "mtu");
  m.sq_units = number32(in, "sq_slots");
  m.sq_doorbell = &doorbell;
  Request request = request_of(in);
  request.wr.payload = request.payload.data();
  const WorkRequest& wr = request.wr;
  RingPosition at;
  at.units = m.sq_units;
  at.slot = at.running = number32(in, "start_slot");
  at.pass = number32(in, "epoch");
  at.psn = number32(in, "start_psn");
  at.serial = number32(in, "msn");

  EXPECT_EQ(Bnxt::units(wr), expect("wqe_slots"));
  EXPECT_EQ(Bnxt::units(wr), expect("slots_consumed"));
  expect_encoded<Bnxt>(wr, at, m, vector);
  expect_decoded<Bnxt>(request, at, vector);
  EXPECT_EQ(hex_of(Bnxt::table_entry(wr, at, m)), expect.text("msn_entry_le64"));
  EXPECT_EQ(Bnxt::table_index(at, m), in("msn"));

  const RingPosition next = advance(at, 1, Bnxt::units(wr), packets_of(wr.bytes, m.mtu));
  EXPECT_EQ(next.slot, expect("next_slot"));
  EXPECT_EQ(next.pass & 1, expect("next_epoch"));
  EXPECT_EQ(next.psn, expect("next_psn"));
  EXPECT_EQ(Bnxt::table_index(next, m), expect("next_msn"));
  RingPosition last = at;
  last.serial = number32(in, "msn_table_entries") - 1;
  EXPECT_EQ(Bnxt::table_index(last, m), last.serial);
  EXPECT_EQ(Bnxt::table_index(advance(last, 1, 1, 1), m), 0u);

  Bnxt::ring_sq(m, next, Bnxt::sq_doorbell_word(wr, at, m));
  EXPECT_EQ(hex_of(doorbell), expect.text("sq_doorbell_le64"));
  const DoorbellValue rung = Bnxt::decode_doorbell(doorbell);
  EXPECT_EQ(rung.queue, DoorbellValue::Queue::send);
  EXPECT_EQ(rung.id, m.qpn);
  EXPECT_EQ(rung.index, next.slot);
  EXPECT_EQ(rung.epoch, next.pass & 1);
  in.expect_all_used("inputs");
  expect.expect_all_used("expect");
}

void expect_cq_doorbell(Keys& in, Keys& expect, u32 running, u32 depth) {
  u64 doorbell = 0;
  RingPosition next;
  next.running = running;
  next.units = depth;
  Bnxt::ring_cq(nullptr, &doorbell, next, number32(in, "cq_id"));
  EXPECT_EQ(hex_of(doorbell), expect.text("cq_doorbell_le64"));
  const DoorbellValue rung = Bnxt::decode_doorbell(doorbell);
  EXPECT_EQ(rung.queue, DoorbellValue::Queue::completion);
  EXPECT_EQ(rung.id, in("cq_id"));
  EXPECT_EQ(rung.index, running % depth);
  EXPECT_EQ(rung.epoch, running / depth % 2);
}

void decode(const json& vector) {
  Keys in(vector.at("inputs")), expect(vector.at("expect"));
  const u32 depth = number32(in, "cq_depth"), head = number32(in, "head");
  const u32 pass = in("expected_phase") != 0 ? 0 : 1;
  const RecordedCqe<Bnxt> cqe(vector);
  const bool valid = expect("valid") != 0;
  EXPECT_EQ(Bnxt::cqe_valid(cqe.b(), pass), valid);
  EXPECT_EQ(Bnxt::cqe_valid(cqe.b(), pass + 1), !valid);
  if (!valid) return expect.expect_all_used("expect");

  const Completion c = cqe.decoded();
  expect_completion(c, expect);
  EXPECT_FALSE(c.ignore);
  const u64 type = expect("type");
  EXPECT_EQ(c.receive, type == 1);
  EXPECT_EQ(c.flush_all, type == 14);
  if (expect.has("completions")) {
    EXPECT_EQ(c.flush_all ? 0u : 1u, expect("completions"));
  }
  if (expect.has("con_indx")) {
    EXPECT_EQ(c.mark, expect("con_indx"));
  }
  if (expect.has("vendor_err")) {
    EXPECT_EQ(c.vendor_error, expect("vendor_err"));
  }
  if (expect.has("hw_status")) {
    EXPECT_EQ(c.vendor_error, expect("hw_status"));
  }
  CqeFields fields;
  fields.completion = c;
  fields.ring_units = 768;
  if (c.receive) {
    fields.op = op_of_completion(expect("ibv_wc_opcode"));
    fields.qp_handle = u64{cqe.a().w[3]} << 32 | cqe.a().w[2];
  } else {
    fields.qp_handle = expect("qp_handle_u64");
  }
  RecordedCqe<Bnxt>::expect_encoded(fields, pass, vector);
  if (expect.has("cq_doorbell_le64")) expect_cq_doorbell(in, expect, pass * depth + head + 1, depth);
  in.expect_all_used("inputs");
  expect.expect_all_used("expect");
}

TEST(Golden, EveryBnxtVector) {
  run_file("bnxt", {{"encode", encode}, {"decode", decode}});
}

}  // namespace
}  // namespace doorbell::golden
