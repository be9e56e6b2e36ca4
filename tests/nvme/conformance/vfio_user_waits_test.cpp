// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A driver of one thread whose memory is not all shared: while the device waits for his answer, he waits for
// the device's. And how many messages his data takes.

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#include <deque>

#include "served.hpp"
#include "vfio_user/fake_device.hpp"

namespace doorbell::nvme::conformance {
namespace {

using vfio_user::Command;
using vfio_user::DmaAccess;
using vfio_user::DmaMap;
using vfio_user::DmaUnmap;
using vfio_user::Got;
using vfio_user::IrqSet;
using vfio_user::Region;
using vfio_user::RegionAccess;

/// Queues lie in a file that is shared, data at kFar by messages.
class OneThread {
 public:
  static constexpr u64 kAt = 0x100000000, kSpare = 0x200000000, kFar = 0x300000000, kFarBytes = 0x100000;
  static constexpr u32 kEntries = 16;

  explicit OneThread(u32 threads, u64 largest_message = vfio_user::kMostData)
      : served_("model:capacity=64Mi,threads=" + std::to_string(threads)),
        client_(served_.server->server().connect()) {
    const vfio_user::Capabilities mine{.max_msg_fds = 8, .max_data_xfer_size = largest_message};
    EXPECT_EQ(call(Command::version, vfio_user::encode_version(0, 1, &mine)), 0);
    EXPECT_EQ(map(kAt, 0), 0);
    EXPECT_EQ(map(kSpare, 0x10000), 0);
    EXPECT_EQ(
        call(Command::dma_map, vfio_user::bytes_of(DmaMap{.flags = 3, .address = kFar, .size = kFarBytes})),
        0);
    write<u32>(reg::aqa, (kEntries - 1) << 16 | (kEntries - 1));
    write<u64>(reg::asq, kAt);
    write<u64>(reg::acq, kAt + 0x1000);
    write<u32>(reg::cc, kEnabled);
    EXPECT_TRUE(test::eventually([&] { return csts() == csts::ready; }));
  }
  ~OneThread() { munmap(memory_, 0x20000); }
  static constexpr u32 kEnabled = cc::enable | 6u << cc::iosqes_shift | 4u << cc::iocqes_shift;

  /// Its errno; -1 if no answer comes. The server's own questions are kept.
  int call(Command c, std::span<const u8> payload, std::span<const u8> data = {},
           std::span<const int> files = {}) {
    if (!client_.send(vfio_user::command(++id_, c, payload, data), files)) return -1;
    for (;;) {
      auto got = client_.next();
      if (!got) return -1;
      if (got->header.is_command()) questions_.push_back(std::move(*got));
      else return got->header.id != id_ ? -1 : got->header.failed() ? static_cast<int>(got->header.error) : 0;
    }
  }
  int map(u64 at, u64 offset) {
    const int fd = file_.get();
    return call(Command::dma_map,
                vfio_user::bytes_of(DmaMap{.flags = 3, .offset = offset, .address = at, .size = 0x10000}), {},
                std::span(&fd, 1));
  }
  int unmap(u64 at) {
    return call(Command::dma_unmap, vfio_user::bytes_of(DmaUnmap{.address = at, .size = 0x10000}));
  }
  template <class T>
  void write(u32 offset, T value) {
    EXPECT_EQ(
        call(Command::region_write, vfio_user::bytes_of(RegionAccess{offset, Region::bar0, sizeof value}),
             vfio_user::bytes_of(value)),
        0)
        << offset;
  }
  u32 csts() {
    const RegionAccess what{reg::csts, Region::bar0, 4};
    EXPECT_TRUE(client_.send(vfio_user::command(++id_, Command::region_read, vfio_user::bytes_of(what))));
    const auto got = client_.next();
    return got ? vfio_user::first_of<u32>(std::span(got->payload).subspan(sizeof what)).value_or(~0u) : ~0u;
  }

