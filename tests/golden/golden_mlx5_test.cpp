// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Every vector of mlx5.json, both ways.

#include <doorbell/rdma/mlx5.hpp>

#include "golden/rdma_golden.hpp"

namespace doorbell::golden {
namespace {

struct Registers {
  u32 record[2] = {};
  u64 doorbell = 0;
  QueuePairMemory memory(Keys& in) {
    QueuePairMemory m;
    m.qp_record = record;
    m.sq_doorbell = &doorbell;
    m.qpn = number32(in, "qpn");
    return m;
  }
};

void encode_receive(const json& vector) {
  Keys in(vector.at("inputs")), expect(vector.at("expect"));
  Registers registers;
  const QueuePairMemory m = registers.memory(in);
  RingPosition at;
  at.units = number32(in, "rq_depth");
  at.slot = number32(in, "rq_index");
  at.running = number32(in, "counter_before");
  const ReceiveRequest rr = receive_of(in);
  EXPECT_EQ(in("max_recv_sge") * sizeof(Word16), expect("stride"));
  expect_receive<Mlx5>(rr, at, m, vector);
  Mlx5::ring_rq(m, advance(at, 1, 1, 1));
  EXPECT_EQ(hex_of(registers.record[0]), expect.text("dbrec_recv_be32"));
  EXPECT_EQ(registers.record[1], 0u);
  in.expect_all_used("inputs");
  expect.expect_all_used("expect");
}

void encode(const json& vector) {
  if (vector.at("inputs").at("op") == "recv") return encode_receive(vector);
  Keys in(vector.at("inputs")), expect(vector.at("expect"));
  Registers registers;
  const QueuePairMemory m = registers.memory(in);
  Request request = request_of(in);
  request.wr.payload = request.payload.data();
  const WorkRequest& wr = request.wr;
  RingPosition at;
  at.units = number32(in, "sq_wqebb");
  at.slot = number32(in, "ring_slot");
  at.running = number32(in, "pi");

  EXPECT_EQ(Mlx5::segments(wr), expect("ds"));
  EXPECT_EQ(Mlx5::units(wr), expect("wqebbs"));
  expect_encoded<Mlx5>(wr, at, m, vector);
  const DecodedWqe d = expect_decoded<Mlx5>(request, at, vector);
  EXPECT_EQ(d.index, at.running);

  const RingPosition next = advance(at, 1, Mlx5::units(wr), 1);
  EXPECT_EQ(next.running, expect("next_pi"));
  Mlx5::ring_sq(m, next, Mlx5::sq_doorbell_word(wr, at, m));
  EXPECT_EQ(hex_of(registers.record[1]), expect.text("dbrec_send_be32"));
  EXPECT_EQ(registers.record[0], 0u);
  const DoorbellValue rung = Mlx5::decode_doorbell(registers.doorbell);
  EXPECT_EQ(rung.queue, DoorbellValue::Queue::send);
  EXPECT_EQ(rung.id, m.qpn);
  // The driver alternates between the halves of its BlueFlame register, of which a back end names one.
  EXPECT_TRUE(expect("uar_offset") == 0x800 || expect("uar_offset") == 0x900);
  if (expect.has("uar_bytes")) {
    // A BlueFlame write is the WQE itself: it begins with the doorbell.
    EXPECT_EQ(hex_of(registers.doorbell), expect.text("uar_bytes").substr(0, 16));
    EXPECT_EQ(vector.at("bytes_hex").get<std::string>(),
              expect.text("uar_bytes").substr(0, expect("ds") * 32));
  } else {
    EXPECT_EQ(hex_of(registers.doorbell), expect.text("uar_doorbell_8b"));
  }
  in.expect_all_used("inputs");
  expect.expect_all_used("expect");
}

void decode(const json& vector) {
  Keys in(vector.at("inputs")), expect(vector.at("expect"));
  const u32 index = number32(in, "cons_index"), depth = number32(in, "cq_depth");
  const u32 pass = index / depth;
  const RecordedCqe<Mlx5> cqe(vector);
  const bool valid = expect("valid") != 0;
  EXPECT_EQ(Mlx5::cqe_valid(cqe.b(), pass), valid);
  if (!valid) {
    // Valid in no pass, or in those before and after.
    EXPECT_EQ(Mlx5::cqe_valid(cqe.b(), pass + 1), Mlx5::cqe_valid(cqe.b(), pass + 3));
    expect.expect_all_used("expect");
    return;
  }
  EXPECT_FALSE(Mlx5::cqe_valid(cqe.b(), pass + 1));

  const Completion c = cqe.decoded();
  expect_completion(c, expect);
  EXPECT_FALSE(c.ignore);
  EXPECT_FALSE(c.flush_all);
  EXPECT_EQ(c.mark, expect("wqe_counter"));
  if (expect.has("sq_slot")) {
    EXPECT_EQ(c.mark & (number32(in, "sq_wqebb") - 1), expect("sq_slot"));
  }
  CqeFields fields;
  fields.completion = c;
  fields.qpn = number32(expect, "qpn");
  if (expect.has("ibv_wc_opcode")) {
    fields.op = op_of_completion(expect("ibv_wc_opcode"));
    EXPECT_EQ(c.receive, expect("ibv_wc_opcode") >= 128);
  }
  EXPECT_EQ(c.vendor_error, expect.has("vendor_err") ? expect("vendor_err") : 0);
  if (expect.has("syndrome")) {
    EXPECT_EQ(cqe.b().w[1] >> 24, expect("syndrome"));
  }
  RecordedCqe<Mlx5>::expect_encoded(fields, pass, vector);

  if (expect.has("cq_dbrec_be32")) {
    u32 record[2] = {};
    RingPosition next;
    next.running = index + 1;
    Mlx5::ring_cq(record, nullptr, next, 0);
    EXPECT_EQ(hex_of(record[0]), expect.text("cq_dbrec_be32"));
    EXPECT_EQ(record[1], 0u);
  }
  in.expect_all_used("inputs");
  expect.expect_all_used("expect");
}

TEST(Golden, EveryMlx5Vector) {
  run_file("mlx5", {{"encode", encode}, {"decode", decode}});
}

}  // namespace
}  // namespace doorbell::golden
