// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Every vector of ionic.json, both ways, each in its own version of the format.

#include <doorbell/rdma/ionic.hpp>

#include "golden/rdma_golden.hpp"

namespace doorbell::golden {
namespace {

template <class F>
void expect_rung(u64 doorbell, u32 id, u32 index) {
  const DoorbellValue rung = F::decode_doorbell(doorbell);
  EXPECT_EQ(rung.queue, DoorbellValue::Queue::by_register);
  EXPECT_EQ(rung.id, id);
  EXPECT_EQ(rung.index, index);
}

template <class F>
void encode_receive(const json& vector) {
  Keys in(vector.at("inputs")), expect(vector.at("expect"));
  u64 doorbell = 0;
  QueuePairMemory m;
  m.qpn = number32(in, "qpn");
  m.rq_doorbell = &doorbell;
  RingPosition at;
  at.units = number32(in, "rq_depth");
  at.slot = at.serial = at.running = number32(in, "rq_index");
  const DecodedWqe d = expect_receive<F>(receive_of(in), at, m, vector);
  EXPECT_EQ(d.index, at.slot);
  const RingPosition next = advance(at, 1, 1, 1);
  EXPECT_EQ(next.slot, expect("next_index"));
  F::ring_rq(m, next);
  EXPECT_EQ(hex_of(doorbell), expect.text("rq_doorbell_le64"));
  expect_rung<F>(doorbell, m.qpn, next.slot);
  in.expect_all_used("inputs");
  expect.expect_all_used("expect");
}

template <class F>
void encode_request(const json& vector) {
  Keys in(vector.at("inputs")), expect(vector.at("expect"));
  in("fw_version");
  u64 doorbell = 0;
  QueuePairMemory m;
  m.qpn = number32(in, "qpn");
  m.sq_doorbell = &doorbell;
  Request request = request_of(in);
  request.wr.payload = request.payload.data();
  RingPosition at;
  at.units = number32(in, "sq_depth");
  at.slot = at.running = at.serial = number32(in, "index");
  at.pass = in("color") != 0 ? 0 : 1;

  expect_encoded<F>(request.wr, at, m, vector);
  const DecodedWqe d = expect_decoded<F>(request, at, vector);
  EXPECT_EQ(d.index, at.slot);
  const RingPosition next = advance(at, 1, F::units(request.wr), 1);
  EXPECT_EQ(next.slot, expect("next_index"));
  EXPECT_EQ(~next.pass & 1, expect("next_color"));
  F::ring_sq(m, next, F::sq_doorbell_word(request.wr, at, m));
  EXPECT_EQ(hex_of(doorbell), expect.text("sq_doorbell_le64"));
  // Which qword of the page serves which queue is the driver's news; the recording's send queues use 1.
  EXPECT_EQ(expect("sq_doorbell_qword_index"), 1u);
  expect_rung<F>(doorbell, m.qpn, next.slot);
  in.expect_all_used("inputs");
  expect.expect_all_used("expect");
}

void encode(const json& vector) {
  if (vector.at("inputs").at("op") == "recv") {
    encode_receive<Ionic>(vector);
    encode_receive<IonicV2>(vector);
  } else if (vector.at("inputs").at("fw_version") == 1) {
    encode_request<Ionic>(vector);
  } else {
    ASSERT_EQ(vector.at("inputs").at("fw_version"), 2);
    encode_request<IonicV2>(vector);
  }
}

template <class F>
void decode_as(const json& vector) {
  Keys in(vector.at("inputs")), expect(vector.at("expect"));
  const u32 depth = number32(in, "cq_depth"), index = number32(in, "index");
  const u32 pass = in("expected_color") != 0 ? 0 : 1;
  const RecordedCqe<F> cqe(vector);
  const bool valid = expect("valid") != 0;
  EXPECT_EQ(F::cqe_valid(cqe.b(), pass), valid);
  EXPECT_EQ(F::cqe_valid(cqe.b(), pass + 1), !valid);
  if (!valid) return expect.expect_all_used("expect");

  const Completion c = cqe.decoded();
  expect_completion(c, expect);
  EXPECT_FALSE(c.ignore);
  EXPECT_EQ(c.receive, expect("type") == 1);
  const bool failed = c.status != Status::ok;
  CqeFields fields;
  fields.completion = c;
  fields.qpn = be32(cqe.b().w[3]) >> 8;
  if (c.receive) {
    EXPECT_EQ(c.mark, expect("rq_index"));
    fields.op = op_of_completion(expect("ibv_wc_opcode"));
    fields.source_qpn = number32(expect, "src_qpn");
  } else {
    EXPECT_EQ(fields.qpn, expect("qpn"));
    EXPECT_EQ(c.mark, expect("msn"));
    EXPECT_EQ(failed, expect("error") != 0);
    EXPECT_EQ(failed ? c.vendor_error : c.bytes, expect("status_length"));
    EXPECT_EQ(c.flush_all, c.status == Status::flushed);
    // One CQE ends everything up to its mark, and only the last of it may have failed.
    EXPECT_EQ(expect("completions"), in("outstanding"));
    EXPECT_EQ(expect("first_failed"), failed ? in("outstanding") - 1 : 255);
    EXPECT_EQ(in("sq_depth"), 64u);
  }
  RecordedCqe<F>::expect_encoded(fields, pass, vector);

  if (expect.has("cq_doorbell_le64")) {
    u64 doorbell = 0;
    RingPosition next;
    next.running = pass * depth + index + 1;
    next.units = depth;
    F::ring_cq(nullptr, &doorbell, next, number32(in, "cq_id"));
    expect_rung<F>(doorbell, number32(in, "cq_id"), next.running % depth);
    // The driver rings lazily: at the wrap it has not rung yet, and the page still holds zeros.
    const std::string recorded = expect.text("cq_doorbell_le64");
    if (next.running % depth == 0) {
      EXPECT_EQ(recorded, "0000000000000000");
    } else {
      EXPECT_EQ(hex_of(doorbell), recorded);
    }
  }
  in.expect_all_used("inputs");
  expect.expect_all_used("expect");
}

void decode(const json& vector) {
  decode_as<Ionic>(vector);
  decode_as<IonicV2>(vector);
}

TEST(Golden, EveryIonicVector) {
  run_file("ionic", {{"encode", encode}, {"decode", decode}});
}

}  // namespace
}  // namespace doorbell::golden