  /// Queue `qid` has its entries at these places of the file.
  static u64 sq(u16 qid) { return 0x2000u * qid; }
  static u64 cq(u16 qid) { return 0x2000u * qid + 0x1000; }
  void submit(u16 qid, const Sqe& e) {
    u32& tail = tails_[qid];
    std::memcpy(memory_ + sq(qid) + u64{tail} * kSqeBytes, &e, sizeof e);
    tail = (tail + 1) % kEntries;
    write<u32>(static_cast<u32>(sq_doorbell_offset(qid, 0)), tail);
  }
  /// The status of the next completion of a queue that has had fewer than its entries; 0xffff if none comes.
  u16 completion(u16 qid) {
    const auto* const at = reinterpret_cast<const Word16*>(memory_ + cq(qid)) + heads_[qid]++;
    if (!test::eventually([&] { return (decode_cqe(load16_acquire(at)).status & 1) != 0; })) return 0xffff;
    return status_of(decode_cqe(load16_acquire(at))).type_and_code();
  }
  void create_queue(u16 qid) {
    submit(0, create_cq_command(1, qid, kEntries, kAt + cq(qid)));
    EXPECT_EQ(completion(0), status::success);
    submit(0, create_sq_command(2, qid, qid, kEntries, kAt + sq(qid)));
    EXPECT_EQ(completion(0), status::success);
  }

  /// The server's next question.
  Got question() {
    if (questions_.empty()) {
      auto got = client_.next();
      if (!got) return {};
      return std::move(*got);
    }
    Got first = std::move(questions_.front());
    questions_.pop_front();
    return first;
  }
  /// A write is taken, a read gets zeros.
  void answer(const Got& q) {
    const auto access = vfio_user::first_of<DmaAccess>(q.payload).value_or(DmaAccess{});
    const bool reads = q.header.command == static_cast<u16>(Command::dma_read);
    const std::vector<u8> zeros(reads ? access.count : 0);
    EXPECT_TRUE(client_.send(vfio_user::reply(q.header, 0, vfio_user::bytes_of(access), zeros)));
  }
  u8* memory() { return memory_; }
  vfio_user::ServerCounts counts() { return served_.server->server().counts(); }

