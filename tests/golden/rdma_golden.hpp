// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Parts that the vectors of the four RDMA formats share: requests by name, rings that wrap, statuses.
#pragma once

#include <doorbell/rdma/format.hpp>

#include <algorithm>

#include "golden/golden.hpp"

namespace doorbell::golden {

using namespace doorbell::rdma;

inline u32 number32(Keys& in, const std::string& key) {
  return static_cast<u32>(in(key));
}

/// A request of the inputs, and the payload that it points to.
struct Request {
  WorkRequest wr;
  Bytes payload;
};

inline Request request_of(Keys& in) {
  static const std::map<std::string, Op> ops = {
      {"rdma_write", Op::write},       {"rdma_write_imm", Op::write_imm},
      {"rdma_read", Op::read},         {"send", Op::send},
      {"send_imm", Op::send_imm},      {"atomic_fetch_add", Op::fetch_add},
      {"atomic_cas", Op::compare_swap}};
  Request r;
  WorkRequest& wr = r.wr;
  wr.op = ops.at(in.text("op"));
  wr.signalled = in("signaled") != 0;
  wr.solicited = in("solicited") != 0;
  wr.fence = in("fence") != 0;
  wr.inlined = in("inline") != 0;
  if (in.has("remote_addr")) wr.remote = in("remote_addr");
  if (in.has("rkey")) wr.rkey = number32(in, "rkey");
  if (in.has("imm")) wr.imm = number32(in, "imm");
  if (in.has("local_addr")) wr.local = in("local_addr");
  if (in.has("lkey")) wr.lkey = number32(in, "lkey");
  if (in.has("length")) wr.bytes = number32(in, "length");
  if (in.has("add")) wr.operand = in("add");
  if (in.has("swap")) wr.operand = in("swap");
  if (in.has("compare")) wr.compare = in("compare");
  if (in.has("inline_data")) r.payload = from_hex(in.text("inline_data"));
  EXPECT_EQ(in("num_sge"), wr.bytes == 0 ? 0u : 1u) << "the formats here know one buffer, or none";
  return r;
}

inline ReceiveRequest receive_of(Keys& in) {
  ReceiveRequest rr;
  EXPECT_EQ(in.text("op"), "recv");
  if (in.has("local_addr")) rr.local = in("local_addr");
  if (in.has("lkey")) rr.lkey = number32(in, "lkey");
  if (in.has("length")) rr.bytes = number32(in, "length");
  EXPECT_EQ(in("num_sge"), rr.bytes == 0 ? 0u : 1u);
  return rr;
}

/// A ring whose bytes are known before anybody writes them.
class Ring {
 public:
  explicit Ring(u32 parts, u8 fill = 0xcc) : words_(parts) {
    std::memset(words_.data(), fill, parts * sizeof(Word16));
  }
  [[nodiscard]] PartReader reader(u32 first) const { return {words_.data(), parts(), first}; }
  [[nodiscard]] u32 parts() const { return static_cast<u32>(words_.size()); }
  Word16& at(u32 part) { return words_[part % parts()]; }
  /// `bytes` bytes from part `first` on, round the end.
  [[nodiscard]] Bytes read(u32 first, std::size_t bytes) const {
    Bytes out(bytes);
    for (std::size_t i = 0; i < bytes; ++i) out[i] = raw(first, i);
    return out;
  }
  void write(u32 first, const Bytes& bytes) {
    for (std::size_t i = 0; i < bytes.size(); ++i) raw(first, i) = bytes[i];
  }
  /// Bytes that still have the fill.
  [[nodiscard]] std::size_t untouched(u8 fill = 0xcc) const {
    const u8* const from = reinterpret_cast<const u8*>(words_.data());
    return static_cast<std::size_t>(std::count(from, from + words_.size() * sizeof(Word16), fill));
  }

