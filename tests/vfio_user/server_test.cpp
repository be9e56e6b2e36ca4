// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The server with a device that only remembers: what each command does, and in which order.
#include "vfio_user/server.hpp"

#include <gtest/gtest.h>

#include <cerrno>

#include "fake_device.hpp"

namespace doorbell::vfio_user {
namespace {

using test::eventually;

struct VfioUserServer : testing::Test {
  FakeDevice device;
  Server server{device,
                {.log = nullptr, .answer_limit_ns = 20'000'000'000, .second_client_ns = 3'000'000'000}};
  RawClient client{server.connect()};
  u64 count(u64 ServerCounts::*which) const { return server.counts().*which; }
  int write(u64 offset, u32 value) {
    return client.call(Command::region_write, RegionAccess{offset, Region::bar0, 4}, bytes_of(value));
  }
  u32 read(u64 offset) {
    EXPECT_EQ(client.call(Command::region_read, RegionAccess{offset, Region::bar0, 4}), 0);
    return first_of<u32>(std::span(client.answer->payload).subspan(sizeof(RegionAccess))).value_or(0xdead);
  }
  u32 config(u32 offset) {
    EXPECT_EQ(client.call(Command::region_read, RegionAccess{offset, Region::config, 4}), 0);
    return first_of<u32>(std::span(client.answer->payload).subspan(sizeof(RegionAccess))).value_or(0xdead);
  }
  int set_config(u32 offset, u16 value) {
    return client.call(Command::region_write, RegionAccess{offset, Region::config, 2}, bytes_of(value));
  }
};

TEST_F(VfioUserServer, SaysWhatItIs) {
  ASSERT_EQ(client.greet(), 0);
  ASSERT_EQ(client.call(Command::device_get_info, DeviceInfo{}), 0);
  const auto info = first_of<DeviceInfo>(client.answer->payload);
  EXPECT_EQ(info->flags, 3u);
  EXPECT_EQ(info->regions, 9u);
  EXPECT_EQ(info->irqs, 5u);
  const u64 sizes[] = {0x4000, 0, 0, 0, 0x1000, 0x1000, 0, 0x1000, 0};
  for (u32 r = 0; r < kRegions; ++r) {
    ASSERT_EQ(client.call(Command::get_region_info, RegionInfo{.index = r}), 0);
    EXPECT_EQ(first_of<RegionInfo>(client.answer->payload)->size, sizes[r]) << r;
    EXPECT_TRUE(client.answer->files.empty()) << "without room for the capability there is no descriptor";
  }
  ASSERT_EQ(client.call(Command::get_region_info, RegionInfo{.argsz = 64, .index = 0}), 0);
  EXPECT_EQ(client.answer->payload.size(), 64u);
  ASSERT_EQ(client.answer->files.size(), 1u);
  const u32 counts[] = {1, 0, 65, 1, 1};
  for (u32 i = 0; i < kIrqs; ++i) {
    ASSERT_EQ(client.call(Command::get_irq_info, IrqInfo{.index = i}), 0);
    EXPECT_EQ(first_of<IrqInfo>(client.answer->payload)->count, counts[i]) << i;
  }
  EXPECT_EQ(client.call(Command::get_region_info, RegionInfo{.index = 9}), EINVAL);
  EXPECT_EQ(client.call(Command::get_irq_info, IrqInfo{.index = 5}), EINVAL);
}

TEST_F(VfioUserServer, TheFirstMessageIsTheVersion) {
  EXPECT_EQ(client.call(Command::device_get_info, DeviceInfo{}), EINVAL);
  EXPECT_TRUE(client.ended());
  RawClient next(server.connect());
  EXPECT_EQ(next.greet(), 0);
  EXPECT_EQ(next.greet(), EINVAL) << "once";
  EXPECT_EQ(next.call(Command::device_get_info, DeviceInfo{}), 0);
}

TEST_F(VfioUserServer, AnotherMajorVersionIsRefused) {
  EXPECT_EQ(client.call(Command::version, encode_version(1, 0, nullptr)), EINVAL);
  EXPECT_TRUE(client.ended());
}

TEST_F(VfioUserServer, MinorVersionsAreTheLowerOne) {
  EXPECT_EQ(client.call(Command::version, encode_version(0, 0, nullptr)), 0);
  EXPECT_EQ(client.answer->payload, encode_version(0, 0, nullptr));
}

TEST_F(VfioUserServer, CommandsAreDoneInTheirOrder) {
  ASSERT_EQ(client.greet(), 0);
  device.hold = true;
  const u32 one = 1, two = 2;
  // The first one waits for the device; those behind it wait for that one, posted ones too.
  const RegionAccess slow{FakeDevice::kSlow, Region::bar0, 4}, quick{0x100, Region::bar0, 4};
  ASSERT_TRUE(client.send(command(1, Command::region_write, bytes_of(slow), bytes_of(one))));
  ASSERT_TRUE(client.send(command(2, Command::region_write, bytes_of(quick), bytes_of(one), true)));
  ASSERT_TRUE(client.send(command(3, Command::region_write, bytes_of(quick), bytes_of(two))));
  ASSERT_TRUE(client.send(command(4, Command::region_read, bytes_of(quick))));
  EXPECT_TRUE(eventually([&] { return count(&ServerCounts::messages) == 5; }));
  EXPECT_EQ(device.writes, 0u);
  device.hold = false;
  for (const u16 id : {u16{1}, u16{3}, u16{4}}) {
    const auto got = client.next();
    ASSERT_TRUE(got);
    EXPECT_EQ(got->header.id, id);
    EXPECT_FALSE(got->header.failed());
    if (id != 4) continue;
    EXPECT_EQ(first_of<u32>(std::span(got->payload).subspan(16)), 2u);
  }
}

TEST_F(VfioUserServer, MessagesInPieces) {
  ASSERT_EQ(client.greet(), 0);
  const u32 value = 0xabcd;
  const auto whole =
      command(7, Command::region_write, bytes_of(RegionAccess{0x200, Region::bar0, 4}), bytes_of(value));
  for (std::size_t i = 0; i < whole.size(); ++i) ASSERT_TRUE(client.send(std::span(whole).subspan(i, 1)));
  ASSERT_TRUE(client.next());
  EXPECT_EQ(read(0x200), value);
  // Two in one write, too.
  auto twice = whole;
  twice.insert(twice.end(), whole.begin(), whole.end());
  ASSERT_TRUE(client.send(twice));
  EXPECT_TRUE(client.next());
  EXPECT_TRUE(client.next());
}

TEST_F(VfioUserServer, ADeviceResetAndAFunctionLevelReset) {
  ASSERT_EQ(client.greet(), 0);
  ASSERT_EQ(write(0x100, 5), 0);
  ASSERT_EQ(set_config(0x86, 0x8000), 0);
  EXPECT_EQ(config(0x84) >> 16, 0x8040u);
  ASSERT_EQ(client.call(Command::device_reset), 0);
  EXPECT_EQ(device.resets, 1u);
  EXPECT_EQ(read(0x100), 0u);
  EXPECT_EQ(config(0x84) >> 16, 0x0040u) << "MSI-X is off";
  ASSERT_EQ(set_config(0x04, 6), 0);
  ASSERT_EQ(write(0x100, 5), 0);
  ASSERT_EQ(set_config(0x50, 0x8000), 0);
  EXPECT_EQ(device.resets, 2u);
  EXPECT_EQ(read(0x100), 0u);
  EXPECT_EQ(config(0x50) & 0x8000, 0u);
  EXPECT_EQ(config(0x04) & 6, 0u);
}

TEST_F(VfioUserServer, ManyClientsInARow) {
  for (int i = 0; i < 200; ++i) {
    RawClient next(server.connect());
    client.close();
    ASSERT_EQ(next.greet(), 0) << i;
    const Descriptor file = memory_file(0x10000);
    const int fd = file.get();
    ASSERT_EQ(next.call(Command::dma_map, DmaMap{.flags = 3, .address = 0x10000, .size = 0x10000}, {},
                        std::span(&fd, 1)),
              0);
    next.close();
  }
  EXPECT_TRUE(eventually([&] { return !server.counts().connected && server.counts().ranges == 0; }));
  EXPECT_EQ(count(&ServerCounts::clients), 200u);
  EXPECT_EQ(count(&ServerCounts::files), 0u);
}

TEST_F(VfioUserServer, ASecondClientIsTurnedAway) {
  ASSERT_EQ(client.greet(), 0);
  RawClient second(server.connect());
  EXPECT_EQ(second.greet(), EBUSY);
  EXPECT_TRUE(second.ended());
  EXPECT_EQ(client.call(Command::device_get_info, DeviceInfo{}), 0) << "the first one goes on";
  EXPECT_EQ(count(&ServerCounts::turned_away), 1u);
  RawClient third(server.connect());
  ASSERT_TRUE(third.send(command(1, Command::version, encode_version(0, 1, nullptr))));
  client.close();
  const auto got = third.next();
  ASSERT_TRUE(got) << "a client that comes just before the first one goes";
  EXPECT_FALSE(got->header.failed());
}

TEST_F(VfioUserServer, WhatTheClientLeavesIsTakenDown) {
  ASSERT_EQ(client.greet(), 0);
  ASSERT_EQ(set_config(0x04, 0x406), 0);
  ASSERT_EQ(set_config(0x86, 0x8000), 0);
  const Descriptor event(eventfd(0, EFD_CLOEXEC));
  const int fd = event.get();
  const IrqSet connect{
      .flags = IrqSet::kEventfd | IrqSet::kTrigger, .index = Irq::msix, .start = 3, .count = 1};
  ASSERT_EQ(client.call(Command::set_irqs, connect, {}, std::span(&fd, 1)), 0);
  ASSERT_EQ(client.call(Command::dma_map, DmaMap{.flags = 3, .address = 0x10000, .size = 0x1000}), 0);
  EXPECT_EQ(server.counts().vectors, 1u);
  client.close();
  client = RawClient(server.connect());
  ASSERT_EQ(client.greet(), 0);
  EXPECT_EQ(config(0x04), 0x00100000u);
  EXPECT_EQ(config(0x84) >> 16, 0x0040u);
  EXPECT_EQ(server.counts().vectors, 0u);
  EXPECT_EQ(server.counts().ranges, 0u);
  EXPECT_GE(device.resets, 1u);
}

TEST_F(VfioUserServer, VectorsReachTheirEventfds) {
  ASSERT_EQ(client.greet(), 0);
  const Descriptor a(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), b(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  const int fds[] = {a.get(), b.get()};
  const auto value = [](const Descriptor& d) {
    u64 v = 0;
    return ::read(d.get(), &v, sizeof v) == sizeof v ? v : 0;
  };
  Interrupts& line = *device.interrupts;
  const u32 trigger = IrqSet::kEventfd | IrqSet::kTrigger;
  ASSERT_EQ(set_config(0x86, 0x8000), 0);
  line.raise(4);  // nothing is connected: it waits
  ASSERT_EQ(
      client.call(Command::set_irqs, IrqSet{.flags = trigger, .index = 2, .start = 3, .count = 2}, {}, fds),
      0);
  EXPECT_EQ(value(a), 0u);
  EXPECT_EQ(value(b), 1u);
  line.raise(3);
  EXPECT_EQ(value(a), 1u);
  ASSERT_EQ(set_config(0x86, 0xc000), 0);  // the function's mask
  line.raise(3);
  EXPECT_EQ(value(a), 0u);
  ASSERT_EQ(client.call(Command::region_read, RegionAccess{0, Region::bar5, 8}), 0);
  EXPECT_EQ(first_of<u64>(std::span(client.answer->payload).subspan(16)), u64{1} << 3);
  ASSERT_EQ(set_config(0x86, 0x8000), 0);
  EXPECT_EQ(value(a), 1u);
  // Looped back; disconnected; switched off.
  ASSERT_EQ(client.call(Command::set_irqs, IrqSet{.flags = 0x21, .index = 2, .start = 4, .count = 1}), 0);
  EXPECT_EQ(value(b), 1u);
  ASSERT_EQ(client.call(Command::set_irqs, IrqSet{.flags = trigger, .index = 2, .start = 4, .count = 1}), 0);
  line.raise(4);
  EXPECT_EQ(value(b), 0u);
  ASSERT_EQ(client.call(Command::set_irqs, IrqSet{.flags = 0x21, .index = 2}), 0);
  line.raise(3);
  EXPECT_EQ(value(a), 0u);
  line.raise(64);
  line.raise(65);  // there is none
  EXPECT_EQ(server.counts().vectors, 0u);
}

TEST_F(VfioUserServer, ThePinIsAssertedOnceUntilItsEnd) {
  ASSERT_EQ(client.greet(), 0);
  const Descriptor pin(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  const int fd = pin.get();
  const auto value = [&] {
    u64 v = 0;
    return ::read(pin.get(), &v, sizeof v) == sizeof v ? v : 0;
  };
  Interrupts& line = *device.interrupts;
  ASSERT_EQ(client.call(Command::set_irqs, IrqSet{.flags = 0x24, .count = 1}, {}, std::span(&fd, 1)), 0);
  line.raise(0);
  line.raise(1);
  EXPECT_EQ(value(), 1u);
  const u32 asked = device.again;
  ASSERT_EQ(client.call(Command::set_irqs, IrqSet{.flags = 0x11, .count = 1}), 0);
  EXPECT_GT(device.again, asked) << "the device says whether there is still a cause";
  line.raise(0);
  EXPECT_EQ(value(), 1u);
  ASSERT_EQ(set_config(0x04, 0x400), 0);  // INTx disable
  ASSERT_EQ(client.call(Command::set_irqs, IrqSet{.flags = 0x11, .count = 1}), 0);
  line.raise(0);
  EXPECT_EQ(value(), 0u);
}

TEST_F(VfioUserServer, MemoryByMessages) {
  ASSERT_EQ(client.greet(), 0);
  ASSERT_EQ(client.call(Command::dma_map, DmaMap{.flags = 3, .address = 0x10000, .size = 0x1000}), 0);
  SoftwareAddressSpace::View view(device.space());
  const auto t = view.part(0x10010, 8, Access::read);
  ASSERT_NE(t.remote, nullptr);
  u64 got = 0;
  bool good = false;
  std::thread asker([&] { good = t.remote->read(0x10010, &got, sizeof got, {}); });
  const auto asked = client.next();
  ASSERT_TRUE(asked);
  EXPECT_EQ(asked->header.command, static_cast<u16>(Command::dma_read));
  // A command of the client's comes before his answer.
  ASSERT_TRUE(client.send(command(77, Command::device_get_info, bytes_of(DeviceInfo{}))));
  const auto info = client.next();
  ASSERT_TRUE(info);
  EXPECT_EQ(info->header.id, 77u);
  const u64 value = 0x1122334455667788;
  ASSERT_TRUE(client.send(reply(asked->header, 0, asked->payload, bytes_of(value))));
  asker.join();
  EXPECT_TRUE(good);
  EXPECT_EQ(got, value);
  // He refuses; he answers something else; he goes.
  for (int what = 0; what < 3; ++what) {
    std::thread again([&] { good = t.remote->write(0x10020, &value, sizeof value, {}); });
    const auto wanted = client.next();
    ASSERT_TRUE(wanted);
    EXPECT_EQ(wanted->payload.size(), sizeof(DmaAccess) + sizeof value);
    const auto no = reply(wanted->header, EFAULT),
               other = reply(wanted->header, 0, bytes_of(DmaAccess{1, 2}));
    if (what < 2) {
      EXPECT_TRUE(client.send(what == 0 ? no : other));
    }
    if (what == 2) client.close();
    again.join();
    EXPECT_FALSE(good) << what;
  }
  EXPECT_EQ(server.counts().dma_refused, 3u);
}

TEST(VfioUserServerAlone, AClientThatAnswersNothingIsDisconnected) {
  FakeDevice device;
  Server server(device, {.log = nullptr, .answer_limit_ns = 50'000'000});
  RawClient client(server.connect());
  ASSERT_EQ(client.greet(), 0);
  ASSERT_EQ(client.call(Command::dma_map, DmaMap{.flags = 3, .address = 0x10000, .size = 0x1000}), 0);
  SoftwareAddressSpace::View view(device.space());
  u64 got = 0;
  EXPECT_FALSE(view.part(0x10000, 8, Access::read).remote->read(0x10000, &got, sizeof got, {}));
  EXPECT_TRUE(client.ended());
  EXPECT_EQ(server.counts().unanswered, 1u);
}

TEST(VfioUserServerAlone, WithoutAMappablePage) {
  FakeDevice device(false);
  Server server(device);
  RawClient client(server.connect());
  ASSERT_EQ(client.greet(), 0);
  ASSERT_EQ(client.call(Command::get_region_info, RegionInfo{.argsz = 64, .index = 0}), 0);
  EXPECT_EQ(first_of<RegionInfo>(client.answer->payload)->flags, 3u);
  EXPECT_TRUE(client.answer->files.empty());
}

}  // namespace
}  // namespace doorbell::vfio_user
