// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A ring between two sides, of which each may write anything into the shared memory.
#include "rdma/roce/ring.hpp"

#include <fcntl.h>
#include <sys/mman.h>

#include <random>
#include <thread>

#include "carrier_rig.hpp"

namespace doorbell::roce {
namespace {

using test::packet;
constexpr u64 kBytes = RingMemory::kLeastBytes;

/// Both ends of a ring, each with a mapping of its own, and a third one of whoever spoils it.
struct Ring {
  Descriptor file;
  RingMemory spoiler;
  std::unique_ptr<RingWriter> writer;
  std::unique_ptr<RingReader> reader;
  std::vector<std::vector<u8>> got;

  Ring() {
    RingMemory of_writer, of_reader;
    EXPECT_TRUE(of_writer.make(kBytes, file));
    EXPECT_TRUE(of_reader.adopt(file, kBytes));
    EXPECT_TRUE(spoiler.adopt(file, kBytes));
    writer = std::make_unique<RingWriter>(std::move(of_writer));
    reader = std::make_unique<RingReader>(std::move(of_reader));
  }
  bool put(const std::vector<u8>& p) {
    const std::span<u8> room = writer->room(Path::record_bytes(p.size()));
    if (room.empty()) return false;
    const u32 n = static_cast<u32>(p.size());
    std::memcpy(room.data(), &n, sizeof n);
    std::memcpy(room.data() + Path::kRecordHeader, p.data(), p.size());
    writer->wrote(Path::record_bytes(p.size()));
    return true;
  }
  bool take(std::size_t most = ~std::size_t{0}) {
    return reader->read(most, [&](std::span<const u8> p) { got.emplace_back(p.begin(), p.end()); });
  }
  [[nodiscard]] u32* word(u64 offset) const { return reinterpret_cast<u32*>(spoiler.data() + offset); }
};

TEST(RoceRing, CarriesRecordsOfAllSizesRoundAndRound) {
  Ring ring;
  u64 sent = 0;
  for (u64 round = 0; round < 100; ++round) {
    const u64 before = sent;
    while (ring.put(packet(sent))) ++sent;
    EXPECT_GT(sent, before);
    static_cast<void>(ring.writer->publish());
    ASSERT_TRUE(ring.take(3 + round % 50));
    static_cast<void>(ring.reader->release());
  }
  ASSERT_TRUE(ring.take());
  ASSERT_EQ(ring.got.size(), sent);
  for (u64 i = 0; i < sent; ++i) ASSERT_EQ(ring.got[i], packet(i)) << i;
}

TEST(RoceRing, ShowsNothingBeforePublish) {
  Ring ring;
  ASSERT_TRUE(ring.put(packet(1)));
  ASSERT_TRUE(ring.take());
  EXPECT_TRUE(ring.got.empty());
  EXPECT_TRUE(ring.writer->has_unpublished());
  EXPECT_FALSE(ring.writer->publish());
  ASSERT_TRUE(ring.take());
  EXPECT_EQ(ring.got.size(), 1U);
}

TEST(RoceRing, AsksForOneWakeEachWay) {
  Ring ring;
  ring.reader->ask_for_wake();
  EXPECT_FALSE(ring.writer->publish()) << "there is nothing new";
  ASSERT_TRUE(ring.put(packet(1)));
  EXPECT_TRUE(ring.writer->publish());
  ASSERT_TRUE(ring.put(packet(2)));
  EXPECT_FALSE(ring.writer->publish()) << "it has been woken";

  while (ring.put(packet(3, 4000))) {
  }
  static_cast<void>(ring.writer->publish());
  ASSERT_TRUE(ring.take(3));
  EXPECT_FALSE(ring.reader->release()) << "not half of it is free";
  ASSERT_TRUE(ring.take());
  EXPECT_TRUE(ring.reader->release());
  ASSERT_TRUE(ring.put(packet(4)));
  static_cast<void>(ring.writer->publish());
  ASSERT_TRUE(ring.take());
  EXPECT_FALSE(ring.reader->release()) << "it has been woken";
}

/// Two threads that sleep whenever there is nothing to do, woken by nothing but what the ring says. A lost
/// wake ends it.
TEST(RoceRing, LosesNoWakeBetweenThreads) {
  Ring ring;
  std::atomic<u32> reader_wakes = 0, writer_wakes = 0;
  constexpr u64 kPackets = 200'000;
  std::atomic<bool> right = true;
  const auto sleep = [&](std::atomic<u32>& wakes) {
    right = doorbell::test::eventually([&] { return wakes.exchange(0) != 0 || !right; }) && right;
  };
  std::thread reader([&] {
    u64 next = 0;
    while (next < kPackets && right) {
      u64 took = 0;
      right = ring.reader->read(100, [&](std::span<const u8> p) {
        u64 number = 0;
        std::memcpy(&number, p.data(), sizeof number);
        if (number != next++) right = false;
        ++took;
      }) && right;
      if (ring.reader->release()) writer_wakes.store(1);
      if (took != 0) continue;
      ring.reader->ask_for_wake();
      bool any = false;
      right = ring.reader->read(1, [&](std::span<const u8> p) {
        u64 number = 0;
        std::memcpy(&number, p.data(), sizeof number);
        if (number != next++) right = false;
        any = true;
      }) && right;
      if (!any && next < kPackets) sleep(reader_wakes);
    }
  });
  std::vector<u8> p = packet(0, 100);
  for (u64 i = 0; i < kPackets && right;) {
    std::memcpy(p.data(), &i, sizeof i);
    if (ring.put(p)) {
      ++i;
      if (i % 7 != 0 && i != kPackets) continue;
      if (ring.writer->publish()) reader_wakes.store(1);
      continue;
    }
    if (ring.writer->has_unpublished()) {
      if (ring.writer->publish()) reader_wakes.store(1);
      continue;
    }
    sleep(writer_wakes);
  }
  reader.join();
  EXPECT_TRUE(right);
}

TEST(RoceRing, ABrokenWriterIsFound) {
  const std::vector<u32> wrong = {0, 1, 11, static_cast<u32>(kMostPacket + 1), 0x8000'0000, kSkip - 1, kSkip};
  for (const u32 size : wrong) {
    Ring ring;
    ASSERT_TRUE(ring.put(packet(1, 64)));
    static_cast<void>(ring.writer->publish());
    *ring.word(0) = size;
    EXPECT_FALSE(ring.take()) << size;
    EXPECT_TRUE(ring.got.empty()) << size;
  }
  // A record that passes what has been published, and one that passes the ring's end.
  {
    Ring ring;
    ASSERT_TRUE(ring.put(packet(1, 64)));
    static_cast<void>(ring.writer->publish());
    *ring.word(0) = 200;
    EXPECT_FALSE(ring.take());
  }
  {
    Ring ring;
    for (int i = 0; i < 15; ++i) ASSERT_TRUE(ring.put(packet(1, 4096 - 20)));
    ASSERT_TRUE(ring.put(packet(1, 2048 - 20)));
    static_cast<void>(ring.writer->publish());
    ASSERT_TRUE(ring.take());
    static_cast<void>(ring.reader->release());
    ASSERT_TRUE(ring.put(packet(1, 1024)));
    ASSERT_TRUE(ring.put(packet(1, 4000)));
    static_cast<void>(ring.writer->publish());
    *ring.word(kBytes - 2048) = 4000;
    EXPECT_FALSE(ring.take());
  }
  // Heads: behind, too far ahead, crooked.
  for (const u64 head : {~u64{0}, kBytes + 16, u64{1} << 63, u64{8}}) {
    Ring ring;
    ring.spoiler.header().head.store(head);
    EXPECT_FALSE(ring.take()) << head;
  }
  Ring ring;
  ASSERT_TRUE(ring.put(packet(1, 64)) && ring.put(packet(2, 64)));
  static_cast<void>(ring.writer->publish());
  ASSERT_TRUE(ring.take());
  ring.spoiler.header().head.store(Path::record_bytes(64));  // it takes a record back
  EXPECT_FALSE(ring.take());
}

TEST(RoceRing, ABrokenReaderDoesNoHarm) {
  // Tails that were never read up to: the writer waits, as for a reader that is behind.
  for (const u64 tail : {~u64{0}, kBytes + 16, u64{1} << 63, u64{8}}) {
    Ring ring;
    u64 sent = 0;
    while (ring.put(packet(1, 4000))) ++sent;
    EXPECT_LE(sent, kBytes / 4000);
    static_cast<void>(ring.writer->publish());
    ring.spoiler.header().tail.store(tail);
    EXPECT_FALSE(ring.put(packet(1, 4000))) << tail;
  }
  // It writes into records that are not published yet.
  for (const u32 size : {0U, 11U, 5000U, 200U, kSkip}) {
    Ring ring;
    ASSERT_TRUE(ring.put(packet(1, 64)));
    *ring.word(0) = size;
    u64 seen = 0;
    EXPECT_FALSE(ring.writer->unpublished([&](std::size_t, u8*) { ++seen; })) << size;
    EXPECT_EQ(seen, 0U);
  }
}

/// Anything in the shared memory at any time: the reader stays in its memory and comes to an end.
TEST(RoceRing, RandomMemoryIsReadWithinBounds) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 300; ++round) {
    Ring ring;
    for (u64 i = 0; i < kBytes / 4; i += 1 + random() % 64) {
      const u64 pick = random();
      *ring.word(4 * i) = pick % 8 == 0 ? kSkip : static_cast<u32>(pick >> 8) % (pick % 3 == 0 ? ~0U : 4300U);
    }
    for (int k = 0; k < 20; ++k) {
      ring.spoiler.header().head.store(random() % 4 == 0 ? random() : (random() % (2 * kBytes)) / 16 * 16);
      const bool right = ring.reader->read(100, [&](std::span<const u8> p) {
        ASSERT_GE(p.size(), kLeastPacket);
        ASSERT_LE(p.size(), kMostPacket);
        u64 sum = 0;
        for (const u8 b : p) sum += b;
        asm volatile("" : : "r"(sum));
      });
      static_cast<void>(ring.reader->release());
      if (!right) break;
    }
  }
}

TEST(RoceRingMemory, TakesOnlySealedMemoryOfTheRightSize) {
  const auto memory_file = [](u64 bytes, int seals) {
    Descriptor file(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    EXPECT_EQ(ftruncate(file.get(), static_cast<off_t>(bytes)), 0);
    EXPECT_EQ(fcntl(file.get(), F_ADD_SEALS, seals), 0);
    return file;
  };
  const auto takes = [](const Descriptor& file, u64 bytes) { return RingMemory().adopt(file, bytes); };
  constexpr int kSealed = F_SEAL_SHRINK | F_SEAL_GROW;
  EXPECT_TRUE(takes(memory_file(kBytes + 4096, kSealed), kBytes));
  EXPECT_FALSE(takes(memory_file(kBytes + 4096, F_SEAL_SHRINK), kBytes));
  EXPECT_FALSE(takes(memory_file(kBytes + 4096, F_SEAL_GROW), kBytes));
  EXPECT_FALSE(takes(memory_file(kBytes + 4096, 0), kBytes));
  EXPECT_FALSE(takes(memory_file(kBytes + 4096, kSealed | F_SEAL_WRITE), kBytes));
  EXPECT_FALSE(takes(memory_file(kBytes, kSealed), kBytes));
  EXPECT_FALSE(takes(memory_file(2 * kBytes + 4096, kSealed), kBytes));
  EXPECT_FALSE(takes(memory_file(kBytes / 2 + 4096, kSealed), kBytes / 2));
  EXPECT_FALSE(takes(memory_file(3 * kBytes + 4096, kSealed), 3 * kBytes));
  EXPECT_FALSE(takes(Descriptor(open("/dev/zero", O_RDWR | O_CLOEXEC)), kBytes));
  EXPECT_FALSE(takes(Descriptor(), kBytes));
  EXPECT_FALSE(takes(memory_file(kBytes + 4096, kSealed), 0));
  EXPECT_FALSE(takes(memory_file(kBytes + 4096, kSealed), ~u64{0}));
}

}  // namespace
}  // namespace doorbell::roce
