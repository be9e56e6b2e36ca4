// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A client that is no client: each message is refused and counted, and the server serves the next one.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cerrno>
#include <filesystem>
#include <random>

#include "fake_device.hpp"

namespace doorbell::vfio_user {
namespace {

using test::eventually;

std::size_t open_files() {
  std::size_t n = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++n;
  return n;
}

struct VfioUserHostile : testing::Test {
  FakeDevice device;
  Server server{device, {.log = nullptr, .answer_limit_ns = 50'000'000, .second_client_ns = 30'000'000'000}};
  RawClient client{server.connect()};
  void SetUp() override { ASSERT_EQ(client.greet(), 0); }
  void TearDown() override {
    client.close();
    RawClient next(server.connect());
    EXPECT_EQ(next.greet(), 0) << "the server serves on";
    EXPECT_EQ(next.call(Command::device_get_info, DeviceInfo{}), 0);
  }
  /// The connection is ended, and counted as one with bytes that are no message.
  void expect_malformed(std::span<const u8> bytes) {
    const u64 before = server.counts().malformed;
    ASSERT_TRUE(client.send(bytes));
    EXPECT_TRUE(client.ended());
    EXPECT_EQ(server.counts().malformed, before + 1);
  }
};

TEST_F(VfioUserHostile, SizesThatAreNone) {
  expect_malformed(bytes_of(Header{.id = 1, .command = 4, .size = 15}));
}
TEST_F(VfioUserHostile, SizesBeyondTheLongest) {
  expect_malformed(bytes_of(Header{.id = 1, .command = 4, .size = kLongest + 1}));
}
TEST_F(VfioUserHostile, AnUnknownType) {
  expect_malformed(bytes_of(Header{.id = 1, .command = 4, .size = 16, .flags = 3}));
}

TEST_F(VfioUserHostile, UnknownAndUnsupportedCommands) {
  for (const u16 c :
       {u16{0}, u16{6}, u16{11}, u16{12}, u16{14}, u16{15}, u16{16}, u16{17}, u16{18}, u16{99}, u16{0xffff}})
    EXPECT_EQ(client.call(static_cast<Command>(c), std::vector<u8>(64)), EINVAL) << c;
}

TEST_F(VfioUserHostile, TruncatedPayloads) {
  const std::pair<Command, std::size_t> commands[] = {
      {Command::dma_map, 32},         {Command::dma_unmap, 24},    {Command::device_get_info, 16},
      {Command::get_region_info, 32}, {Command::get_irq_info, 16}, {Command::set_irqs, 20},
      {Command::region_read, 16},     {Command::region_write, 16}, {Command::version, 4}};
  for (const auto& [c, bytes] : commands)
    for (std::size_t n = 0; n < bytes; n += 3)
      EXPECT_EQ(client.call(c, std::vector<u8>(n)), EINVAL) << static_cast<int>(c) << ' ' << n;
  EXPECT_EQ(client.call(Command::dma_map, DmaMap{.argsz = 31, .flags = 3, .address = 0x1000, .size = 0x1000}),
            EINVAL);
}

TEST_F(VfioUserHostile, AccessesOutsideRegions) {
  const u32 value = 1;
  for (const RegionAccess& a : {RegionAccess{0x4000, 0, 4},
                                {0x3ffd, 0, 4},
                                {~u64{0}, 0, 4},
                                {~u64{0} - 3, 0, 8},
                                {0, 0, 0x4001},
                                {0, 1, 4},
                                {0, 6, 1},
                                {0, 8, 1},
                                {0, 9, 4},
                                {0, ~0u, 4},
                                {4096, 7, 1},
                                {4095, 7, 2},
                                {0, 7, ~0u},
                                {0x1000, 4, 4},
                                {0x1000, 5, 4}}) {
    EXPECT_EQ(client.call(Command::region_read, a), EINVAL) << a.offset << ' ' << a.region << ' ' << a.count;
    EXPECT_EQ(client.call(Command::region_write, a, bytes_of(value)), EINVAL);
  }
  EXPECT_EQ(client.call(Command::region_write, RegionAccess{0, 0, 8}, bytes_of(value)), EINVAL)
      << "fewer bytes than it says";
  EXPECT_EQ(client.call(Command::region_write, RegionAccess{0, 0, 2}, bytes_of(value)), EINVAL);
  EXPECT_EQ(client.call(Command::region_read, RegionAccess{0, 7, 4096}), 0) << "all of configuration space";
}

TEST_F(VfioUserHostile, DescriptorsWhereNoneBelong) {
  const std::size_t before = open_files();
  const Descriptor file = memory_file(0x1000);
  const std::vector<int> two(2, file.get()), many(200, file.get());
  EXPECT_EQ(client.call(Command::device_get_info, DeviceInfo{}, {}, two), EINVAL);
  EXPECT_EQ(client.call(Command::dma_map, DmaMap{.flags = 3, .address = 0x1000, .size = 0x1000}, {}, two),
            EINVAL);
  EXPECT_EQ(client.call(Command::dma_map, DmaMap{.flags = 3, .address = 0x1000, .size = 0x1000}, {}, many),
            EINVAL);
  EXPECT_EQ(client.call(Command::set_irqs, IrqSet{.flags = 0x24, .index = 2, .count = 2}, {}, two), EINVAL)
      << "memory is no eventfd";
  EXPECT_EQ(client.call(Command::dma_unmap, DmaUnmap{.address = 0x1000, .size = 0x1000}, {}, two), ENOENT);
  EXPECT_GE(server.counts().unexpected_files, 2u + 1 + 199 + 2);
  EXPECT_TRUE(eventually([&] { return open_files() <= before + 1; })) << "all of them are closed";
}

TEST_F(VfioUserHostile, DescriptorsInEachPieceOfAMessage) {
  const std::size_t before = open_files();
  const auto whole = command(1, Command::region_read, bytes_of(RegionAccess{0, 7, 4}), std::vector<u8>(4000));
  const std::vector<int> many(200, client.fd());
  bool sent = true;
  for (std::size_t i = 0; i < whole.size() && sent; i += 64)
    sent = client.send(std::span(whole).subspan(i, std::min<std::size_t>(64, whole.size() - i)), many);
  EXPECT_TRUE(client.ended());
  EXPECT_EQ(server.counts().malformed, 1u);
  EXPECT_TRUE(eventually([&] { return open_files() <= before; }));
}

TEST_F(VfioUserHostile, AnswersThatNobodyWaitsFor) {
  for (const u16 c : {u16{1}, u16{11}, u16{12}, u16{99}})
    ASSERT_TRUE(client.send(reply({.id = 5, .command = c}, 0, std::vector<u8>(64))));
  EXPECT_EQ(client.call(Command::device_get_info, DeviceInfo{}), 0);
  EXPECT_EQ(server.counts().stray_replies, 4u);
}

TEST_F(VfioUserHostile, NothingIsAnsweredThatWantsNoAnswer) {
  const RegionAccess outside{0x9000, 0, 4};
  ASSERT_TRUE(client.send(command(1, Command::region_read, bytes_of(outside), {}, true)));
  ASSERT_TRUE(client.send(command(2, static_cast<Command>(77), {}, {}, true)));
  EXPECT_EQ(client.call(Command::device_get_info, DeviceInfo{}), 0) << "its own answer is the first";
  EXPECT_EQ(server.counts().refused, 2u);
}

TEST_F(VfioUserHostile, AClientThatNeverReads) {
  // The server stops to read him, and takes the next one once he is gone.
  ASSERT_EQ(fcntl(client.fd(), F_SETFL, O_NONBLOCK), 0);
  const auto ask = command(1, Command::region_read, bytes_of(RegionAccess{0, 7, 4096}));
  u64 taken = 0;
  for (; taken < 100'000 && client.send(ask); ++taken) {
  }
  EXPECT_LT(taken, 100'000u);
  EXPECT_TRUE(server.counts().connected);
}

TEST_F(VfioUserHostile, AFloodBehindACommandThatWaits) {
  device.hold = true;
  const u32 one = 1;
  ASSERT_TRUE(client.send(
      command(1, Command::region_write, bytes_of(RegionAccess{FakeDevice::kSlow, 0, 4}), bytes_of(one))));
  const auto posted =
      command(2, Command::region_write, bytes_of(RegionAccess{0x100, 0, 4}), bytes_of(one), true);
  bool sent = true;
  for (int i = 0; i < 20'000 && sent; ++i) sent = client.send(posted);
  EXPECT_TRUE(eventually([&] { return server.counts().malformed == 1; }));
  device.hold = false;
  EXPECT_TRUE(client.ended());
}

TEST_F(VfioUserHostile, AThousandConnections) {
  const std::size_t before = open_files();
  {
    std::vector<RawClient> all;
    for (int i = 0; i < 300; ++i) all.emplace_back(server.connect());
    EXPECT_EQ(client.call(Command::device_get_info, DeviceInfo{}), 0);
  }
  for (int i = 0; i < 700; ++i) RawClient(server.connect()).close();
  EXPECT_TRUE(eventually([&] { return open_files() <= before; }));
  EXPECT_EQ(client.call(Command::device_get_info, DeviceInfo{}), 0) << "the first one is still served";
}

TEST_F(VfioUserHostile, HalfAMessageAndNoMore) {
  const auto whole = command(1, Command::device_get_info, bytes_of(DeviceInfo{}));
  ASSERT_TRUE(client.send(std::span(whole).first(10)));
  client.close();
}

TEST_F(VfioUserHostile, AnyBytes) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 200; ++round) {
    RawClient one(server.connect());
    client.close();
    if (round % 2 == 0) {
      EXPECT_EQ(one.greet(), 0);
    }
    for (int i = 0; i < 20; ++i) {
      std::vector<u8> payload(random() % 80);
      for (u8& b : payload) b = static_cast<u8>(random() % 4 == 0 ? random() : random() % 8);
      auto bytes = command(static_cast<u16>(i), static_cast<Command>(random() % 20), payload);
      if (random() % 8 == 0) bytes[random() % bytes.size()] = static_cast<u8>(random());
      if (!one.send(bytes)) break;
    }
    one.close();
  }
  EXPECT_TRUE(eventually([&] { return server.counts().ranges == 0 && !server.counts().connected; }));
}

/// A blocking eventfd that is full: a write to it waits until somebody reads.
struct FullEventfd {
  FullEventfd() { fill(); }
  void fill() const {
    const u64 most = ~u64{0} - 1;
    (void)!::write(event.get(), &most, sizeof most);
  }
  void block(bool on) const { ASSERT_EQ(fcntl(event.get(), F_SETFL, on ? 0 : O_NONBLOCK), 0); }
  const Descriptor event{eventfd(0, EFD_CLOEXEC)};
};

/// Runs `raise` in a thread of its own. False if it waits: then the eventfd is read until it has ended.
template <class Fn>
bool ends_by_itself(const FullEventfd& full, Fn raise) {
  std::atomic<bool> done{false};
  std::thread raiser([&] {
    raise();
    done = true;
  });
  const bool good = eventually([&] { return done.load(); }, 5);
  while (!done) {
    pollfd p{full.event.get(), POLLIN, 0};
    u64 count = 0;
    if (poll(&p, 1, 1) == 1) (void)!::read(full.event.get(), &count, sizeof count);
  }
  raiser.join();
  return good;
}

TEST_F(VfioUserHostile, AnEventfdAtItsMaximumHoldsNothingUp) {
  const FullEventfd full;
  const int fd = full.event.get();
  ASSERT_EQ(client.call(Command::set_irqs, IrqSet{.flags = 0x24, .count = 1}, {}, std::span(&fd, 1)), 0);
  full.block(true);  // whatever the server has made of it
  EXPECT_TRUE(ends_by_itself(full, [&] { (*device.interrupts).raise(0); }));
  EXPECT_TRUE(ends_by_itself(
      full, [&] { EXPECT_EQ(client.call(Command::set_irqs, IrqSet{.flags = 0x21, .count = 1}), 0); }));
}

TEST_F(VfioUserHostile, AnEventfdThatChangesAllTheTimeHoldsNothingUp) {
  const FullEventfd full;
  const int fd = full.event.get();
  ASSERT_EQ(client.call(Command::region_write, RegionAccess{0x86, Region::config, 2}, bytes_of(u16{0x8000})),
            0);
  ASSERT_EQ(
      client.call(Command::set_irqs, IrqSet{.flags = 0x24, .index = 2, .count = 1}, {}, std::span(&fd, 1)),
      0);
  std::atomic<bool> stop{false};
  std::thread changer([&] {
    while (!stop) {
      full.block(false);
      full.fill();
      full.block(true);
    }
  });
  EXPECT_TRUE(ends_by_itself(full, [&] {
    for (int i = 0; i < 20'000; ++i) (*device.interrupts).raise(0);
  }));
  stop = true;
  changer.join();
  EXPECT_EQ(server.counts().interrupts_delivered, 20'000u);
}

/// More interrupts than the server has room for at a time, from several threads: none is lost.
TEST_F(VfioUserHostile, ManyInterruptsOfManyThreads) {
  const Descriptor event(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  constexpr u32 kThreads = 4, kEach = 5000;
  const std::vector<int> fds(kThreads, event.get());
  ASSERT_EQ(client.call(Command::region_write, RegionAccess{0x86, Region::config, 2}, bytes_of(u16{0x8000})),
            0);
  ASSERT_EQ(client.call(Command::set_irqs, IrqSet{.flags = 0x24, .index = 2, .count = kThreads}, {}, fds), 0);
  std::vector<std::thread> threads;
  for (u32 t = 0; t < kThreads; ++t)
    threads.emplace_back([this, t] {
      for (u32 i = 0; i < kEach; ++i) (*device.interrupts).raise(t);
    });
  for (auto& t : threads) t.join();
  u64 count = 0;
  ASSERT_EQ(::read(event.get(), &count, sizeof count), static_cast<ssize_t>(sizeof count));
  EXPECT_EQ(count, u64{kThreads} * kEach);
}

}  // namespace
}  // namespace doorbell::vfio_user
