// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Conformance of queues, doorbells, events and I/O commands as the drivers of others use them.
#include "admin_commands.hpp"

namespace doorbell::nvme::conformance {
namespace {

// --- queues ---------------------------------------------------------------------------------------

void every_granted_queue(const Target& t) {
  RawController c(t.open(false));
  c.enable();
  const Cqe grant = c.run(set_queues_command(0, 65535, 65535));
  ASSERT_EQ(code(grant), status::success);
  const u32 most = std::min(grant.dw0 & 0xffff, grant.dw0 >> 16) + 1;
  std::vector<RawQueue*> queues;
  for (u32 qid = 1; qid <= most; ++qid) queues.push_back(c.create(static_cast<u16>(qid), 8, 8));
  const RawQueue* const more = c.queue(static_cast<u16>(most + 1), 8, 8);
  EXPECT_EQ(c.status(create_cq_command(0, static_cast<u16>(most + 1), 8, more->cq_iova())),
            status::invalid_queue_id);
  for (RawQueue* q : queues) {
    q->submit(flush_command(q->qid(), 1));
    EXPECT_EQ(q->wait().cid, q->qid());
  }
  // Gone in another order than they came.
  std::mt19937 random(7);
  std::shuffle(queues.begin(), queues.end(), random);
  for (const RawQueue* q : queues)
    ASSERT_EQ(c.status(delete_queue_command(AdminOpcode::delete_sq, 0, q->qid())), status::success);
  std::shuffle(queues.begin(), queues.end(), random);
  for (const RawQueue* q : queues)
    ASSERT_EQ(c.status(delete_queue_command(AdminOpcode::delete_cq, 0, q->qid())), status::success);
}

void a_vector_that_nobody_has(const Target& t) {
  Rig r(t);
  const RawQueue* const q = r.c.queue(2, 16, 16);
  EXPECT_EQ(r.c.status(create_cq_command(0, 2, 16, q->cq_iova(), true, 2048)), status::invalid_vector);
  EXPECT_EQ(r.c.status(create_cq_command(0, 2, 16, q->cq_iova())), status::success);
}

/// As Linux does: queues first, then the buffers, and from then on a register is written only when the event
/// index asks for it.
void shadow_doorbells_for_queues_that_exist(const Target& t) {
  Rig r(t);
  const Mapped& pages = r.c.memory(2 * kPage);
  // Its doorbells are not 0 any more when the buffers come. QEMU 7.2 then waits for a register in vain.
  for (u16 i = 0; i < 5 && (t.has & admin_extras) != 0; ++i)
    ASSERT_EQ(r.status(flush_command(0, 1)), status::success);
  const auto word = [&](u64 page, u64 doorbell) {
    return reinterpret_cast<u32*>(pages.region().host() + page * kPage + (doorbell - reg::doorbells));
  };
  const u64 sq = sq_doorbell_offset(1, r.c.cap().stride()), cq = cq_doorbell_offset(1, r.c.cap().stride());
  store_relaxed(word(0, sq), r.io->tail());
  store_relaxed(word(0, cq), r.io->head());
  ASSERT_EQ(r.c.status(doorbell_buffer_command(0, pages.iova(), pages.iova() + kPage)), status::success);
  u32 registers = 0;
  const auto ring = [&](u64 doorbell, u32 value, auto&& write_register) {
    const auto old = static_cast<u16>(load_relaxed(word(0, doorbell)));
    if (register_write_needed(static_cast<u16>(store_then_load(word(0, doorbell), value, word(1, doorbell))),
                              static_cast<u16>(value), old)) {
      ++registers;
      write_register();
    }
  };
  for (u32 i = 0; i < 500; ++i) {
    const u16 cid = static_cast<u16>(i);
    r.io->put(flush_command(cid, 1));
    ring(sq, r.io->tail(), [&] { r.io->ring(); });
    ASSERT_EQ(r.io->wait(false).cid, cid);
    ring(cq, r.io->head(), [&] { r.io->ring_cq(); });
  }
  EXPECT_LE(registers, 1000u);
}

void doorbell_buffers_of_one_page(const Target& t) {
  Rig r(t);
  const Mapped& page = r.c.memory(kPage);
  EXPECT_EQ(r.c.status(doorbell_buffer_command(0, page.iova(), page.iova())), status::invalid_field);
  EXPECT_EQ(r.status(flush_command(0, 1)), status::success);
}

// --- events, aborts -------------------------------------------------------------------------------

void abort_of_an_event_request(const Target& t) {
  Rig r(t);
  r.c.admin().submit(admin_command(AdminOpcode::async_event, 0x4001));
  ASSERT_EQ(r.c.status(get_feature(7)), status::success);  // answered behind it
  Sqe abort = abort_command(0x55, 0, 0x4001);
  r.c.admin().submit(abort);
  std::map<u16, Cqe> ended;
  for (int i = 0; i < 2; ++i) {
    const Cqe e = r.c.admin().wait();
    ended[e.cid] = e;
  }
  ASSERT_TRUE(ended.contains(0x4001) && ended.contains(0x55));
  EXPECT_EQ(code(ended[0x4001]), status::abort_requested);
  EXPECT_EQ(code(ended[0x55]), status::success);
  EXPECT_EQ(ended[0x55].dw0 & 1, 0u) << "aborted";
  EXPECT_EQ(r.c.run(abort_command(0, 0, 0x4001)).dw0 & 1, 1u) << "it is not there any more";
}

/// SPDK's driver does so when it leaves: a refusal would keep its queues from being deleted.
void a_cid_of_an_event_request(const Target& t) {
  Rig r(t);
  r.c.admin().submit(admin_command(AdminOpcode::async_event, 0x4001));
  ASSERT_EQ(r.c.status(get_feature(7)), status::success);
  Sqe again = get_feature(7);
  again.cid = 0x4001;
  r.c.admin().submit(again);
  const Cqe answer = r.c.admin().wait();
  EXPECT_EQ(answer.cid, 0x4001);
  EXPECT_EQ(code(answer), status::success);
  r.c.admin().submit(abort_command(0x55, 0, 0x4001));
  std::multiset<std::pair<u16, u16>> ended;
  for (int i = 0; i < 2; ++i) {
    const Cqe e = r.c.admin().wait();
    ended.emplace(e.cid, code(e));
  }
  EXPECT_EQ(ended,
            (std::multiset<std::pair<u16, u16>>{{0x55, status::success}, {0x4001, status::abort_requested}}))
      << "the request waits on";
}

/// An admin command after which an event request may have ended too, before or after it.
std::map<u16, Cqe> with_event(Rig& r, Sqe e) {
  e.cid = 0x77;
  r.c.admin().submit(e);
  std::map<u16, Cqe> ended;
  for (int i = 0; i < 2; ++i) {
    const Cqe c = r.c.admin().wait();
    ended[c.cid] = c;
  }
  EXPECT_TRUE(ended.contains(0x77));
  EXPECT_EQ(code(ended[0x77]), status::success);
  return ended;
}

/// A temperature above its threshold is a critical warning, and an event if the host wants one.
void temperature_events(const Target& t) {
  Rig r(t);
  ASSERT_EQ(r.c.status(log_page(2, 512, 0, r.page.iova())), status::success);
  EXPECT_EQ(at<u8>(r.page, 0), 0) << "no warning";
  const auto kelvin = at<u16>(r.page, 1);
  r.c.admin().submit(admin_command(AdminOpcode::async_event, 0x4001));
  ASSERT_EQ(r.c.status(set_feature(0xb, 2)), status::success);
  auto ended = with_event(r, set_feature(4, kelvin - 10u));
  ASSERT_TRUE(ended.contains(0x4001));
  EXPECT_EQ(ended[0x4001].dw0, 0x020101u) << "SMART, temperature, see log page 2";
  ASSERT_EQ(r.c.status(log_page(2, 512, 0, r.page.iova())), status::success);
  EXPECT_EQ(at<u8>(r.page, 0) & 2, 2);
  ASSERT_EQ(r.c.status(set_feature(4, kelvin + 10u)), status::success);
  ASSERT_EQ(r.c.status(log_page(2, 512, 0, r.page.iova())), status::success);
  EXPECT_EQ(at<u8>(r.page, 0), 0);
}

/// One event of a type, until the host has read the page that it names.
void one_event_until_its_page_is_read(const Target& t) {
  Rig r(t);
  const auto no_event = [&] {
    for (int i = 0; i < 20; ++i) EXPECT_EQ(r.c.status(get_feature(7)), status::success);
  };
  ASSERT_EQ(r.c.status(log_page(2, 512, 0, r.page.iova())), status::success);
  const auto kelvin = at<u16>(r.page, 1);
  r.c.admin().submit(admin_command(AdminOpcode::async_event, 0x4001));
  ASSERT_EQ(r.c.status(set_feature(4, kelvin - 10u)), status::success);
  no_event();  // it was not asked for
  ASSERT_TRUE(with_event(r, set_feature(0xb, 2)).contains(0x4001))
      << "the warning is there when it is wanted";
  r.c.admin().submit(admin_command(AdminOpcode::async_event, 0x4002));
  ASSERT_EQ(r.c.status(set_feature(4, kelvin + 10u)), status::success);
  ASSERT_EQ(r.c.status(set_feature(4, kelvin - 10u)), status::success);
  no_event();
  Sqe retain = log_page(2, 512, 0, r.page.iova());
  retain.cdw10 |= 1u << 15;
  ASSERT_EQ(r.c.status(retain), status::success);
  no_event();
  EXPECT_TRUE(with_event(r, log_page(2, 512, 0, r.page.iova())).contains(0x4002));
}

// --- I/O commands ---------------------------------------------------------------------------------

u16 oncs_of(Rig& r) {
  EXPECT_EQ(r.c.status(identify(1, 0, r.page.iova())), status::success);
  return at<u16>(r.page, identify::oncs);
}

struct Range {
  u32 attributes;
  u32 blocks;
  u64 lba;
};

void deallocated_blocks(const Target& t) {
  Rig r(t);
  if ((oncs_of(r) & 4) == 0) GTEST_SKIP() << "it has no Dataset Management";
  ASSERT_EQ(r.c.status(identify(0, 1, r.page.iova())), status::success);
  const bool zeros = (at<u8>(r.page, 33) & 7) == 1;
  const u32 n = 4 * kPage / r.lba_bytes;
  const Mapped& lists = r.c.memory(kPage);
  write_prp_list(reinterpret_cast<u64*>(lists.region().host()), r.data.iova(), 4 * kPage, kPage,
                 lists.iova());
  fill(r.bytes(), 4 * kPage, 11);
  const std::vector<u8> want(r.bytes(), r.bytes() + 4 * kPage);
  ASSERT_EQ(r.status(r.command(IoOpcode::write, 0, n, r.data.iova(), lists.iova())), status::success);
  const auto manage = [&](std::vector<Range> ranges, u32 attributes) {
    std::memcpy(r.page.region().host(), ranges.data(), ranges.size() * sizeof(Range));
    Sqe e;
    e.opcode = static_cast<u8>(IoOpcode::dataset_management);
    e.nsid = 1;
    e.prp1 = r.page.iova();
    e.cdw10 = static_cast<u32>(ranges.size() - 1);
    e.cdw11 = attributes;
    return r.status(e);
  };
  const auto check = [&](u32 first_zero, u32 zero_blocks) {
    std::memset(r.bytes(), 0x99, 4 * kPage);
    ASSERT_EQ(r.status(r.command(IoOpcode::read, 0, n, r.data.iova(), lists.iova())), status::success);
    const u64 begin = u64{first_zero} * r.lba_bytes, end = begin + u64{zero_blocks} * r.lba_bytes;
    EXPECT_EQ(std::memcmp(r.bytes(), want.data(), begin), 0);
    EXPECT_EQ(std::memcmp(r.bytes() + end, want.data() + end, want.size() - end), 0);
    if (zeros && (t.has & admin_extras) != 0) {  // QEMU gives up large pieces only
      EXPECT_TRUE(all_are(0, r.bytes() + begin, end - begin));
    }
  };
  EXPECT_EQ(manage({{0, 1, 0}}, 3), status::success) << "a hint";
  check(0, 0);
  EXPECT_EQ(manage({{0, 1, 1}, {0, 0, 3}, {0, 1, 2}}, 4), status::success);
  check(1, 2);
  Sqe other;
  other.opcode = static_cast<u8>(IoOpcode::dataset_management);
  other.nsid = 7;
  other.prp1 = r.page.iova();
  const u16 answer = r.status(other);
  EXPECT_TRUE(answer == status::invalid_namespace ||
              ((t.has & named_statuses) == 0 && answer == status::invalid_field))
      << answer;
}

void ranges_outside_of_the_namespace(const Target& t) {
  Rig r(t);
  if ((oncs_of(r) & 4) == 0) GTEST_SKIP() << "it has no Dataset Management";
  fill(r.bytes(), kPage, 12);
  const u32 n = kPage / r.lba_bytes;
  ASSERT_EQ(r.status(r.command(IoOpcode::write, 0, n, r.data.iova())), status::success);
  for (const Range& bad : {Range{0, 1, r.blocks}, Range{0, 0xffffffff, r.blocks - 1}, Range{0, 2, ~u64{0}},
                           Range{0, 1, u64{1} << 63}}) {
    const Range ranges[2] = {{0, 1, 0}, bad};
    std::memcpy(r.page.region().host(), ranges, sizeof ranges);
    Sqe e;
    e.opcode = static_cast<u8>(IoOpcode::dataset_management);
    e.nsid = 1;
    e.prp1 = r.page.iova();
    e.cdw10 = 1;
    e.cdw11 = 4;
    EXPECT_EQ(r.status(e), status::lba_out_of_range) << bad.lba << ' ' << bad.blocks;
    EXPECT_EQ(r.status(r.command(IoOpcode::compare, 0, n, r.data.iova())), status::success)
        << "nothing was done";
    e.prp1 = u64{1} << 60;
    EXPECT_EQ(r.status(e), status::data_transfer_error);
  }
}

void verify_blocks(const Target& t) {
  Rig r(t);
  if ((oncs_of(r) & 0x80) == 0) GTEST_SKIP() << "it has no Verify";
  EXPECT_EQ(r.status(r.command(IoOpcode::verify, 0, 8, 0)), status::success);
  EXPECT_EQ(r.status(r.command(IoOpcode::verify, r.blocks - 1, 1, 0)), status::success);
  EXPECT_EQ(r.status(r.command(IoOpcode::verify, r.blocks - 1, 2, 0)), status::lba_out_of_range);
  EXPECT_EQ(r.status(r.command(IoOpcode::verify, ~u64{0}, 1, 0)), status::lba_out_of_range);
}

void forced_unit_access(const Target& t) {
  Rig r(t);
  fill(r.bytes(), kPage, 13);
  const u32 n = kPage / r.lba_bytes;
  Sqe e = r.command(IoOpcode::write, 3, n, r.data.iova());
  e.cdw12 |= kForceUnitAccess;
  ASSERT_EQ(r.status(e), status::success);
  e = r.command(IoOpcode::read, 3, n, r.data.iova() + kPage);
  e.cdw12 |= kForceUnitAccess;
  ASSERT_EQ(r.status(e), status::success);
  EXPECT_EQ(std::memcmp(r.bytes(), r.bytes() + kPage, kPage), 0);
}

}  // namespace

std::vector<Case> driver_queue_cases() {
  return {
      {"EveryGrantedQueue", nothing, every_granted_queue},
      {"AVectorThatNobodyHas", nothing, a_vector_that_nobody_has},
      {"ShadowDoorbellsForQueuesThatExist", shadow, shadow_doorbells_for_queues_that_exist},
      {"DoorbellBuffersOfOnePage", shadow | admin_extras, doorbell_buffers_of_one_page},
      {"AbortOfAnEventRequest", admin_extras, abort_of_an_event_request},
      {"ACidOfAnEventRequest", cid_conflicts, a_cid_of_an_event_request},
      {"TemperatureEvents", nothing, temperature_events},
      {"OneEventUntilItsPageIsRead", admin_extras, one_event_until_its_page_is_read},
      {"DeallocatedBlocks", nothing, deallocated_blocks},
      {"RangesOutsideOfTheNamespace", admin_extras, ranges_outside_of_the_namespace},
      {"VerifyBlocks", nothing, verify_blocks},
      {"ForcedUnitAccess", nothing, forced_unit_access},
  };
}

}  // namespace doorbell::nvme::conformance