 private:
  [[nodiscard]] std::size_t index(u32 first, std::size_t i) const {
    return (first * sizeof(Word16) + i) % (words_.size() * sizeof(Word16));
  }
  u8& raw(u32 first, std::size_t i) { return reinterpret_cast<u8*>(words_.data())[index(first, i)]; }
  [[nodiscard]] u8 raw(u32 first, std::size_t i) const {
    return reinterpret_cast<const u8*>(words_.data())[index(first, i)];
  }
  std::vector<Word16> words_;
};

template <class T>
std::string hex_of(const T& value) {
  return to_hex(bytes_of(value));
}

/// Builds the request as a queue pair does and compares with the vector; the rest of the ring stays.
template <class F>
void expect_encoded(const WorkRequest& wr, const RingPosition& at, const QueuePairMemory& m,
                    const json& vector) {
  Ring ring(at.units * F::kUnitParts);
  const u32 first = at.slot * F::kUnitParts;
  ASSERT_LE(F::parts(wr), F::units(wr) * F::kUnitParts);
  for (u32 p = 0; p < F::parts(wr); ++p) ring.at(first + p) = F::part(wr, at, m, p);
  const std::size_t recorded = vector.at("bytes_hex").get<std::string>().size() / 2;
  ASSERT_LE(recorded, F::parts(wr) * sizeof(Word16));
  expect_bytes(ring.read(first, recorded), vector, "the request in 16-byte parts");
  // The bytes behind the recorded ones are padding.
  const Bytes padding = ring.read(first + static_cast<u32>(recorded / sizeof(Word16)),
                                  F::parts(wr) * sizeof(Word16) - recorded);
  EXPECT_EQ(padding, Bytes(padding.size(), 0));
  EXPECT_EQ(ring.untouched(), (ring.parts() - F::parts(wr)) * sizeof(Word16));
}

/// The recorded bytes, with `fill` where the reference driver writes nothing.
inline Bytes recorded_with(const json& vector, u8 fill) {
  Bytes bytes = from_hex(vector.at("bytes_hex").get<std::string>());
  if (vector.contains("dont_care"))
    for (const json& range : vector.at("dont_care"))
      for (u64 i = 0; i < range.at(1).get<u64>(); ++i) bytes.at(range.at(0).get<u64>() + i) = fill;
  return bytes;
}

inline void expect_inlined(const DecodedWqe& d, const PartReader& read, const Bytes& payload) {
  Bytes found;
  for (u32 i = 0; i < d.request.bytes; ++i) {
    const u32 at = d.inline_offset + i;
    const Word16 part = read(d.inline_part + at / 16);
    found.push_back(reinterpret_cast<const u8*>(&part)[at % 16]);
  }
  EXPECT_EQ(to_hex(found), to_hex(payload));
}

/// The device's view of the recorded bytes, whatever the unwritten ones hold.
template <class F>
DecodedWqe expect_decoded(const Request& want, const RingPosition& at, const json& vector) {
  DecodedWqe d;
  for (const u8 fill : {u8{0}, u8{0xff}, u8{0x5a}}) {
    Ring ring(at.units * F::kUnitParts, fill);
    ring.write(at.slot * F::kUnitParts, recorded_with(vector, fill));
    const PartReader read = ring.reader(at.slot * F::kUnitParts);
    d = F::decode_wqe(read, at.pass);
    const WorkRequest &wr = d.request, &w = want.wr;
    EXPECT_TRUE(d.valid);
    EXPECT_TRUE(d.owned);
    EXPECT_EQ(d.units, F::units(w));
    EXPECT_EQ(wr.op, w.op);
    EXPECT_EQ(wr.signalled, w.signalled);
    EXPECT_EQ(wr.solicited, w.solicited);
    EXPECT_EQ(wr.fence, w.fence);
    EXPECT_EQ(wr.inlined, w.inlined);
    EXPECT_EQ(wr.bytes, w.bytes);
    EXPECT_EQ(wr.remote, w.remote);
    EXPECT_EQ(wr.rkey, w.rkey);
    EXPECT_EQ(wr.imm, w.imm);
    EXPECT_EQ(wr.operand, w.operand);
    EXPECT_EQ(wr.compare, w.compare);
    EXPECT_EQ(d.sges, w.bytes == 0 || !want.payload.empty() ? 0u : 1u);
    if (d.sges == 1) {
      EXPECT_EQ(d.sge[0].address, w.local);
      EXPECT_EQ(d.sge[0].lkey, w.lkey);
      EXPECT_EQ(d.sge[0].bytes, w.bytes);
      EXPECT_EQ(wr.local, w.local);
      EXPECT_EQ(wr.lkey, w.lkey);
    }
    if (!want.payload.empty()) expect_inlined(d, read, want.payload);
  }
  return d;
}

/// Both directions of a receive of `parts` recorded parts.
template <class F>
DecodedWqe expect_receive(const ReceiveRequest& rr, const RingPosition& at, const QueuePairMemory& m,
                          const json& vector) {
  const Bytes recorded = from_hex(vector.at("bytes_hex").get<std::string>());
  const u32 parts = static_cast<u32>(recorded.size() / sizeof(Word16));
  Ring ring(parts);
  for (u32 p = 0; p < parts; ++p) ring.at(p) = F::receive_part(rr, at, m, p);
  expect_bytes(ring.read(0, recorded.size()), vector, "the receive in 16-byte parts");
  DecodedWqe d;
  for (const u8 fill : {u8{0}, u8{0xff}}) {
    Ring theirs(parts < F::kReceiveParts ? F::kReceiveParts : parts, 0);
    theirs.write(0, recorded_with(vector, fill));
    d = F::decode_receive(theirs.reader(0));
    EXPECT_TRUE(d.valid);
    EXPECT_EQ(d.request.bytes, rr.bytes);
    EXPECT_EQ(d.sges, rr.bytes == 0 ? 0u : 1u);
    EXPECT_EQ(d.request.local, rr.local);
    EXPECT_EQ(d.request.lkey, rr.lkey);
  }
  return d;
}

inline Status status_named(const std::string& name) {
  static const std::map<std::string, Status> all = {
      {"success", Status::ok},
      {"local length error", Status::local_length},
      {"local QP operation error", Status::local_qp_op},
      {"local protection error", Status::local_protection},
      {"Work Request Flushed Error", Status::flushed},
      {"memory management operation error", Status::memory_window},
      {"bad response error", Status::bad_response},
      {"local access error", Status::local_access},
      {"remote invalid request error", Status::remote_invalid_request},
      {"remote access error", Status::remote_access},
      {"remote operation error", Status::remote_operation},
      {"transport retry counter exceeded", Status::retry_exceeded},
      {"RNR retry counter exceeded", Status::rnr_retry_exceeded}};
  return all.at(name);
}

/// The operation of an ibv_wc_opcode; the requester's ones.
inline Op op_of_completion(u64 opcode) {
  static const std::map<u64, Op> all = {{0, Op::send},         {1, Op::write},     {2, Op::read},
                                        {3, Op::compare_swap}, {4, Op::fetch_add}, {128, Op::send},
                                        {129, Op::write_imm}};
  return all.at(opcode);
}

/// The entries of one CQE, from the recorded bytes and back.
template <class F>
struct RecordedCqe {
  explicit RecordedCqe(const json& vector) {
    const Bytes bytes = from_hex(vector.at("bytes_hex").get<std::string>());
    EXPECT_EQ(bytes.size(), sizeof parts);
    std::memcpy(parts, bytes.data(), std::min(bytes.size(), sizeof parts));
  }
  [[nodiscard]] const Word16& a() const { return parts[F::kCqePartA]; }
  [[nodiscard]] const Word16& b() const { return parts[F::kCqePartB]; }
  [[nodiscard]] Completion decoded() const { return F::decode_cqe(a(), b()); }
  static void expect_encoded(const CqeFields& fields, u32 pass, const json& vector) {
    Word16 out[F::kCqeParts];
    std::memset(out, 0xcc, sizeof out);
    F::encode_cqe(fields, pass, out);
    Bytes raw(sizeof out);
    std::memcpy(raw.data(), out, sizeof out);
    expect_bytes(raw, vector, "the CQE encoded again");
  }
  Word16 parts[F::kCqeParts] = {};
};

/// The part of a CQE's expectation that every vector says in the same words.
inline void expect_completion(const Completion& c, Keys& expect) {
  if (expect.has("status")) {
    EXPECT_EQ(c.status, status_named(expect.text("status")));
  }
  if (expect.has("ibv_wc_status")) {
    EXPECT_EQ(static_cast<u64>(c.status), expect("ibv_wc_status"));
  }
  if (expect.has("byte_len")) {
    EXPECT_EQ(c.bytes, expect("byte_len"));
  }
  const bool with_imm = expect.has("imm");
  EXPECT_EQ(c.with_imm, with_imm);
  if (expect.has("with_imm")) {
    EXPECT_EQ(c.with_imm, expect("with_imm") != 0);
  }
  if (with_imm) {
    EXPECT_EQ(c.imm, expect("imm"));
  }
}

}  // namespace doorbell::golden
