// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The driver's structures and numbers against the vectors of qdma.json, byte for byte: each structure made
// from its fields, and its fields read from the bytes.

#include <doorbell/qdma/abi.hpp>
#include <gtest/gtest.h>

#include <algorithm>

#include "golden/golden.hpp"

namespace doorbell::qdma {
namespace {

using namespace golden;

u32 word(Keys& in, const std::string& key) {
  return static_cast<u32>(in(key));
}

/// The structure that the vector's bytes are. Older ones are shorter; what they lack is 0.
template <class T>
T decoded(const json& vector) {
  const Bytes bytes = from_hex(vector.at("bytes_hex").get<std::string>());
  EXPECT_LE(bytes.size(), sizeof(T));
  T out;
  std::memset(static_cast<void*>(&out), 0, sizeof out);
  std::memcpy(static_cast<void*>(&out), bytes.data(), std::min(bytes.size(), sizeof out));
  return out;
}

/// Compares both ways: `made` with the bytes, and the bytes' fields through `same` with it.
template <class T, class Same>
void check(const json& vector, Keys& in, const T& made, Same same) {
  Bytes bytes = bytes_of(made);
  // An older structure is the beginning of today's.
  const u64 size = in("size");
  ASSERT_LE(size, bytes.size());
  EXPECT_TRUE(std::all_of(bytes.begin() + static_cast<std::ptrdiff_t>(size), bytes.end(),
                          [](u8 b) { return b == 0; }));
  bytes.resize(size);
  expect_bytes(bytes, vector, "made");
  EXPECT_TRUE(same(decoded<T>(vector), made)) << "read";
  in.expect_all_used("inputs");
}

void check_number(const json& vector) {
  Keys in(vector.at("inputs"));
  EXPECT_EQ(in.text("type"), "v");
  EXPECT_EQ(in.text("dir"), "read+write");
  const u32 number = call_number(word(in, "nr"), word(in, "encoded_size"));
  EXPECT_EQ(number, in("expect_number"));
  static const std::map<std::string, u32> structures = {{"qdma_info", kCallInfo},
                                                        {"qpair_add", kCallQpairAdd},
                                                        {"qpair_add without aperture_size", kCallQpairAddOld},
                                                        {"qpair_op", kCallQpairOp},
                                                        {"qpair_fd_request", kCallQpairGetFd},
                                                        {"buf_create", kCallBufCreate},
                                                        {"transfer", kCallTransfer}};
  const auto it = structures.find(in.text("struct"));
  ASSERT_NE(it, structures.end()) << in.text("struct");
  EXPECT_EQ(number, it->second);
  EXPECT_EQ(structure_size(number), in("struct_bytes"));
  EXPECT_EQ(smallest_size(number), in("min_accepted_size"));
  expect_bytes(bytes_of(number), vector, "number");
  in.expect_all_used("inputs");
}

void check_info(const json& vector) {
  Keys in(vector.at("inputs"));
  Info i{.size = word(in, "size"),
         .qsets_max = word(in, "qsets_max"),
         .msix_qvecs = word(in, "msix_qvecs"),
         .vf_max = word(in, "vf_max"),
         .caps = word(in, "caps")};
  const std::string bdf = in.text("bdf");
  ASSERT_LT(bdf.size(), i.bdf.size());
  std::copy(bdf.begin(), bdf.end(), i.bdf.begin());
  check(vector, in, i, [&](const Info& a, const Info& b) {
    return a.size == b.size && a.qsets_max == b.qsets_max && a.msix_qvecs == b.msix_qvecs &&
           a.vf_max == b.vf_max && a.caps == b.caps && std::string(a.bdf.data()) == bdf;
  });
}

void check_add(const json& vector) {
  Keys in(vector.at("inputs"));
  const QpairAdd add{.size = word(in, "size"),
                     .mode = word(in, "mode"),
                     .dir_mask = word(in, "dir_mask"),
                     .mm_channel = word(in, "mm_channel"),
                     .h2c_ring = word(in, "h2c_ring_sz"),
                     .c2h_ring = word(in, "c2h_ring_sz"),
                     .cmpt_ring = word(in, "cmpt_ring_sz"),
                     .qid = in.has("qid") ? word(in, "qid") : 0,
                     .aperture_size = in.has("aperture_size") ? word(in, "aperture_size") : 0};
  check(vector, in, add, [](const QpairAdd& a, const QpairAdd& b) {
    return a.size == b.size && a.mode == b.mode && a.dir_mask == b.dir_mask && a.mm_channel == b.mm_channel &&
           a.h2c_ring == b.h2c_ring && a.c2h_ring == b.c2h_ring && a.cmpt_ring == b.cmpt_ring &&
           a.qid == b.qid && a.aperture_size == b.aperture_size;
  });
}

void check_op(const json& vector) {
  Keys in(vector.at("inputs"));
  const QpairOp op{.size = word(in, "size"), .qid = word(in, "qid"), .op = word(in, "op")};
  check(vector, in, op, [](const QpairOp& a, const QpairOp& b) {
    return a.size == b.size && a.qid == b.qid && a.op == b.op;
  });
}

void check_fd_request(const json& vector) {
  Keys in(vector.at("inputs"));
  QpairGetFd g{.size = word(in, "size"),
               .qid = word(in, "qid"),
               .flags = word(in, "flags"),
               .qpair_count = word(in, "qpair_count")};
  const json& ids = in.raw("qpair_ids");
  ASSERT_EQ(ids.size(), g.qpair_ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i) g.qpair_ids[i] = static_cast<u32>(number(ids[i]));
  check(vector, in, g, [](const QpairGetFd& a, const QpairGetFd& b) {
    return a.size == b.size && a.qid == b.qid && a.flags == b.flags && a.qpair_count == b.qpair_count &&
           a.qpair_ids == b.qpair_ids;
  });
}

void check_buffer(const json& vector) {
  Keys in(vector.at("inputs"));
  const BufCreate b{.size = word(in, "size"),
                    .flags = word(in, "flags"),
                    .length = in("length"),
                    .granule = word(in, "granule"),
                    .transfer_hint = word(in, "transfer_hint")};
  check(vector, in, b, [](const BufCreate& x, const BufCreate& y) {
    return x.size == y.size && x.flags == y.flags && x.length == y.length && x.granule == y.granule &&
           x.transfer_hint == y.transfer_hint;
  });
}

SubXfer sub_transfer(const json& object) {
  Keys in(object);
  const SubXfer x{.qpair_index = word(in, "qpair_index"),
                  .direction = word(in, "direction"),
                  .buf_fd = static_cast<std::int32_t>(in("buf_fd")),
                  .buf_offset = in("buf_offset"),
                  .dev_addr = in("dev_addr"),
                  .length = in("length")};
  in.expect_all_used("xfers");
  return x;
}

void check_transfer(const json& vector) {
  Keys in(vector.at("inputs"));
  Transfer t{.size = word(in, "size"), .count = word(in, "count")};
  const json& parts = in.raw("xfers");
  ASSERT_EQ(parts.size(), t.count);
  // Fields that the call does not use are 0 in the vectors.
  for (SubXfer& x : t.xfers) x.buf_fd = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) t.xfers.at(i) = sub_transfer(parts[i]);
  check(vector, in, t, [](const Transfer& a, const Transfer& b) {
    return a.size == b.size && a.count == b.count &&
           std::equal(a.xfers.begin(), a.xfers.end(), b.xfers.begin(),
                      [](const SubXfer& x, const SubXfer& y) {
                        return x.qpair_index == y.qpair_index && x.direction == y.direction &&
                               x.buf_fd == y.buf_fd && x.buf_offset == y.buf_offset &&
                               x.dev_addr == y.dev_addr && x.length == y.length;
                      });
  });
}

TEST(GoldenQdma, Vectors) {
  const json document = read_file("qdma");
  ASSERT_TRUE(document.is_object());
  const auto elsewhere = [](const json&) {};
  const Kinds kinds = {{"ioctl", check_number},
                       {"qdma_info", check_info},
                       {"qpair_add", check_add},
                       {"qpair_op", check_op},
                       {"qpair_fd_request", check_fd_request},
                       {"buf_create", check_buffer},
                       {"transfer", check_transfer},
                       // Tested where they are implemented: the policies and the daemon's protocol.
                       {"policy_v80", elsewhere},
                       {"daemon_request", elsewhere}};
  std::map<std::string, u64> by_kind;
  json mine = json::array();
  for (const json& v : document.at("vectors")) {
    const std::string kind = v.at("kind").get<std::string>();
    ++by_kind[kind];
    if (kind != "policy_v80" && kind != "daemon_request") mine.push_back(v);
    EXPECT_TRUE(kinds.contains(kind)) << kind;
  }
  EXPECT_EQ(run_vectors(mine, kinds), mine.size());
  for (const auto& [kind, run] : kinds) EXPECT_GT(by_kind[kind], 0u) << kind;
}

}  // namespace
}  // namespace doorbell::qdma