 private:
  Served served_;
  vfio_user::RawClient client_;
  Descriptor file_{vfio_user::memory_file(0x20000)};
  u8* memory_ = static_cast<u8*>(mmap(nullptr, 0x20000, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0));
  std::deque<Got> questions_;
  std::array<u32, 8> tails_{}, heads_{};
  u16 id_ = 0;
};

/// The queue whose command waits for the driver: the admin queue and those of either thread.
class VfioUserWaits : public testing::TestWithParam<u16> {
 protected:
  void begin() {
    if (qid != 0) d.create_queue(qid);
    d.submit(qid, qid == 0 ? identify_command(7, Cns::controller, 0, OneThread::kFar)
                           : io_command(IoOpcode::read, 7, 1, 0, 1, OneThread::kFar, 0));
    asked = d.question();
    ASSERT_EQ(asked.header.command, static_cast<u16>(Command::dma_write));
  }
  /// The command that waited ends as if nothing had been between.
  void end() {
    d.answer(asked);
    EXPECT_EQ(d.completion(qid), status::success);
    EXPECT_EQ(d.counts().unanswered, 0u);
    EXPECT_EQ(d.counts().dma_refused, 0u);
  }
  const u16 qid = GetParam();
  OneThread d{2};
  Got asked{};
};

TEST_P(VfioUserWaits, ForAnUnmap) {
  begin();
  ASSERT_EQ(d.unmap(OneThread::kSpare), 0);
  end();
}

TEST_P(VfioUserWaits, ForAMap) {
  begin();
  ASSERT_EQ(d.map(0x400000000, 0), 0);
  end();
}

TEST_P(VfioUserWaits, ForAnotherEventfd) {
  const auto connect = [&] {
    const Descriptor event(eventfd(0, EFD_CLOEXEC));
    const int fd = event.get();
    return d.call(Command::set_irqs,
                  vfio_user::bytes_of(IrqSet{.flags = 0x24, .index = 2, .start = 1, .count = 1}), {},
                  std::span(&fd, 1));
  };
  ASSERT_EQ(connect(), 0);
  begin();
  ASSERT_EQ(connect(), 0);
  end();
}

TEST_P(VfioUserWaits, ForAShutdown) {
  begin();
  d.write<u32>(reg::cc, OneThread::kEnabled | 1u << 14);
  EXPECT_EQ(d.csts() & csts::shutdown_mask, csts::shutdown_complete);
  end();
}

TEST_P(VfioUserWaits, ForAReset) {
  begin();
  d.write<u32>(reg::cc, 0);
  EXPECT_EQ(d.csts(), 0u);
}

/// Its own queue goes meanwhile: the completion has no place, which is fatal, and ends no more than that.
TEST_P(VfioUserWaits, ForTheUnmapOfItsQueue) {
  begin();
  ASSERT_EQ(d.unmap(OneThread::kAt), 0);
  d.answer(asked);
  EXPECT_TRUE(test::eventually([&] { return (d.csts() & csts::fatal) != 0; }));
  d.write<u32>(reg::cc, 0);
  EXPECT_EQ(d.csts(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Queues, VfioUserWaits, testing::Values(u16{0}, u16{1}, u16{2}),
                         [](const auto& p) { return "Queue" + std::to_string(p.param); });

/// The admin queue's thread waits for another one, which waits for the driver.
TEST(VfioUserWaitsAlone, ForAnUnmapWhileAQueueIsCreated) {
  OneThread d(2);
  d.create_queue(2);
  d.submit(2, io_command(IoOpcode::read, 7, 1, 0, 1, OneThread::kFar, 0));
  const Got asked = d.question();
  d.submit(0, create_cq_command(9, 4, OneThread::kEntries, OneThread::kAt + OneThread::cq(4)));
  ASSERT_EQ(d.unmap(OneThread::kSpare), 0);
  d.answer(asked);
  EXPECT_EQ(d.completion(2), status::success);
  EXPECT_EQ(d.completion(0), status::success);
}

/// One message for pages that follow each other, as far as the client takes as much.
TEST(VfioUserMessages, DataThatIsContiguousIsOneMessage) {
  for (const u64 largest : {u64{1} << 20, u64{64} << 10}) {
    OneThread d(1, largest);
    d.create_queue(1);
    constexpr u32 kBlocks = 256, kBytes = kBlocks * 512;
    // A list of all pages but the first, in the file; the last two pages change their places.
    auto* const list = reinterpret_cast<u64*>(d.memory() + 0x10000);
    constexpr u32 kPages = kBytes / 4096;
    for (u32 i = 1; i < kPages; ++i) list[i - 1] = OneThread::kFar + u64{i} * 4096;
    for (const IoOpcode op : {IoOpcode::read, IoOpcode::write}) {
      // Answers of a client are shorter than messages to him may be.
      const u64 piece = op == IoOpcode::read ? std::min<u64>(largest, kBytes) : u64{64} << 10;
      const std::vector<u64> wanted(kBytes / piece, piece);
      d.submit(1, io_command(op, 7, 1, 0, kBlocks, OneThread::kFar, OneThread::kSpare));
      for (const u64 bytes : wanted) {
        const Got q = d.question();
        EXPECT_EQ(q.header.command,
                  static_cast<u16>(op == IoOpcode::read ? Command::dma_write : Command::dma_read));
        EXPECT_EQ(vfio_user::first_of<DmaAccess>(q.payload)->count, bytes);
        d.answer(q);
      }
      EXPECT_EQ(d.completion(1), status::success);
    }
    std::swap(list[kPages - 2], list[kPages - 3]);
    d.submit(1, io_command(IoOpcode::read, 8, 1, 0, kBlocks, OneThread::kFar, OneThread::kSpare));
    std::vector<u64> places;
    for (u64 have = 0; have < kBytes;) {
      const Got q = d.question();
      const auto access = *vfio_user::first_of<DmaAccess>(q.payload);
      places.push_back(access.address - OneThread::kFar);
      have += access.count;
      d.answer(q);
    }
    ASSERT_GE(places.size(), 3u);
    EXPECT_EQ(places[places.size() - 2], kBytes - 4096);
    EXPECT_EQ(places.back(), kBytes - 8192);
    EXPECT_EQ(d.completion(1), status::success);
  }
}

}  // namespace
}  // namespace doorbell::nvme::conformance
