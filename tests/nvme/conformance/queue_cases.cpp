// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Conformance of I/O queues and I/O commands.
#include "rig.hpp"

namespace doorbell::nvme::conformance {
namespace {

// --- queues ---------------------------------------------------------------------------------------

void every_queue_size(const Target& t) {
  Rig r(t);
  const u32 most = std::min(r.c.cap().max_queue_entries(), 4096u);
  for (const u32 entries : {2u, 3u, 7u, 8u, 64u, most}) {
    if (entries > r.c.cap().max_queue_entries()) continue;
    SCOPED_TRACE(entries);
    const auto q = r.c.create(2, entries, entries);
    u16 cid = 0;
    for (u32 i = 0; i < std::min(entries * 5 + 3, 3000u); ++i) {
      q->submit(flush_command(cid, 1));
      const Cqe e = q->wait();
      ASSERT_EQ(e.cid, cid++);
      ASSERT_EQ(e.sq_head, q->tail());
      ASSERT_EQ(e.sq_id, 2);
    }
    // A full ring at once.
    for (u32 i = 0; i + 1 < entries; ++i) q->put(flush_command(static_cast<u16>(i), 1));
    q->ring();
    std::set<u16> seen;
    for (u32 i = 0; i + 1 < entries; ++i) ASSERT_TRUE(seen.insert(q->wait().cid).second);
    ASSERT_EQ(r.c.status(delete_queue_command(AdminOpcode::delete_sq, 0, 2)), status::success);
    ASSERT_EQ(r.c.status(delete_queue_command(AdminOpcode::delete_cq, 0, 2)), status::success);
  }
}

void every_cid(const Target& t) {
  Rig r(t);
  for (const u32 cid : {0u, 1u, 0x3ffu, 0x400u, 0x7fffu, 0x8000u, 0xfffeu, 0xffffu}) {
    r.io->submit(flush_command(static_cast<u16>(cid), 1));
    EXPECT_EQ(r.io->wait().cid, cid);
  }
}

/// Entries that the host has not given back stay as they are, and what did not fit comes later.
void a_full_cq_is_never_overwritten(const Target& t) {
  Rig r(t);
  for (const u32 entries : {2u, 3u, 5u}) {
    SCOPED_TRACE(entries);
    const auto q = r.c.queue(2, 32, entries);
    ASSERT_EQ(r.c.status(create_cq_command(0, 2, entries, q->cq_iova())), status::success);
    ASSERT_EQ(r.c.status(create_sq_command(0, 2, 2, 32, q->sq_iova())), status::success);
    for (u16 cid = 0; cid < 31; ++cid) q->put(flush_command(cid, 1));
    q->ring();
    std::set<u16> seen;
    for (u32 i = 0; i + 1 < entries; ++i) ASSERT_TRUE(seen.insert(q->wait(false).cid).second);
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    ASSERT_FALSE(q->take().has_value()) << "one slot stays empty";
    std::set<u16> still;
    for (u32 i = 0; i + 1 < entries; ++i) still.insert(q->peek(i).cid);
    ASSERT_EQ(still, seen) << "an entry was overwritten";
    q->ring_cq();
    while (seen.size() < 31) ASSERT_TRUE(seen.insert(q->wait().cid).second);
    EXPECT_EQ(r.c.csts() & csts::fatal, 0u);
    ASSERT_EQ(r.c.status(delete_queue_command(AdminOpcode::delete_sq, 0, 2)), status::success);
    ASSERT_EQ(r.c.status(delete_queue_command(AdminOpcode::delete_cq, 0, 2)), status::success);
  }
}

void a_full_admin_cq_is_never_overwritten(const Target& t) {
  RawController c(t.open(false));
  c.enable(16, 3);
  for (u16 cid = 1; cid <= 10; ++cid) c.admin().put(abort_command(cid, 1, cid));
  c.admin().ring();
  std::set<u16> seen;
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(seen.insert(c.admin().wait(false).cid).second);
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  EXPECT_FALSE(c.admin().take().has_value());
  EXPECT_TRUE(seen.contains(c.admin().peek(0).cid)) << "overwritten";
  EXPECT_TRUE(seen.contains(c.admin().peek(1).cid)) << "overwritten";
  c.admin().ring_cq();
  while (seen.size() < 10) ASSERT_TRUE(seen.insert(c.admin().wait().cid).second);
  EXPECT_EQ(c.csts() & csts::fatal, 0u);
}

void two_sqs_on_one_cq(const Target& t) {
  Rig r(t);
  if (r.granted < 4) GTEST_SKIP() << "it grants " << r.granted << " queue pairs";
  const auto a = r.c.queue(3, 16, 64), b = r.c.queue(4, 16, 2, 3);
  ASSERT_EQ(r.c.status(create_cq_command(0, 3, 64, a->cq_iova())), status::success);
  ASSERT_EQ(r.c.status(create_sq_command(0, 3, 3, 16, a->sq_iova())), status::success);
  ASSERT_EQ(r.c.status(create_sq_command(0, 4, 3, 16, b->sq_iova())), status::success);
  for (u16 round = 0; round < 20; ++round) {
    for (u16 i = 0; i < 10; ++i) {
      a->put(flush_command(i, 1));
      b->put(flush_command(i, 1));
    }
    a->ring();
    b->ring();
    std::map<u16, std::set<u16>> seen;
    for (int i = 0; i < 20; ++i) {
      const Cqe e = a->wait();
      ASSERT_TRUE(seen[e.sq_id].insert(e.cid).second);
    }
    ASSERT_EQ(seen[3].size(), 10u);
    ASSERT_EQ(seen[4].size(), 10u);
  }
  using enum AdminOpcode;
  EXPECT_EQ(r.c.status(delete_queue_command(delete_sq, 0, 3)), status::success);
  EXPECT_EQ(r.c.status(delete_queue_command(delete_cq, 0, 3)), status::invalid_queue_deletion)
      << "4 is still there";
  b->submit(flush_command(9, 1));
  EXPECT_EQ(a->wait().sq_id, 4);
  EXPECT_EQ(r.c.status(delete_queue_command(delete_sq, 0, 4)), status::success);
  EXPECT_EQ(r.c.status(delete_queue_command(delete_cq, 0, 3)), status::success);
}

void a_cid_in_use_is_a_conflict(const Target& t) {
  Rig r(t, true);
  for (int i = 0; i < 2; ++i) {  // both in one doorbell: the first cannot have completed
    Sqe e = r.command(IoOpcode::read, 0, 1, r.data.iova());
    e.cid = 5;
    r.io->put(e);
  }
  r.io->ring();
  std::multiset<u16> ended = {code(r.io->wait()), code(r.io->wait())};
  EXPECT_EQ(ended, (std::multiset<u16>{status::success, status::cid_conflict}));
  EXPECT_EQ(r.status(flush_command(0, 1)), status::success);
}

void doorbell_buffers_are_checked(const Target& t) {
  Rig r(t);
  const Mapped& pages = r.c.memory(2 * kPage);
  const u64 a = pages.iova(), b = a + kPage;
  EXPECT_EQ(r.c.status(doorbell_buffer_command(0, a + 4, b)), status::invalid_field);
  EXPECT_EQ(r.c.status(doorbell_buffer_command(0, a, b + 2048)), status::invalid_field);
  if ((t.has & iommu) != 0) {
    EXPECT_NE(r.c.status(doorbell_buffer_command(0, u64{1} << 60, b)), status::success);
    const Mapped& read_only = r.c.memory(kPage, Access::read);
    EXPECT_NE(r.c.status(doorbell_buffer_command(0, a, read_only.iova())), status::success);
  }
  EXPECT_EQ(r.c.status(doorbell_buffer_command(0, a, b)), status::success);
  // From now on a doorbell is its shadow and its register.
  const auto shadow = [&](u64 offset) {
    return reinterpret_cast<u32*>(pages.region().host() + (offset - reg::doorbells));
  };
  for (u16 cid = 0; cid < 3; ++cid) {
    r.io->put(flush_command(cid, 1));
    store_release(shadow(sq_doorbell_offset(1, r.c.cap().stride())), r.io->tail());
    r.io->ring();
    EXPECT_EQ(r.io->wait(false).cid, cid);
    store_release(shadow(cq_doorbell_offset(1, r.c.cap().stride())), r.io->head());
    r.io->ring_cq();
  }
}

void a_bad_shadow_value_is_reported_once(const Target& t) {
  Rig r(t);
  const Mapped& pages = r.c.memory(2 * kPage);
  ASSERT_EQ(r.c.status(doorbell_buffer_command(0, pages.iova(), pages.iova() + kPage)), status::success);
  const auto q = r.c.create(2, 8, 8);
  const u64 at = sq_doorbell_offset(2, r.c.cap().stride()) - reg::doorbells;
  auto* shadow = reinterpret_cast<u32*>(pages.region().host() + at);
  const auto counted = [&] { return r.c.interface().counters().at("invalid_doorbell_values").get<u64>(); };
  store_release(shadow, 8);
  q->ring_value(8);
  EXPECT_TRUE(eventually([&] { return counted() > 0; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(counted(), 1u);
  q->put(flush_command(3, 1));
  store_release(shadow, q->tail());
  q->ring();
  EXPECT_EQ(q->wait().cid, 3);
  store_release(shadow, 9999);
  q->ring_value(7);
  EXPECT_TRUE(eventually([&] { return counted() > 1; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(counted(), 2u);
}

// --- I/O commands ---------------------------------------------------------------------------------

void unknown_io_commands(const Target& t) {
  Rig r(t);
  for (const u32 op : {0x03u, 0x7fu, 0x83u, 0xffu}) {
    Sqe e;
    e.opcode = static_cast<u8>(op);
    e.nsid = 1;
    const Cqe c = r.run(e);
    EXPECT_EQ(code(c), status::invalid_opcode) << op;
    EXPECT_TRUE(status_of(c).do_not_retry());
  }
}

void invalid_namespaces(const Target& t) {
  Rig r(t);
  for (const u32 nsid : {0u, 0xfffffffeu, kAllNamespaces}) {
    for (const auto op : {IoOpcode::read, IoOpcode::write, IoOpcode::compare, IoOpcode::write_zeroes}) {
      Sqe e = r.command(op, 0, 1, r.data.iova());
      e.nsid = nsid;
      const u16 answer = r.status(e);
      // The broadcast value is no invalid NSID, and some controllers answer that the field is invalid.
      const bool other_reading =
          nsid == kAllNamespaces && (t.has & named_statuses) == 0 && answer == status::invalid_field;
      EXPECT_TRUE(answer == status::invalid_namespace || other_reading)
          << nsid << ' ' << static_cast<int>(op) << ' ' << answer;
    }
  }
  EXPECT_EQ(r.status(flush_command(0, 0)), status::invalid_namespace);
  EXPECT_EQ(r.status(flush_command(0, 0xfffffffe)), status::invalid_namespace);
  EXPECT_EQ(r.status(flush_command(0, kAllNamespaces)), status::success);
  EXPECT_EQ(r.status(flush_command(0, 1)), status::success);
}

void blocks_out_of_range(const Target& t) {
  Rig r(t);
  const std::pair<u64, u32> bad[] = {{r.blocks, 1},     {r.blocks - 1, 2},      {r.blocks + 1, 1},
                                     {~u64{0}, 1},      {~u64{0}, 8},  // the sum is 7
                                     {~u64{0} - 6, 8},                 // the sum is 1
                                     {u64{1} << 63, 1}, {u64{1} << 32 << 31, 8}};
  for (const auto& [lba, n] : bad) {
    for (const auto op : {IoOpcode::read, IoOpcode::write, IoOpcode::compare, IoOpcode::write_zeroes}) {
      const Cqe e = r.run(r.command(op, lba, n, r.data.iova(), r.data.iova() + kPage));
      EXPECT_EQ(code(e), status::lba_out_of_range) << lba << ' ' << n << ' ' << static_cast<int>(op);
      EXPECT_TRUE(status_of(e).do_not_retry());
    }
  }
  EXPECT_EQ(r.status(r.command(IoOpcode::write_zeroes, ~u64{0} - 65535 + 1, 65536, 0)),
            status::lba_out_of_range);
  EXPECT_EQ(r.status(r.command(IoOpcode::read, r.blocks - 1, 1, r.data.iova())), status::success);
}

void largest_transfer(const Target& t) {
  Rig r(t);
  if (r.mdts == 0 || u64{kPage} << r.mdts >= u64{65536} * r.lba_bytes) GTEST_SKIP() << "it names no limit";
  const u64 most = u64{kPage} << r.mdts;
  const u32 n = static_cast<u32>(most / r.lba_bytes);
  ASSERT_LT(n, 65536u);
  const Mapped& buffer = r.c.memory(most + 2 * kPage);
  std::vector<u64> list(prp_list_qwords(0, most + kPage, kPage) + 1);
  const Mapped& lists = r.c.memory(list.size() * 8);
  write_prp_list(reinterpret_cast<u64*>(lists.region().host()), buffer.iova(), most + kPage, kPage,
                 lists.iova());
  EXPECT_EQ(r.status(r.command(IoOpcode::read, 0, n, buffer.iova(), lists.iova())), status::success);
  EXPECT_EQ(r.status(r.command(IoOpcode::read, 0, n + 1, buffer.iova(), lists.iova())),
            status::invalid_field);
  EXPECT_EQ(r.status(r.command(IoOpcode::write, 0, n + 1, buffer.iova(), lists.iova())),
            status::invalid_field);
  EXPECT_EQ(r.status(r.command(IoOpcode::read, 0, 65536, buffer.iova(), lists.iova())),
            status::invalid_field);
}

/// Every shape of PRPs, there and back, with the bytes around the buffer guarded.
void data_through_every_prp_shape(const Target& t) {
  Rig r(t);
  const u64 limit = r.mdts == 0 ? u64{4} << 20 : std::min(u64{kPage} << r.mdts, u64{4} << 20);
  const Mapped &out = r.c.memory(limit + 2 * kPage, Access::read),
               &in = r.c.memory(limit + 2 * kPage, Access::write);
  const Mapped& lists = r.c.memory((limit / kPage + 4) * 8 + kPage, Access::read);
  auto* const list = reinterpret_cast<u64*>(lists.region().host());
  u8* const from = out.region().host();
  u8* const to = in.region().host();
  const u64 sizes[] = {r.lba_bytes, kPage, 2 * kPage, 3 * kPage, 17 * kPage, limit / 2 / kPage * kPage,
                       limit};
  u64 lba = 3;
  for (const u64 bytes : sizes) {
    if (bytes > limit || bytes % r.lba_bytes != 0) continue;
    for (const u64 offset : {u64{0}, u64{4}, u64{512}, u64{2048}, u64{kPage - 4}}) {
      SCOPED_TRACE(testing::Message() << bytes << " bytes at offset " << offset);
      const u32 n = static_cast<u32>(bytes / r.lba_bytes);
      fill(from, out.region().bytes(), bytes + offset);
      std::memset(to, 0xc3, in.region().bytes());
      const auto prps = [&](const Mapped& m) {
        const PrpPair p = prp_pair(m.iova() + offset, bytes, kPage, lists.iova());
        if (p.list_qwords > 0) write_prp_list(list, m.iova() + offset, bytes, kPage, lists.iova());
        return p;
      };
      PrpPair p = prps(out);
      ASSERT_EQ(r.status(r.command(IoOpcode::write, lba, n, p.prp1, p.prp2)), status::success);
      p = prps(in);
      ASSERT_EQ(r.status(r.command(IoOpcode::read, lba, n, p.prp1, p.prp2)), status::success);
      ASSERT_EQ(std::memcmp(to + offset, from + offset, bytes), 0);
      ASSERT_TRUE(all_are(0xc3, to, offset)) << "something was written before the buffer";
      ASSERT_TRUE(all_are(0xc3, to + offset + bytes, in.region().bytes() - offset - bytes))
          << "something was written behind the buffer";
      lba += n;
    }
  }
}

void scattered_pages(const Target& t) {
  Rig r(t);
  // 16 pages (or what a transfer may have) in reverse order, the list beginning in the middle of its page.
  const u64 pages = r.mdts == 0 ? 16 : std::min<u64>(16, u64{1} << r.mdts);
  const Mapped& lists = r.c.memory(kPage, Access::read);
  auto* const list = reinterpret_cast<u64*>(lists.region().host());
  fill(r.bytes(), pages * kPage, 8);
  for (u64 i = 1; i < pages; ++i) list[100 + i - 1] = r.data.iova() + (pages - 1 - i) * kPage;
  const u32 n = static_cast<u32>(pages * kPage / r.lba_bytes);
  const u64 first = r.data.iova() + (pages - 1) * kPage;
  ASSERT_EQ(r.status(r.command(IoOpcode::write, 0, n, first, lists.iova() + 800)), status::success);
  const Mapped& flat = r.c.memory(pages * kPage, Access::write);
  const Mapped& flat_list = r.c.memory(kPage, Access::read);
  const PrpPair p = prp_pair(flat.iova(), pages * kPage, kPage, flat_list.iova());
  write_prp_list(reinterpret_cast<u64*>(flat_list.region().host()), flat.iova(), pages * kPage, kPage,
                 flat_list.iova());
  ASSERT_EQ(r.status(r.command(IoOpcode::read, 0, n, p.prp1, p.prp2)), status::success);
  for (u64 i = 0; i < pages; ++i)
    EXPECT_EQ(std::memcmp(flat.region().host() + i * kPage, r.bytes() + (pages - 1 - i) * kPage, kPage), 0)
        << i;
}

void bad_prp_offsets(const Target& t) {
  Rig r(t);
  const u32 page_blocks = kPage / r.lba_bytes;
  const Mapped& lists = r.c.memory(2 * kPage);
  auto* const list = reinterpret_cast<u64*>(lists.region().host());
  for (const auto op : {IoOpcode::read, IoOpcode::write, IoOpcode::compare}) {
    SCOPED_TRACE(static_cast<int>(op));
    if ((t.has & prp_low_bits) != 0) {
      for (const u64 low : {1u, 2u, 3u})
        EXPECT_EQ(r.status(r.command(op, 0, 1, r.data.iova() + low)), status::prp_offset_invalid) << low;
      EXPECT_EQ(r.status(r.command(op, 0, 3 * page_blocks, r.data.iova(), lists.iova() + 4)),
                status::prp_offset_invalid);
    }
    EXPECT_EQ(r.status(r.command(op, 0, 2 * page_blocks, r.data.iova(), r.data.iova() + kPage + 8)),
              status::prp_offset_invalid);
    list[0] = r.data.iova() + kPage;
    list[1] = r.data.iova() + 2 * kPage + 512;
    EXPECT_EQ(r.status(r.command(op, 0, 3 * page_blocks, r.data.iova(), lists.iova())),
              status::prp_offset_invalid);
  }
}

void unmapped_prps(const Target& t) {
  Rig r(t);
  const u32 page_blocks = kPage / r.lba_bytes;
  constexpr u64 kNowhere = u64{1} << 60;
  const Mapped &read_only = r.c.memory(kPage, Access::read), &write_only = r.c.memory(kPage, Access::write);
  const Mapped& lists = r.c.memory(kPage);
  auto* const list = reinterpret_cast<u64*>(lists.region().host());
  std::memset(read_only.region().host(), 0x77, kPage);
  for (const auto op : {IoOpcode::read, IoOpcode::write, IoOpcode::compare}) {
    SCOPED_TRACE(static_cast<int>(op));
    EXPECT_EQ(r.status(r.command(op, 0, 1, kNowhere)), status::data_transfer_error);
    EXPECT_EQ(r.status(r.command(op, 0, 1, 0)), status::data_transfer_error);
    EXPECT_EQ(r.status(r.command(op, 0, 2 * page_blocks, r.data.iova(), kNowhere)),
              status::data_transfer_error);
    EXPECT_EQ(r.status(r.command(op, 0, 3 * page_blocks, r.data.iova(), kNowhere)),
              status::data_transfer_error);
    list[0] = r.data.iova() + kPage;
    list[1] = kNowhere;
    EXPECT_EQ(r.status(r.command(op, 0, 3 * page_blocks, r.data.iova(), lists.iova())),
              status::data_transfer_error);
    // One block past the end of the mapping.
    EXPECT_EQ(r.status(r.command(op, 0, 1, r.data.iova() + r.data.region().bytes())),
              status::data_transfer_error);
  }
  EXPECT_EQ(r.status(r.command(IoOpcode::read, 0, page_blocks, read_only.iova())),
            status::data_transfer_error);
  for (u32 i = 0; i < kPage; ++i)
    ASSERT_EQ(read_only.region().host()[i], 0x77) << "written through a read-only mapping";
  EXPECT_EQ(r.status(r.command(IoOpcode::write, 0, page_blocks, write_only.iova())),
            status::data_transfer_error);
  EXPECT_EQ(r.status(r.command(IoOpcode::write, 0, page_blocks, read_only.iova())), status::success);
  EXPECT_EQ(r.status(r.command(IoOpcode::read, 0, page_blocks, write_only.iova())), status::success);
  EXPECT_EQ(std::memcmp(write_only.region().host(), read_only.region().host(), kPage), 0);
}

void a_list_that_chains_to_itself(const Target& t) {
  Rig r(t);
  // Entered at its last qword, where the chain pointer lies, so that a small transfer chains too.
  const u32 pages = r.mdts == 0 ? 16 : std::min(16u, 1u << r.mdts);
  const u32 page_blocks = kPage / r.lba_bytes;
  const Mapped& lists = r.c.memory(kPage, Access::read);
  auto* const list = reinterpret_cast<u64*>(lists.region().host());
  for (int i = 0; i < 511; ++i) list[i] = r.data.iova();
  list[511] = lists.iova();
  EXPECT_EQ(
      r.status(r.command(IoOpcode::read, 0, pages * page_blocks, r.data.iova(), lists.iova() + 511 * 8)),
      status::success);
  EXPECT_EQ(r.status(flush_command(0, 1)), status::success);
}

void compare_blocks(const Target& t) {
  Rig r(t);
  fill(r.bytes(), 4 * kPage, 5);
  const u32 n = 2 * kPage / r.lba_bytes;
  ASSERT_EQ(r.status(r.command(IoOpcode::write, 8, n, r.data.iova(), r.data.iova() + kPage)),
            status::success);
  EXPECT_EQ(r.status(r.command(IoOpcode::compare, 8, n, r.data.iova(), r.data.iova() + kPage)),
            status::success);
  r.bytes()[2 * kPage - 1] ^= 1;
  EXPECT_EQ(r.status(r.command(IoOpcode::compare, 8, n, r.data.iova(), r.data.iova() + kPage)),
            status::compare_failure);
  r.bytes()[2 * kPage - 1] ^= 1;
  EXPECT_EQ(r.status(r.command(IoOpcode::compare, 8, n, r.data.iova(), r.data.iova() + kPage)),
            status::success);
}

void write_zeroes_clears(const Target& t) {
  Rig r(t);
  const u32 n = kPage / r.lba_bytes;
  fill(r.bytes(), kPage, 6);
  for (u32 i = 0; i < 3; ++i)
    ASSERT_EQ(r.status(r.command(IoOpcode::write, u64{i} * n, n, r.data.iova())), status::success);
  ASSERT_EQ(r.status(r.command(IoOpcode::write_zeroes, n, n, 0)), status::success);
  for (u32 i = 0; i < 3; ++i) {
    u8* const to = r.bytes() + kPage;
    std::memset(to, 0x11, kPage);
    ASSERT_EQ(r.status(r.command(IoOpcode::read, u64{i} * n, n, r.data.iova() + kPage)), status::success);
    if (i == 1) {
      ASSERT_TRUE(all_are(0, to, kPage));
    } else {
      ASSERT_EQ(std::memcmp(to, r.bytes(), kPage), 0) << "the neighbours keep their data";
    }
  }
}

void flags_are_refused(const Target& t) {
  Rig r(t);
  Sqe e = r.command(IoOpcode::read, 0, 1, r.data.iova());
  e.flags = 3;  // FUSE reserved value
  EXPECT_EQ(r.status(e), status::invalid_field);
  e.flags = 0xc0;  // PSDT reserved value
  EXPECT_EQ(r.status(e), status::invalid_field);
  e.flags = 0;
  EXPECT_EQ(r.status(e), status::success);
}

void the_last_write_wins(const Target& t) {
  Rig r(t);
  std::mt19937_64 random(4);
  std::map<u64, u64> last;
  const u32 n = kPage / r.lba_bytes;
  for (u64 i = 0; i < 300; ++i) {
    const u64 at = random() % 20;
    if (random() % 2 == 0) {
      fill(r.bytes(), kPage, i);
      ASSERT_EQ(r.status(r.command(IoOpcode::write, at * n, n, r.data.iova())), status::success);
      last[at] = i;
    } else if (last.contains(at)) {
      ASSERT_EQ(r.status(r.command(IoOpcode::read, at * n, n, r.data.iova() + kPage)), status::success);
      fill(r.bytes(), kPage, last[at]);
      ASSERT_EQ(std::memcmp(r.bytes(), r.bytes() + kPage, kPage), 0);
    }
  }
}

}  // namespace

std::vector<Case> queue_cases() {
  return {
      {"EveryQueueSize", nothing, every_queue_size},
      {"EveryCid", nothing, every_cid},
      {"AFullCqIsNeverOverwritten", nothing, a_full_cq_is_never_overwritten},
      {"AFullAdminCqIsNeverOverwritten", nothing, a_full_admin_cq_is_never_overwritten},
      {"TwoSqsOnOneCq", nothing, two_sqs_on_one_cq},
      {"ACidInUseIsAConflict", slow | cid_conflicts, a_cid_in_use_is_a_conflict},
      {"DoorbellBuffersAreChecked", shadow, doorbell_buffers_are_checked},
      {"ABadShadowValueIsReportedOnce", shadow | counts, a_bad_shadow_value_is_reported_once},
      {"UnknownIoCommands", nothing, unknown_io_commands},
      {"InvalidNamespaces", nothing, invalid_namespaces},
      {"BlocksOutOfRange", nothing, blocks_out_of_range},
      {"LargestTransfer", mdts, largest_transfer},
      {"DataThroughEveryPrpShape", nothing, data_through_every_prp_shape},
      {"ScatteredPages", nothing, scattered_pages},
      {"BadPrpOffsets", nothing, bad_prp_offsets},
      {"UnmappedPrps", iommu, unmapped_prps},
      {"AListThatChainsToItself", nothing, a_list_that_chains_to_itself},
      {"CompareBlocks", nothing, compare_blocks},
      {"WriteZeroesClears", nothing, write_zeroes_clears},
      {"FlagsAreRefused", nothing, flags_are_refused},
      {"TheLastWriteWins", nothing, the_last_write_wins},
  };
}

}  // namespace doorbell::nvme::conformance
