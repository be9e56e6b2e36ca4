// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Memory that doorbell's NVMe driver makes known to a server: to its own, and to others such as SPDK's
// target.
#include "nvme/vfio_user.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include "fake_device.hpp"
#include "nvme/identity.hpp"

namespace doorbell::vfio_user {
namespace {

using nvme::VfioUserController;

/// The driver on a device that has no queues.
struct Driven {
  explicit Driven(u16 vendor, const std::string& keys = "") : device(true, vendor), server(device) {
    char name[] = "/tmp/doorbell-vfio-user-XXXXXX";
    folder = mkdtemp(name);
    server.listen(folder + "/s");
    driver.emplace(nvme::parse_vfio_user_spec("vfio-user:" + folder + "/s" + keys), "served");
  }
  ~Driven() {
    driver.reset();
    std::filesystem::remove_all(folder);
  }
  Mapped map(u64 bytes, Access access) { return {driver->address_space(), Place::pageable, bytes, access}; }
  bool reaches(Iova at, u64 bytes, Access access) { return view.part(at, bytes, access).bytes == bytes; }
  u64 ranges() { return server.counts().ranges; }

  FakeDevice device;
  Server server;
  SoftwareAddressSpace::View view{device.space()};
  std::string folder;
  std::optional<VfioUserController> driver;
};

constexpr u16 kOther = 0x4e58;

TEST(VfioUserNvmeClient, OurServerGetsWhatIsNamed) {
  Driven d(nvme::kModelVendor);
  const Mapped in = d.map(4096, Access::write), out = d.map(4096, Access::read);
  EXPECT_EQ(d.ranges(), 2u);
  EXPECT_TRUE(d.reaches(out.iova(), 4096, Access::read));
  EXPECT_FALSE(d.reaches(out.iova(), 4, Access::write));
  EXPECT_FALSE(d.reaches(in.iova(), 4, Access::read));
  EXPECT_FALSE(d.reaches(out.iova() + 4096, 4, Access::read)) << "behind it is nothing";
}

/// SPDK 26.05 writes zeros to the admin submission queue, and dies where it must only read it.
TEST(VfioUserNvmeClient, OtherServersMayReadAndWrite) {
  Driven d(kOther);
  for (const Access access : {Access::read, Access::write}) {
    const Mapped m = d.map(4096, access);
    EXPECT_TRUE(d.reaches(m.iova(), 4096, Access::read_write));
  }
}

/// libvfio-user takes 64 ranges, and a queue pair has four regions.
TEST(VfioUserNvmeClient, ManyRegionsAreFewRangesOfOtherServers) {
  Driven d(kOther);
  std::vector<Mapped> all;
  for (u32 i = 0; i < 500; ++i) {
    all.push_back(d.map(4096 * (1 + i % 5), Access::read_write));
    std::memcpy(all.back().region().host(), &i, sizeof i);
  }
  EXPECT_EQ(d.ranges(), 1u);
  all.push_back(d.map(20 << 20, Access::read_write));
  EXPECT_EQ(d.ranges(), 2u);
  EXPECT_TRUE(d.reaches(all.back().iova(), 20 << 20, Access::read_write)) << "one piece, as queues need";
  for (u32 i = 0; i < 500; ++i) {
    const u8* const there = d.view.find(all[i].iova(), all[i].region().bytes(), Access::read_write).address;
    ASSERT_NE(there, nullptr) << i;
    u32 value = 0;
    std::memcpy(&value, there, sizeof value);
    ASSERT_EQ(value, i);
  }
  all.erase(all.begin() + 1, all.end());
  EXPECT_EQ(d.ranges(), 1u);
  all.clear();
  EXPECT_EQ(d.ranges(), 0u);
}

/// Freed pages that are taken again may be others than those that a device has pinned.
TEST(VfioUserNvmeClient, PagesThatAreTakenAgainAreMappedAgain) {
  Driven d(kOther);
  const Mapped stays = d.map(4096, Access::read_write);
  const Iova first = [&] { return d.map(4096, Access::read_write).iova(); }();
  EXPECT_EQ(d.ranges(), 1u);
  const Mapped again = d.map(4096, Access::read_write);
  EXPECT_EQ(d.ranges(), 2u);
  EXPECT_NE(again.iova(), first);
  EXPECT_TRUE(d.reaches(again.iova(), 4096, Access::read_write));
  EXPECT_TRUE(d.reaches(stays.iova(), 4096, Access::read_write));
}

/// A server may ask for memory, and wait for the answer, before it answers a map.
TEST(VfioUserNvmeClient, MemoryIsAskedForWhileMoreIsMapped) {
  for (const u16 vendor : {nvme::kModelVendor, kOther}) {
    Driven d(vendor, ",memory=message");
    const Mapped asked_for = d.map(4096, Access::read_write);
    const auto remote = d.view.part(asked_for.iova(), 4096, Access::read).remote;
    ASSERT_NE(remote, nullptr);
    std::atomic<bool> stop{false};
    std::atomic<u32> reads{0}, bad{0};
    std::thread asker([&] {
      std::array<u8, 4096> got;
      while (!stop.load()) {
        bad += remote->read(asked_for.iova(), got.data(), got.size(), {}) ? 0u : 1u;
        ++reads;
      }
    });
    EXPECT_TRUE(test::eventually([&] { return reads.load() > 0; }));
    for (int i = 0; i < 500; ++i) {
      const Mapped m = d.map(32 << 20, Access::read_write);
      EXPECT_TRUE(d.reaches(m.iova(), 4096, Access::read));
    }
    stop.store(true);
    asker.join();
    EXPECT_EQ(bad.load(), 0u);
    EXPECT_FALSE(d.driver->client().gone());
  }
}

}  // namespace
}  // namespace doorbell::vfio_user
