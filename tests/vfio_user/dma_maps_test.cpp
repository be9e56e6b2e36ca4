// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The memory that a client lets the device reach: right ranges, side by side too, and what is none.
#include "vfio_user/dma_maps.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>

#include "fake_device.hpp"
#include "model/dma.hpp"

namespace doorbell::vfio_user {
namespace {

class Bytes final : public RemoteMemory {
 public:
  bool read(Iova from, void* to, u64 bytes, const std::function<void()>&) override {
    std::memset(to, static_cast<int>(from >> 12 & 0xff), bytes);
    return true;
  }
  bool write(Iova, const void*, u64 bytes, const std::function<void()>&) override {
    written += bytes;
    return true;
  }
  u64 written = 0;
};

struct DmaMapsTest : testing::Test {
  SoftwareAddressSpace space;
  Bytes remote;
  DmaMaps maps{space, remote};
  Descriptor file = memory_file(0x100000);
  model::DmaEngine dma{space, nullptr, 0};
  u8* memory = static_cast<u8*>(mmap(nullptr, 0x100000, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0));
  ~DmaMapsTest() override { munmap(memory, 0x100000); }

  int map(u64 address, u64 size, u64 offset = 0, u32 flags = 3) {
    return maps.map({.flags = flags, .offset = offset, .address = address, .size = size}, file.get(), {});
  }
  int map_remote(u64 address, u64 size) {
    return maps.map({.flags = 3, .address = address, .size = size}, -1, {});
  }
  int unmap(u64 address, u64 size, u32 flags = 0) {
    return maps.unmap({.flags = flags, .address = address, .size = size});
  }
};

TEST_F(DmaMapsTest, AnAccessGoesOverRangesSideBySide) {
  // Pages of one file in reverse, as an IOMMU scatters them, and one that only messages reach.
  for (u64 p = 0; p < 4; ++p) ASSERT_EQ(map(0x10000 + p * 0x1000, 0x1000, (3 - p) * 0x1000), 0);
  ASSERT_EQ(map_remote(0x14000, 0x1000), 0);
  for (u64 i = 0; i < 0x4000; ++i) memory[i] = static_cast<u8>(i >> 12);
  std::vector<u8> got(0x5000);
  ASSERT_TRUE(dma.fetch(0x10000, got.data(), got.size()));
  for (u64 p = 0; p < 4; ++p) EXPECT_EQ(got[p * 0x1000 + 77], 3 - p);
  EXPECT_EQ(got[0x4000], 0x14);
  EXPECT_TRUE(dma.reachable(0x10000, 0x5000, Access::write));
  EXPECT_EQ(dma.host(0x10000, 0x2000, Access::read), nullptr) << "not in one piece";
  EXPECT_NE(dma.host(0x13ff0, 0x10, Access::read), nullptr);
  EXPECT_EQ(dma.host(0x14000, 0x10, Access::read), nullptr);
  const u64 faults = dma.faults();
  EXPECT_FALSE(dma.fetch(0x10000, got.data(), 0x5001));
  EXPECT_FALSE(dma.reachable(0x15000, 1, Access::read));
  EXPECT_EQ(dma.faults(), faults + 2);
  std::vector<u8> put(0x2000, 9);
  ASSERT_TRUE(dma.deliver(0x13000, put.data(), put.size()));
  EXPECT_EQ(memory[5], 9);
  EXPECT_EQ(remote.written, 0x1000u);
  EXPECT_EQ(maps.files(), 1u) << "one file is mapped once";
}

TEST_F(DmaMapsTest, NeighboursOfOneFileAreOnePiece) {
  ASSERT_EQ(map(0x10000, 0x1000, 0x4000), 0);
  ASSERT_EQ(map(0x11000, 0x3000, 0x5000), 0);
  u8* const at = dma.host(0x10000, 0x4000, Access::read);
  ASSERT_NE(at, nullptr);
  memory[0x7fff] = 0x42;
  EXPECT_EQ(at[0x3fff], 0x42);
}

TEST_F(DmaMapsTest, RangesThatAreNone) {
  EXPECT_EQ(map(0x10000, 0), EINVAL);
  EXPECT_EQ(map(0x10000, 0x800), EINVAL);
  EXPECT_EQ(map(0x10800, 0x1000), EINVAL);
  EXPECT_EQ(map(0x10000, 0x1000, 0x800), EINVAL);
  EXPECT_EQ(map(~u64{0} - 0xfff, 0x1000), EINVAL) << "up to 2^64";
  EXPECT_EQ(map(~u64{0} - 0xfff, 0x2000), EINVAL) << "beyond it";
  EXPECT_EQ(map(0x10000, ~u64{0} - 0xfff), EINVAL);
  EXPECT_EQ(map(0x10000, 0x1000, 0x100000), EINVAL) << "behind the file's end";
  EXPECT_EQ(map(0x10000, 0x101000), EINVAL);
  EXPECT_EQ(map(0x10000, 0x1000, ~u64{0} - 0xfff), EINVAL);
  EXPECT_EQ(map(0x10000, 0x1000, 0, 0), EINVAL) << "neither readable nor writeable";
  EXPECT_EQ(map(0x10000, 0x1000, 0, 0x13), EINVAL);
  EXPECT_EQ(maps.ranges(), 0u);
}

TEST_F(DmaMapsTest, OverlapsAndRepeats) {
  ASSERT_EQ(map(0x10000, 0x4000), 0);
  EXPECT_EQ(map(0x10000, 0x4000), 0) << "the same again";
  EXPECT_EQ(map(0x10000, 0x4000, 0x1000), EEXIST);
  EXPECT_EQ(map(0x10000, 0x4000, 0, 1), EEXIST);
  EXPECT_EQ(map(0x10000, 0x2000), EEXIST);
  EXPECT_EQ(map(0x12000, 0x4000), EEXIST);
  EXPECT_EQ(map(0xf000, 0x2000), EEXIST);
  EXPECT_EQ(map(0xf000, 0x10000), EEXIST);
  EXPECT_EQ(map_remote(0x13000, 0x1000), EEXIST);
  EXPECT_EQ(map(0xf000, 0x1000), 0);
  EXPECT_EQ(map(0x14000, 0x1000), 0);
  EXPECT_EQ(maps.ranges(), 3u);
}

TEST_F(DmaMapsTest, UnmappingTakesWholeRanges) {
  ASSERT_EQ(map(0x10000, 0x2000), 0);
  ASSERT_EQ(map(0x12000, 0x2000), 0);
  ASSERT_EQ(map_remote(0x20000, 0x1000), 0);
  EXPECT_EQ(unmap(0x10000, 0x1000), ENOENT);
  EXPECT_EQ(unmap(0x11000, 0x1000), ENOENT);
  EXPECT_EQ(unmap(0x11000, 0x3000), ENOENT);
  EXPECT_EQ(unmap(0x30000, 0x1000), ENOENT);
  EXPECT_EQ(unmap(0x10000, 0), EINVAL);
  EXPECT_EQ(unmap(0x10000, ~u64{0}), EINVAL);
  EXPECT_EQ(unmap(0x10000, 0x2000, DmaUnmap::kAll), EINVAL);
  EXPECT_EQ(unmap(0x10000, 0x2000, DmaUnmap::kDirtyBitmap), EINVAL);
  EXPECT_TRUE(maps.is_here({.address = 0x10000, .size = 0x2000}));
  EXPECT_FALSE(maps.is_here({.address = 0x20000, .size = 0x1000}));
  EXPECT_EQ(unmap(0x10000, 0x4000), 0) << "two at once";
  EXPECT_FALSE(dma.reachable(0x10000, 1, Access::read));
  EXPECT_EQ(unmap(0, 0, DmaUnmap::kAll), 0);
  EXPECT_EQ(maps.ranges(), 0u);
  EXPECT_EQ(maps.remote_ranges(), 0u);
}

TEST_F(DmaMapsTest, PermissionsAreKept) {
  ASSERT_EQ(map(0x10000, 0x1000, 0, DmaMap::kReadable), 0);
  EXPECT_TRUE(dma.reachable(0x10000, 8, Access::read));
  EXPECT_FALSE(dma.reachable(0x10000, 8, Access::write));
  const Descriptor only(::open(("/proc/self/fd/" + std::to_string(file.get())).c_str(), O_RDONLY));
  EXPECT_EQ(maps.map({.flags = 3, .address = 0x20000, .size = 0x1000}, only.get(), {}), EACCES);
  EXPECT_EQ(maps.map({.flags = 1, .address = 0x20000, .size = 0x1000}, only.get(), {}), 0);
}

TEST_F(DmaMapsTest, FilesThatAreNone) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const Descriptor in(ends[0]), out(ends[1]), null(::open("/dev/null", O_RDWR)),
      folder(::open("/", O_RDONLY)), event(eventfd(0, 0));
  for (const int fd : {in.get(), out.get(), null.get(), folder.get(), event.get()})
    EXPECT_EQ(maps.map({.flags = 3, .address = 0x20000, .size = 0x1000}, fd, {}), EINVAL);
  const Descriptor empty = memory_file(0);
  EXPECT_EQ(maps.map({.flags = 3, .address = 0x20000, .size = 0x1000}, empty.get(), {}), EINVAL);
}

TEST_F(DmaMapsTest, OwnRegistersAreNotReached) {
  const OwnRegisters own{0xfebd0000, 0x4000};
  EXPECT_EQ(maps.map({.flags = 3, .address = 0xfebd1000, .size = 0x1000}, -1, own), 0);
  EXPECT_FALSE(dma.reachable(0xfebd1000, 4, Access::write));
  EXPECT_EQ(maps.remote_ranges(), 0u);
  EXPECT_EQ(unmap(0xfebd1000, 0x1000), 0);
}

TEST_F(DmaMapsTest, AFileThatShrinksUnderAMapping) {
  ASSERT_EQ(map(0x10000, 0x100000), 0);
  ASSERT_EQ(ftruncate(file.get(), 0x1000), 0);
  u64 value = 7;
  EXPECT_TRUE(dma.fetch(0x10000 + 0x80000, &value, sizeof value));
  EXPECT_EQ(value, 0u) << "zeros in place of a signal";
  EXPECT_EQ(maps.files_lost(), 1u);
  maps.forget_all();
  EXPECT_EQ(maps.files_lost(), 1u);
}

TEST_F(DmaMapsTest, AFileThatHasGrown) {
  ASSERT_EQ(map(0x10000, 0x1000), 0);
  ASSERT_EQ(ftruncate(file.get(), 0x200000), 0);
  EXPECT_EQ(map(0x200000, 0x100000, 0x100000), 0);
  EXPECT_TRUE(dma.reachable(0x2fffff, 1, Access::write));
  EXPECT_TRUE(dma.reachable(0x10000, 1, Access::write));
}

}  // namespace
}  // namespace doorbell::vfio_user
