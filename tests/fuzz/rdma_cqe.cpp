// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Completion entries and doorbell values of the four RDMA formats.

#include <doorbell/rdma/bnxt.hpp>
#include <doorbell/rdma/ernic.hpp>
#include <doorbell/rdma/ionic.hpp>
#include <doorbell/rdma/mlx5.hpp>

#include <cstring>

#include "fuzz/fuzz.hpp"

using namespace doorbell;
using namespace doorbell::rdma;
using fuzz::require;

namespace {

template <class F>
Completion decoded(const Word16* parts) {
  if constexpr (F::kCqByIndex)
    return F::decode_cqe(parts[F::kCqePartA], parts[F::kCqePartB], parts[F::kCqePartC]);
  else return F::decode_cqe(parts[F::kCqePartA], parts[F::kCqePartB]);
}

template <class F>
void check_again(const Completion& c, u32 pass) {
  CqeFields fields;
  fields.completion = c;
  fields.op = !c.receive ? Op::write : c.with_imm ? Op::send_imm : Op::send;
  fields.qpn = 7;
  fields.wr_id = c.mark;
  fields.ring_units = 65536;
  Word16 out[F::kCqeParts];
  F::encode_cqe(fields, pass, out);
  require(F::cqe_valid(out[F::kCqePartB], pass));
  const Completion again = decoded<F>(out);
  require(!again.ignore && again.status == c.status && again.receive == c.receive &&
          again.with_imm == c.with_imm && again.flush_all == c.flush_all && again.bytes == c.bytes);
  if (c.with_imm) require(again.imm == c.imm);
  if (!c.flush_all) require(again.mark == c.mark);
}

template <class F>
void check(const u8* data, std::size_t size) {
  Word16 parts[F::kCqeParts] = {};
  if (size > 0) std::memcpy(parts, data, std::min(size, sizeof parts));
  const Word16& b = parts[F::kCqePartB];
  const u32 pass = size > 0 ? data[size - 1] : 0;
  if constexpr (!F::kCqByIndex) {
    require(!F::cqe_valid(b, pass) || !F::cqe_valid(b, pass + 1));
    require(F::cqe_valid(b, pass) == F::cqe_valid(b, pass + 2));
    require(!F::cqe_valid(F::cqe_initial(F::kCqePartB), 0));
  }
  const Completion c = decoded<F>(parts);
  require(static_cast<u32>(c.status) <= static_cast<u32>(Status::general));
  if (!c.ignore) check_again<F>(c, pass);
}

template <class F>
void check_doorbell(u64 word) {
  const DoorbellValue v = F::decode_doorbell(word);
  require(v.id <= 0xffffff && v.index <= 0xffffff && v.epoch <= 1);
  if (v.queue != DoorbellValue::Queue::send) return;
  // Ringing what was read gives a value that reads the same.
  u64 rung = word;
  u32 record[4] = {};
  QueuePairMemory m;
  m.qpn = m.handle = v.id;
  m.qp_record = record;
  m.sq_doorbell = &rung;
  RingPosition at;
  at.slot = v.index;
  at.pass = v.epoch;
  F::ring_sq(m, at, word);
  const DoorbellValue again = F::decode_doorbell(rung);
  require(again.queue == v.queue && again.id == v.id && again.index == v.index && again.epoch == v.epoch);
}

template <class F>
void check_all(const u8* data, std::size_t size, u64 word) {
  check<F>(data, size);
  check_doorbell<F>(word);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const u8* data, std::size_t size) {
  u64 word = 0;
  if (size >= sizeof word) std::memcpy(&word, data, sizeof word);
  check_all<Mlx5>(data, size, word);
  check_all<Bnxt>(data, size, word);
  check_all<Ionic>(data, size, word);
  check_all<IonicV2>(data, size, word);
  check_all<Ernic>(data, size, word);
  const u32 entries = 1u << (size % 16);
  const u32 filled = Ernic::ring_filled(low(word), high(word), entries);
  require(filled == Ernic::kBadIndex || filled <= entries);
  return 0;
}
