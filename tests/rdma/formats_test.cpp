// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The rules for all RDMA wire formats: requests and completions are decoded as they were encoded, at every
// place of a ring and in every pass, and requests that a format cannot express are refused.

#include <doorbell/rdma/bnxt.hpp>
#include <doorbell/rdma/ernic.hpp>
#include <doorbell/rdma/ionic.hpp>
#include <doorbell/rdma/mlx5.hpp>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "wqes.hpp"

namespace doorbell::rdma {
namespace {

constexpr Op kOps[] = {Op::write,    Op::write_imm, Op::read,        Op::send,
                       Op::send_imm, Op::fetch_add, Op::compare_swap};
constexpr u32 kSizes[] = {0, 1, 12, 13, 28, 29, 31, 32, 33, 64, 96, 4096, kMaxMessage};
constexpr u32 kUnits = 24;  // no power of two where the format allows it

WorkRequest request(Op op, u32 bytes, std::mt19937_64& random) {
  WorkRequest wr;
  wr.op = op;
  wr.bytes = is_atomic(op) ? kAtomicBytes : bytes;
  wr.signalled = (random() & 1) != 0;
  wr.fence = (random() & 1) != 0;
  wr.solicited = (random() & 1) != 0;
  wr.local = random();
  wr.lkey = static_cast<u32>(random());
  wr.rkey = static_cast<u32>(random());
  wr.remote = random();
  wr.imm = static_cast<u32>(random());
  wr.operand = random();
  wr.compare = random();
  return wr;
}

template <class F>
RingPosition position(u32 slot, u32 pass) {
  RingPosition at;
  at.units = kUnits;
  at.slot = slot;
  at.pass = pass;
  at.running = pass * kUnits + slot;
  at.serial = at.running;
  return at;
}

/// Writes into a ring of known bytes, reads back and looks at what must have stayed.
template <class F>
void round_trip(const WorkRequest& wr, const RingPosition& at, const std::vector<u8>& payload) {
  const Word16 filler = {{0x5a5a5a5a, 0x5a5a5a5a, 0x5a5a5a5a, 0x5a5a5a5a}};
  std::vector<Word16> ring(kUnits * F::kUnitParts, filler);
  QueuePairMemory m;
  m.qpn = 0x123456;
  ASSERT_GE(F::units(wr), 1u);
  ASSERT_LE(F::parts(wr), F::units(wr) * F::kUnitParts);
  build_wqe<F>(ring, wr, at, m);
  const u32 first = at.slot * F::kUnitParts;
  for (u32 i = F::parts(wr); i < ring.size(); ++i)
    ASSERT_EQ(ring[(first + i) % ring.size()], filler) << "part " << i << " is not this request's";
  const PartReader read = reader_of(ring, first);
  const DecodedWqe d = F::decode_wqe(read, at.pass);
  ASSERT_TRUE(d.valid);
  EXPECT_TRUE(d.owned);
  EXPECT_EQ(d.units, F::units(wr));
  EXPECT_EQ(difference(wr, d.request), "");
  EXPECT_EQ(inlined_payload(d, read), payload);
  EXPECT_EQ(d.sges, wr.bytes == 0 || !payload.empty() ? 0u : 1u);
}

template <class F>
class RdmaFormat : public testing::Test {};

struct FormatNames {
  template <class F>
  static std::string GetName(int) {
    std::string name = F::kName;
    std::erase(name, '-');
    return name;
  }
};
using Formats = testing::Types<Mlx5, Bnxt, Ionic, IonicV2, Ernic>;
TYPED_TEST_SUITE(RdmaFormat, Formats, FormatNames);

TYPED_TEST(RdmaFormat, EveryRequestSurvivesAtEveryPlaceOfTheRing) {
  using F = TypeParam;
  std::mt19937_64 random(1);
  for (u32 slot = 0; slot < kUnits; ++slot)
    for (const u32 pass : {0u, 1u, 2u, 0xffffffffu})
      for (const Op op : kOps)
        for (const u32 bytes : kSizes) {
          SCOPED_TRACE(testing::Message() << "op " << static_cast<u32>(op) << " bytes " << bytes << " slot "
                                          << slot << " pass " << pass);
          round_trip<F>(request(op, bytes, random), position<F>(slot, pass), {});
          if (testing::Test::HasFatalFailure()) return;
        }
}

TYPED_TEST(RdmaFormat, EveryInlinedPayloadSurvivesAtEveryPlaceOfTheRing) {
  using F = TypeParam;
  std::mt19937_64 random(2);
  for (const u32 bytes : kSizes) {
    if (bytes > F::kMaxInline) continue;
    // Payloads of a request's memory may begin anywhere.
    for (u32 shift = 0; shift < 4; ++shift)
      for (u32 slot = 0; slot < kUnits; ++slot)
        for (const Op op : {Op::write, Op::write_imm, Op::send, Op::send_imm}) {
          SCOPED_TRACE(testing::Message() << "op " << static_cast<u32>(op) << " bytes " << bytes << " slot "
                                          << slot << " shift " << shift);
          std::vector<u8> memory(shift + bytes);
          std::generate(memory.begin(), memory.end(), [&] { return static_cast<u8>(random() | 1); });
          WorkRequest wr = request(op, bytes, random);
          wr.inlined = true;
          wr.payload = memory.data() + shift;
          round_trip<F>(wr, position<F>(slot, 0), {memory.begin() + shift, memory.end()});
          if (testing::Test::HasFatalFailure()) return;
        }
  }
}

TYPED_TEST(RdmaFormat, TheLargestInlinedPayloadFitsTheRingItIsSizedFor) {
  using F = TypeParam;
  for (const u32 requests : {1u, 2u, 63u, 64u, 65u, 1000u})
    for (u32 max_inline = 0; max_inline <= F::kMaxInline; ++max_inline) {
      WorkRequest wr;
      wr.bytes = std::max(max_inline, 1u);
      wr.inlined = max_inline != 0;
      WorkRequest atomic;
      atomic.op = Op::compare_swap;
      atomic.bytes = kAtomicBytes;
      const u32 most = std::max(F::units(wr), F::units(atomic));
      EXPECT_GE(F::sq_units(requests, max_inline), requests * most + F::sq_reserve(max_inline))
          << requests << " requests of " << max_inline << " bytes";
    }
  for (const u32 n : {1u, 15u, 16u, 17u, 4096u}) {
    EXPECT_GE(F::rq_entries(n), n);
    EXPECT_GE(F::cq_entries(n), n);
    EXPECT_EQ(F::cq_entries(n) & (F::cq_entries(n) - 1), 0u) << "passes of a CQ are counted by powers of two";
  }
}

TYPED_TEST(RdmaFormat, TooLongAMessageIsRefused) {
  using F = TypeParam;
  std::mt19937_64 random(3);
  for (const Op op : {Op::write, Op::read, Op::send}) {
    std::vector<Word16> ring(kUnits * F::kUnitParts);
    build_wqe<F>(ring, request(op, kMaxMessage + 1, random), position<F>(0, 0), {});
    EXPECT_FALSE(F::decode_wqe(reader_of(ring, 0), 0).valid);
  }
}

TYPED_TEST(RdmaFormat, EveryReceiveSurvives) {
  using F = TypeParam;
  for (const u32 bytes : {0u, 1u, 4096u, kMaxMessage})
    for (const u32 slot : {0u, 7u}) {
      const ReceiveRequest rr{0x1122334455667788, 0x99aabbcc, bytes};
      std::vector<Word16> entry(F::kReceiveParts);
      for (u32 p = 0; p < F::kReceiveParts; ++p) entry[p] = F::receive_part(rr, position<F>(slot, 0), {}, p);
      const DecodedWqe d = F::decode_receive(reader_of(entry, 0));
      ASSERT_TRUE(d.valid) << bytes;
      EXPECT_EQ(d.request.bytes, bytes);
      EXPECT_EQ(d.sges, bytes == 0 ? 0u : 1u);
      if (bytes == 0) continue;
      EXPECT_EQ(d.sge[0].address, rr.local);
      EXPECT_EQ(d.sge[0].lkey, rr.lkey);
      EXPECT_EQ(d.sge[0].bytes, rr.bytes);
    }
}

template <class F>
Completion through_the_wire(const CqeFields& fields, u32 pass) {
  std::vector<Word16> out(F::kCqeParts);
  F::encode_cqe(fields, pass, out.data());
  EXPECT_TRUE(F::cqe_valid(out[F::kCqePartB], pass));
  if constexpr (F::kCqByIndex) return F::decode_cqe(out[F::kCqePartA], out[F::kCqePartB], out[F::kCqePartC]);
  else {
    EXPECT_FALSE(F::cqe_valid(out[F::kCqePartB], pass + 1));
    return F::decode_cqe(out[F::kCqePartA], out[F::kCqePartB]);
  }
}

/// Statuses that a format has a code for; the others arrive as general errors.
template <class F>
bool can_say(Status s, bool receive) {
  if (F::kCqByIndex || s == Status::ok || s == Status::general) return true;
  const auto among = [&](std::initializer_list<Status> l) {
    return std::find(l.begin(), l.end(), s) != l.end();
  };
  if (among({Status::local_length, Status::local_qp_op, Status::local_protection, Status::flushed,
             Status::memory_window, Status::remote_invalid_request}))
    return true;
  if (std::is_same_v<F, Bnxt>) {
    if (receive) return s == Status::local_access;
    return among({Status::bad_response, Status::remote_access, Status::remote_operation,
                  Status::rnr_retry_exceeded, Status::retry_exceeded});
  }
  return among({Status::bad_response, Status::local_access, Status::remote_access, Status::remote_operation,
                Status::rnr_retry_exceeded, Status::retry_exceeded}) ||
         (std::is_same_v<F, Mlx5> && s == Status::remote_aborted);
}

TYPED_TEST(RdmaFormat, EveryStatusSurvivesInEveryPass) {
  using F = TypeParam;
  for (u32 number = 0; number <= 21; ++number)
    for (const bool receive : {false, true})
      for (const u32 pass : {0u, 1u, 2u, 3u, 0xffffffffu}) {
        const auto status = static_cast<Status>(number);
        SCOPED_TRACE(testing::Message() << "status " << number << " receive " << receive << " pass " << pass);
        CqeFields fields;
        fields.op = receive ? Op::send : Op::read;
        fields.qpn = 0x777;
        fields.wr_id = 0x1234;
        fields.ring_units = 0x8000;
        fields.completion.status = status;
        fields.completion.receive = receive;
        fields.completion.mark = 0x1234;
        const Completion c = through_the_wire<F>(fields, pass);
        EXPECT_EQ(c.status, can_say<F>(status, receive) ? status : Status::general);
        EXPECT_EQ(c.receive, receive);
        EXPECT_EQ(c.mark, 0x1234u);
        EXPECT_FALSE(c.ignore);
        EXPECT_FALSE(c.with_imm);
      }
}

TYPED_TEST(RdmaFormat, ReceivesCarryLengthAndImmediate) {
  using F = TypeParam;
  for (const Op op : {Op::send, Op::send_imm, Op::write_imm}) {
    CqeFields fields;
    fields.op = op;
    fields.qpn = 5;
    fields.wr_id = 3;
    fields.completion.receive = true;
    fields.completion.with_imm = has_imm(op);
    fields.completion.imm = has_imm(op) ? 0xdeadbeef : 0;
    fields.completion.bytes = 0x7ffffffe;
    fields.completion.mark = 3;
    const Completion c = through_the_wire<F>(fields, 0);
    EXPECT_TRUE(c.receive);
    EXPECT_EQ(c.with_imm, has_imm(op)) << static_cast<u32>(op);
    EXPECT_EQ(c.imm, has_imm(op) ? 0xdeadbeef : 0u);
    EXPECT_EQ(c.bytes, 0x7ffffffeu);
    EXPECT_EQ(c.mark, 3u);
  }
}

TYPED_TEST(RdmaFormat, AnEntryNeverWrittenIsNotValid) {
  using F = TypeParam;
  if (F::kCqByIndex) GTEST_SKIP() << "indices decide";
  EXPECT_FALSE(F::cqe_valid(F::cqe_initial(F::kCqePartB), 0));
}

TYPED_TEST(RdmaFormat, MarksWrapAtTheirModulus) {
  using F = TypeParam;
  QueuePairMemory m;
  m.sq_units = 768;
  const u64 modulus = F::mark_modulo(m) == 0 ? u64{1} << 32 : F::mark_modulo(m);
  for (const u64 count : {u64{0}, u64{1}, modulus - 1, modulus, modulus + 1, 2 * modulus - 1}) {
    CqeFields fields;
    fields.ring_units = m.sq_units;
    fields.completion.mark = static_cast<u32>(count);
    fields.wr_id = count;
    fields.qpn = 1;
    EXPECT_EQ(through_the_wire<F>(fields, 0).mark, static_cast<u32>(count) % modulus) << count;
  }
}

// --- positions and doorbells, each format's own -------------------------------------------------------

TEST(Mlx5Format, CountersWrapAt16And24Bits) {
  u32 record[2] = {};
  u64 doorbell = 0;
  QueuePairMemory m;
  m.qp_record = record;
  m.sq_doorbell = &doorbell;
  m.qpn = 0xabcdef;
  RingPosition at;
  at.units = 64;
  at.running = 0xffff;
  at.slot = 63;
  WorkRequest wr;
  EXPECT_EQ(be32(Mlx5::part(wr, at, m, 0).w[0]), 0x00ffff08u);
  Mlx5::ring_sq(m, advance(at, 1, 1, 1), Mlx5::sq_doorbell_word(wr, at, m));
  EXPECT_EQ(record[1], 0u);
  EXPECT_EQ(Mlx5::decode_doorbell(doorbell).id, 0xabcdefu);
  EXPECT_EQ(advance(at, 1, 1, 1).slot, 0u);
  Mlx5::ring_rq(m, at);
  EXPECT_EQ(be32(record[0]), 0xffffu);
  at.running = 0x1ffffff;
  Mlx5::ring_cq(record, nullptr, at, 0);
  EXPECT_EQ(be32(record[0]), 0xffffffu);
  EXPECT_EQ(Mlx5::decode_doorbell(0).queue, DoorbellValue::Queue::unknown);
}

TEST(BnxtFormat, TheTableWrapsAtHalfItsLengthAndPacketNumbersAt24Bits) {
  QueuePairMemory m;
  m.mtu = 1024;
  for (const u32 units : {256u, 768u, 1024u, 1280u}) {
    RingPosition at;
    at.units = units;
    const u32 used = power_of_two_from(units) / 2;
    for (const u32 serial : {0u, 1u, used - 1, used, used + 1, 0xffffffffu}) {
      at.serial = serial;
      EXPECT_EQ(Bnxt::table_index(at, m), serial % used) << units << " slots";
    }
  }
  RingPosition at;
  at.psn = 0xfffffe;
  WorkRequest wr;
  // A carry from the packet numbers would be lost in a slot whose lowest bit is set.
  for (const u32 slot : {0xfffcu, 0xfffdu, 0u}) {
    at.slot = slot;
    wr.bytes = 4097;
    EXPECT_EQ(Bnxt::table_entry(wr, at, m), u64{slot} << 48 | u64{3} << 24 | 0xfffffe);
    wr.bytes = 1025;
    EXPECT_EQ(Bnxt::table_entry(wr, at, m), u64{slot} << 48 | 0xfffffe);
    wr.bytes = 0;
    EXPECT_EQ(Bnxt::table_entry(wr, at, m), u64{slot} << 48 | u64{0xffffff} << 24 | 0xfffffe);
  }
}

TEST(BnxtFormat, TheEpochTurnsWhenTheTailWraps) {
  u64 doorbell = 0;
  QueuePairMemory m;
  m.qpn = 0xfffff;
  m.sq_doorbell = &doorbell;
  RingPosition at;
  at.units = 768;
  at.slot = 766;
  for (const u32 pass : {0u, 1u}) {
    at.pass = pass;
    Bnxt::ring_sq(m, at, 0);
    EXPECT_EQ(Bnxt::decode_doorbell(doorbell).epoch, pass);
    EXPECT_EQ(Bnxt::decode_doorbell(doorbell).id, 0xfffffu);
    Bnxt::ring_sq(m, advance(at, 1, 3, 1), 0);
    EXPECT_EQ(Bnxt::decode_doorbell(doorbell).epoch, pass ^ 1);
    EXPECT_EQ(Bnxt::decode_doorbell(doorbell).index, 1u);
  }
  EXPECT_EQ(Bnxt::decode_doorbell(doorbell & ~(u64{1} << 58)).queue, DoorbellValue::Queue::unknown);
  EXPECT_EQ(Bnxt::decode_doorbell(doorbell | u64{5} << 60).queue, DoorbellValue::Queue::arm);
}

TEST(BnxtFormat, TheEndOfAQueuePairFlushesEverything) {
  CqeFields fields;
  fields.qpn = 9;
  fields.completion.flush_all = true;
  fields.completion.status = Status::flushed;
  const Completion c = through_the_wire<Bnxt>(fields, 0);
  EXPECT_TRUE(c.flush_all);
  EXPECT_EQ(c.status, Status::flushed);
  EXPECT_FALSE(c.ignore);
}

TEST(BnxtFormat, AnEntryWithoutHandleIsStale) {
  EXPECT_TRUE(Bnxt::decode_cqe({}, {{0, 0, 1, 0}}).ignore);
  EXPECT_FALSE(Bnxt::decode_cqe({{1, 0, 5, 0}}, {{0, 0, 1, 0}}).ignore);
  EXPECT_TRUE(Bnxt::decode_cqe({{1, 0, 0, 0}}, {{0, 0, 1 | 1 << 1, 0}}).ignore) << "of a receive";
  EXPECT_TRUE(Bnxt::decode_cqe({{1, 1, 1, 1}}, {{0, 0, 1 | 15 << 1, 0}}).ignore) << "a resized ring's end";
}

TEST(BnxtFormat, AReceiveThatTheHardwareFlushedSaysNothing) {
  const auto receive = [](u32 code) {
    return Bnxt::decode_cqe({{0, 0, 1, 1}}, {{0, 0, 1 | 1 << 1 | code << 8, 0}});
  };
  EXPECT_TRUE(receive(8).ignore) << "the entry that ends the queue flushes it";
  // The driver's own flush is news, like every other status.
  for (const u32 code : {0u, 1u, 7u, 9u}) EXPECT_FALSE(receive(code).ignore) << code;
  EXPECT_EQ(receive(7).status, Status::flushed);
  EXPECT_FALSE(Bnxt::decode_cqe({{1, 1, 1, 0}}, {{0, 0, 1 | 8 << 8, 0}}).ignore)
      << "of a request it is an error";
}

template <class F>
class IonicVersions : public testing::Test {};
using Versions = testing::Types<Ionic, IonicV2>;
TYPED_TEST_SUITE(IonicVersions, Versions, FormatNames);

TYPED_TEST(IonicVersions, TheColourOfAnotherPassIsNotOwned) {
  using F = TypeParam;
  std::vector<Word16> ring(kUnits * F::kUnitParts);
  EXPECT_FALSE(F::decode_wqe(reader_of(ring, 0), 0).owned) << "a slot never written";
  WorkRequest wr;
  for (const u32 pass : {0u, 1u, 2u}) {
    build_wqe<F>(ring, wr, position<F>(3, pass), {});
    const PartReader read = reader_of(ring, 3 * F::kUnitParts);
    EXPECT_EQ(F::decode_wqe(read, pass).index, 3u);
    EXPECT_TRUE(F::decode_wqe(read, pass).owned);
    EXPECT_FALSE(F::decode_wqe(read, pass + 1).owned);
  }
}

TYPED_TEST(IonicVersions, AFlushEntryFlushesEverything) {
  using F = TypeParam;
  for (const bool receive : {false, true}) {
    CqeFields fields;
    fields.completion.status = Status::flushed;
    fields.completion.receive = receive;
    const Completion c = through_the_wire<F>(fields, 1);
    EXPECT_TRUE(c.flush_all);
    EXPECT_EQ(c.receive, receive);
  }
}

TYPED_TEST(IonicVersions, DoorbellsHoldTheMaskedPosition) {
  using F = TypeParam;
  u64 doorbell = 0;
  QueuePairMemory m;
  m.qpn = 0xffffff;
  m.sq_doorbell = m.rq_doorbell = &doorbell;
  RingPosition at;
  at.units = 65536;
  at.slot = 65535;
  F::ring_sq(m, at, 0);
  EXPECT_EQ(doorbell, 0xffffff00ffffu);
  F::ring_rq(m, advance(at, 1, 1, 1));
  EXPECT_EQ(doorbell, 0xffffff000000u);
  EXPECT_EQ(F::decode_doorbell(doorbell | 1 << 16).queue, DoorbellValue::Queue::arm);
  EXPECT_EQ(F::decode_doorbell(doorbell | 1 << 17).queue, DoorbellValue::Queue::arm);
}

TYPED_TEST(IonicVersions, SolicitedIsLeftOutWhereTheDeviceRefusesIt) {
  using F = TypeParam;
  for (const Op op : kOps) {
    std::vector<Word16> ring(F::kUnitParts);
    WorkRequest wr;
    wr.op = op;
    wr.bytes = kAtomicBytes;
    wr.solicited = true;
    build_wqe<F>(ring, wr, position<F>(0, 0), {});
    EXPECT_EQ(F::decode_wqe(reader_of(ring, 0), 0).request.solicited, takes_receive(op));
  }
}

TEST(ErnicFormat, IndicesRunToTwiceTheDepth) {
  u32 state[4] = {9, 9, 9, 9};
  u64 doorbell = 0xffffffff00000000;
  QueuePairMemory m;
  m.qp_record = state;
  m.sq_doorbell = m.rq_doorbell = &doorbell;
  m.qpn = 0x42;
  m.handle = 0x41;
  RingPosition at;
  at.units = 64;
  for (const u32 running : {0u, 63u, 64u, 127u, 128u, 0xffffffffu}) {
    at.running = running;
    Ernic::ring_sq(m, at, 0);
    EXPECT_EQ(state[0], running % 128);
    EXPECT_EQ(doorbell, 0xffffffff00000000 | 1u << 30 | 0x41) << "the other dword is not this register";
    Ernic::ring_rq(m, at);
    EXPECT_EQ(state[2], running % 128);
    Ernic::ring_cq(state, nullptr, at, 0);
    EXPECT_EQ(state[3], running % 128);
    EXPECT_EQ(state[1], 9u);
  }
  EXPECT_EQ(Ernic::ring_filled(0, 0, 64), 0u);
  EXPECT_EQ(Ernic::ring_filled(64, 0, 64), 64u);
  EXPECT_EQ(Ernic::ring_filled(1, 127, 64), 2u);
  EXPECT_EQ(Ernic::ring_filled(65, 0, 64), Ernic::kBadIndex);
  EXPECT_EQ(Ernic::ring_filled(128, 0, 64), Ernic::kBadIndex);
  EXPECT_EQ(Ernic::ring_filled(0, 128, 64), Ernic::kBadIndex);
  EXPECT_EQ(Ernic::decode_doorbell(3u << 30).queue, DoorbellValue::Queue::unknown);
}

TEST(ErnicFormat, TheIdOfARequestIsItsSerialNumberPlusOne) {
  RingPosition at;
  at.serial = 0xffffffff;
  const Word16 id = Ernic::part({}, at, {}, 0);
  EXPECT_EQ(id.w[0], 0u);
  EXPECT_EQ(id.w[1], 1u);
  at.serial = 41;
  EXPECT_EQ(Ernic::part({}, at, {}, 0).w[0], 42u);
  EXPECT_EQ(Ernic::receive_part({}, at, {}, 0).w[0], 42u);
}

TEST(ErnicFormat, AnInlinedRequestKeepsItsBuffer) {
  std::vector<Word16> ring(Ernic::kUnitParts);
  WorkRequest wr;
  wr.bytes = 12;
  wr.inlined = true;
  wr.local = 0x1000;
  wr.lkey = 7;
  build_wqe<Ernic>(ring, wr, {}, {});
  const DecodedWqe d = Ernic::decode_wqe(reader_of(ring, 0), 0);
  ASSERT_TRUE(d.valid);
  EXPECT_TRUE(d.request.inlined);
  ASSERT_EQ(d.sges, 1u);
  EXPECT_EQ(d.sge[0].address, 0x1000u);
}

// --- rings that are too short ------------------------------------------------------------------------

/// Out of line: where it sees a ring's length as a constant, GCC 12 warns of reads that a check prevents.
template <class F>
[[gnu::noinline]] bool valid_in(const std::vector<Word16>& ring) {
  return F::decode_wqe(reader_of(ring, 0), 0).valid;
}

TYPED_TEST(RdmaFormat, ARingShorterThanAUnitHoldsNothing) {
  using F = TypeParam;
  std::vector<Word16> whole(F::kUnitParts * 4);
  build_wqe<F>(whole, with_bytes(Op::compare_swap, kAtomicBytes), {}, {});
  ASSERT_TRUE(valid_in<F>(whole));
  for (u32 parts = 1; parts < F::kUnitParts; ++parts)
    EXPECT_FALSE(valid_in<F>({whole.begin(), whole.begin() + parts})) << parts;
}

TYPED_TEST(RdmaFormat, ARequestLongerThanItsRingIsRefused) {
  using F = TypeParam;
  const std::vector<u8> payload(std::max(F::kMaxInline, 1u), 1);
  WorkRequest wr = with_bytes(Op::write, F::kMaxInline);
  wr.inlined = F::kMaxInline != 0;
  wr.payload = payload.data();
  const u32 parts = F::units(wr) * F::kUnitParts;
  std::vector<Word16> ring(parts);
  build_wqe<F>(ring, wr, {}, {});
  EXPECT_TRUE(valid_in<F>(ring));
  // The last block may hold padding only; one less does not hold the request.
  ring.resize(parts - F::kUnitParts);
  ring.shrink_to_fit();
  if (!ring.empty()) {
    EXPECT_FALSE(valid_in<F>(ring));
  }
}

}  // namespace
}  // namespace doorbell::rdma
