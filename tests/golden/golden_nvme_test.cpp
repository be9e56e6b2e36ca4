// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Every vector of nvme.json, byte for byte.

#include <doorbell/nvme/wire.hpp>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "golden/golden.hpp"
#include "golden/sha256.hpp"

namespace doorbell::nvme {
namespace {

using namespace golden;

u16 cid_of(Keys& in) {
  return static_cast<u16>(in("cid"));
}

Sqe data_command(IoOpcode op, Keys& in) {
  const auto blocks = static_cast<u32>(in("nlb"));
  EXPECT_EQ(u64{blocks} * in("lba_bytes"), in("data_len"));
  const PrpPair prp = prp_pair(in("data_iova"), in("data_len"), in("page_size"), in("prp_list_iova"));
  Sqe e = io_command(op, cid_of(in), static_cast<u32>(in("nsid")), in("slba"), blocks, prp.prp1, prp.prp2);
  if (in.has("fua") && in("fua") != 0) e.cdw12 |= kForceUnitAccess;
  EXPECT_EQ(lba_of(e), in("slba"));
  EXPECT_EQ(blocks_of(e), blocks);
  return e;
}

Sqe identify_of(Keys& in) {
  return identify_command(cid_of(in), static_cast<Cns>(in("cns")), static_cast<u32>(in("nsid")), in("prp1"));
}

Sqe create_cq_of(Keys& in) {
  Sqe e = create_cq_command(cid_of(in), static_cast<u16>(in("qid")), static_cast<u32>(in("entries")),
                            in("prp1"), in("interrupts") != 0, static_cast<u16>(in("vector")));
  if (in("physically_contiguous") == 0) e.cdw11 &= ~1u;
  return e;
}

Sqe create_sq_of(Keys& in) {
  Sqe e = create_sq_command(cid_of(in), static_cast<u16>(in("qid")), static_cast<u16>(in("cqid")),
                            static_cast<u32>(in("entries")), in("prp1"));
  if (in("physically_contiguous") == 0) e.cdw11 &= ~1u;
  e.cdw11 |= static_cast<u32>(in("qprio")) << 1;
  return e;
}

Sqe set_features_of(Keys& in) {
  EXPECT_EQ(in("fid"), kFeatureQueues);
  return set_queues_command(cid_of(in), static_cast<u32>(in("sq_requested")),
                            static_cast<u32>(in("cq_requested")));
}

Sqe get_log_of(Keys& in) {
  return get_log_command(cid_of(in), static_cast<u8>(in("lid")), static_cast<u32>(in("nsid")),
                         static_cast<u32>(in("bytes")), in("prp1"));
}

Sqe delete_of(AdminOpcode which, Keys& in) {
  return delete_queue_command(which, cid_of(in), static_cast<u16>(in("qid")));
}

const std::map<std::string, std::function<Sqe(Keys&)>>& encoders() {
  static const std::map<std::string, std::function<Sqe(Keys&)>> all = {
      {"read", [](Keys& in) { return data_command(IoOpcode::read, in); }},
      {"write", [](Keys& in) { return data_command(IoOpcode::write, in); }},
      {"compare", [](Keys& in) { return data_command(IoOpcode::compare, in); }},
      {"flush", [](Keys& in) { return flush_command(cid_of(in), static_cast<u32>(in("nsid"))); }},
      {"identify", identify_of},
      {"create_io_cq", create_cq_of},
      {"create_io_sq", create_sq_of},
      {"delete_io_sq", [](Keys& in) { return delete_of(AdminOpcode::delete_sq, in); }},
      {"delete_io_cq", [](Keys& in) { return delete_of(AdminOpcode::delete_cq, in); }},
      {"set_features", set_features_of},
      {"get_log_page", get_log_of},
      {"doorbell_buffer_config",
       [](Keys& in) { return doorbell_buffer_command(cid_of(in), in("shadow_prp1"), in("eventidx_prp2")); }},
      {"async_event_request", [](Keys& in) { return admin_command(AdminOpcode::async_event, cid_of(in)); }},
      {"abort",
       [](Keys& in) {
         return abort_command(cid_of(in), static_cast<u16>(in("abort_sqid")),
                              static_cast<u16>(in("abort_cid")));
       }},
  };
  return all;
}

/// The command as a controller reads it from the bytes alone, in the order of the table of fields.
Sqe decoded(const Bytes& bytes) {
  const auto at = [&](std::size_t offset, std::size_t width) {
    u64 v = 0;
    for (std::size_t i = 0; i < width; ++i) v |= u64{bytes[offset + i]} << (8 * i);
    return v;
  };
  Sqe e;
  e.opcode = static_cast<u8>(at(0, 1));
  e.flags = static_cast<u8>(at(1, 1));
  e.cid = static_cast<u16>(at(2, 2));
  e.nsid = static_cast<u32>(at(4, 4));
  e.cdw2 = static_cast<u32>(at(8, 4));
  e.cdw3 = static_cast<u32>(at(12, 4));
  e.mptr = at(16, 8);
  e.prp1 = at(24, 8);
  e.prp2 = at(32, 8);
  e.cdw10 = static_cast<u32>(at(40, 4));
  e.cdw11 = static_cast<u32>(at(44, 4));
  e.cdw12 = static_cast<u32>(at(48, 4));
  e.cdw13 = static_cast<u32>(at(52, 4));
  e.cdw14 = static_cast<u32>(at(56, 4));
  e.cdw15 = static_cast<u32>(at(60, 4));
  return e;
}

Bytes by_parts(const Sqe& e) {
  Bytes out;
  for (u32 part = 0; part < kSqeParts; ++part) {
    const Bytes piece = bytes_of(sqe_part(e, part));
    out.insert(out.end(), piece.begin(), piece.end());
  }
  return out;
}

void check_prp_list(Keys& in, Keys& expect) {
  const u64 iova = in("data_iova"), bytes = in("data_len"), page = in("page_size"), at = in("prp_list_iova");
  const PrpPair prp = prp_pair(iova, bytes, page, at);
  EXPECT_EQ(prp.prp1, expect("prp1"));
  EXPECT_EQ(prp.prp2, expect("prp2"));
  EXPECT_EQ(prp.list_qwords, expect("prp_list_qwords_incl_chain"));
  EXPECT_EQ(prp_list_qwords(iova % page, bytes, page), prp.list_qwords);

  // One qword behind the list must stay as it is.
  std::vector<u64> list(prp.list_qwords + 1, 0x5555555555555555u);
  if (prp.list_qwords > 0) write_prp_list(list.data(), iova, bytes, page, at);
  EXPECT_EQ(list.back(), 0x5555555555555555u);
  list.pop_back();
  Bytes raw(list.size() * 8);
  if (!raw.empty()) std::memcpy(raw.data(), list.data(), raw.size());
  if (expect.has("prp_list_hex")) {
    EXPECT_EQ(to_hex(raw), expect.text("prp_list_hex"));
  }
  if (expect.has("prp_list_sha256")) {
    EXPECT_EQ(golden::sha256_hex(raw), expect.text("prp_list_sha256"));
  }
  if (prp.list_qwords > 0) {
    EXPECT_TRUE(expect.has("prp_list_hex") || expect.has("prp_list_sha256"));
  }
  if (expect.has("first_qwords")) {
    const json& first = expect.raw("first_qwords");
    for (std::size_t i = 0; i < first.size(); ++i) EXPECT_EQ(list.at(i), number(first[i]));
  }
  if (expect.has("last_qwords")) {
    const json& last = expect.raw("last_qwords");
    for (std::size_t i = 0; i < last.size(); ++i)
      EXPECT_EQ(list.at(list.size() - last.size() + i), number(last[i]));
  }
  if (expect.has("chain_qwords_at_511")) {
    const json& chain = expect.raw("chain_qwords_at_511");
    for (std::size_t i = 0; i < chain.size(); ++i) EXPECT_EQ(list.at(511 + i * 512), number(chain[i]));
  }

  // The way back: a controller that walks these entries finds the buffer, in order and whole.
  u64 next = iova;
  const u16 st = walk_prps(
      prp.prp1, prp.prp2, bytes, page,
      [&](u64 from, u32 n, u64* out) {
        if (from < at || from + n * 8 > at + list.size() * 8) return false;
        std::copy_n(list.data() + (from - at) / 8, n, out);
        return true;
      },
      [&](u64 chunk, u64 n) {
        EXPECT_EQ(chunk, next);
        next += n;
        return true;
      });
  EXPECT_EQ(st, status::success);
  EXPECT_EQ(next, iova + bytes);
}

void encode(const json& vector) {
  Keys in(vector.at("inputs"));
  const auto encoder = encoders().find(in.text("op"));
  ASSERT_NE(encoder, encoders().end()) << "unknown op " << in.text("op");
  const Sqe e = encoder->second(in);
  expect_bytes(bytes_of(e), vector, "the entry as a struct");
  expect_bytes(by_parts(e), vector, "the entry in 16-byte parts");
  const Bytes want = from_hex(vector.at("bytes_hex").get<std::string>());
  ASSERT_EQ(want.size(), sizeof(Sqe));
  expect_bytes(bytes_of(decoded(want)), vector, "decoded and encoded again");
  expect_bytes(by_parts(decoded(want)), vector, "decoded and encoded again, in parts");
  if (vector.contains("expect")) {
    Keys expect(vector.at("expect"));
    check_prp_list(in, expect);
    expect.expect_all_used("expect");
  }
  in.expect_all_used("inputs");
}

void decode(const json& vector) {
  Keys in(vector.at("inputs"));
  Keys expect(vector.at("expect"));
  const Bytes bytes = from_hex(vector.at("bytes_hex").get<std::string>());
  ASSERT_EQ(bytes.size(), sizeof(Cqe));
  Word16 word;
  std::memcpy(&word, bytes.data(), sizeof word);
  const Cqe e = decode_cqe(word);
  EXPECT_EQ(e.dw0, expect("dw0"));
  EXPECT_EQ(e.sq_head, expect("sq_head"));
  EXPECT_EQ(e.sq_id, expect("sq_id"));
  EXPECT_EQ(e.cid, expect("cid"));
  EXPECT_EQ(phase_of(e), expect("phase") != 0);
  const Status st = status_of(e);
  EXPECT_EQ(st.field, expect("status_15bit"));
  EXPECT_EQ(st.type(), expect("sct"));
  EXPECT_EQ(st.code(), expect("sc"));
  EXPECT_EQ(st.retry_delay(), expect("crd"));
  EXPECT_EQ(st.more(), expect("more") != 0);
  EXPECT_EQ(st.do_not_retry(), expect("dnr") != 0);
  EXPECT_EQ(st.ok(), expect("sct") == 0 && expect("sc") == 0);
  EXPECT_EQ(st.type_and_code(), expect("sct") << 8 | expect("sc"));
  EXPECT_EQ(status_name(st.type_and_code()), expect.text("status_name"));
  expect_bytes(bytes_of(e), vector, "the entry as a struct");
  expect_bytes(bytes_of(encode_cqe(e)), vector, "encoded again");
  in.expect_all_used("inputs");
  expect.expect_all_used("expect");
}

void doorbell_value(const json& vector) {
  Keys in(vector.at("inputs"));
  Keys expect(vector.at("expect"));
  EXPECT_TRUE(vector.at("bytes_hex").get<std::string>().empty());
  if (in.has("qid")) {
    const auto qid = static_cast<u32>(in("qid"));
    const auto stride = static_cast<u32>(in("dstrd"));
    EXPECT_EQ(sq_doorbell_offset(qid, stride), expect("sq_tail_offset"));
    EXPECT_EQ(cq_doorbell_offset(qid, stride), expect("cq_head_offset"));
  } else {
    const bool needed =
        register_write_needed(static_cast<u16>(in("eventidx")), static_cast<u16>(in("new_value")),
                              static_cast<u16>(in("old_value")));
    EXPECT_EQ(needed, expect("linux_mmio_needed") != 0);
    // The other driver's rule may only write more often: then nothing is ever missed by either.
    EXPECT_LE(needed ? 1u : 0u, expect("libvfn_mmio_needed"));
  }
  in.expect_all_used("inputs");
  expect.expect_all_used("expect");
}

TEST(Golden, Sha256OfKnownTexts) {
  EXPECT_EQ(golden::sha256_hex({}), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  const std::string abc = "abc";
  EXPECT_EQ(golden::sha256_hex({reinterpret_cast<const u8*>(abc.data()), abc.size()}),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Golden, EveryNvmeVector) {
  golden::run_file("nvme", {{"encode", encode}, {"decode", decode}, {"doorbell", doorbell_value}});
}

}  // namespace
}  // namespace doorbell::nvme
