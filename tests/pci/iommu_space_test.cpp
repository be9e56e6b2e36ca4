// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Which IOVAs are handed out, with a simulated IOMMU.
#include <doorbell/gpu.hpp>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>

#include "idle_gpu.hpp"
#include "pci/iommu_space.hpp"
#include "pci_machine.hpp"

namespace doorbell::pci {
namespace {

constexpr u64 kMiB = u64{1} << 20;
constexpr u64 kGiB = u64{1} << 30;

class FakeIommu final : public IommuMapper {
 public:
  std::vector<IovaRange> usable() override { return ranges; }
  int map(Iova iova, const void* host, u64 bytes, Access access) override {
    if (error != 0) return error;
    last_host = host;
    last_access = access;
    mapped[iova] = bytes;
    return 0;
  }
  int map_dmabuf(Iova iova, int fd, u64 bytes, Access access) override {
    EXPECT_GE(fd, 0);
    return map(iova, nullptr, bytes, access);
  }
  void unmap(Iova iova, u64 bytes) noexcept override {
    EXPECT_EQ(mapped[iova], bytes);
    mapped.erase(iova);
  }

  std::vector<IovaRange> ranges = {{0, 0xfedfffff}, {0xfef00000, (u64{1} << 39) - 1}};
  std::map<Iova, u64> mapped;
  const void* last_host = nullptr;
  Access last_access = Access::read;
  int error = 0;
};

/// A GPU that registers host memory and exports its own; no more of it is needed here.
class FakeGpu final : public IdleGpu {
 public:
  void* allocate(u64 bytes) override { return std::calloc(1, bytes); }
  void* allocate_pinned(u64) override { throw Error("the GPU's own pinned memory", "nobody may ask for it"); }
  void free_pinned(void*) noexcept override {}
  void* register_host(void* p, u64, bool) override {
    ++registered;
    return p;
  }
  void unregister_host(void*) noexcept override { --registered; }
  int export_dmabuf(void*, u64) override {
    if (!exports) throw Error("export", "no dma-buf in this driver");
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
  }

  int registered = 0;
  bool exports = true;
};

/// A GPU with addresses and nothing behind them.
class NoMemory final : public IdleGpu {
 public:
  void* allocate(u64 bytes) override {
    void* const p = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    sizes[p] = bytes;
    return p;
  }
  void free(void* p) noexcept override { munmap(p, sizes.find(p)->second); }
  int export_dmabuf(void*, u64) override { return open("/dev/null", O_RDONLY | O_CLOEXEC); }

  std::map<void*, u64> sizes;
};

struct Iommu : ::testing::Test {
  FakeIommu iommu;
  IommuSpace space{iommu, "0000:01:00.0"};
};

TEST_F(Iommu, UpwardsFromFourGiBWithGaps) {
  const Region a(Place::pageable, 4096), b(Place::pageable, 3 * kMiB), c(Place::pageable, 4096);
  EXPECT_EQ(space.map(a, Access::read), 4 * kGiB);
  EXPECT_EQ(iommu.last_access, Access::read);
  EXPECT_EQ(iommu.last_host, a.host());
  const Iova at_b = space.map(b, Access::write);
  EXPECT_EQ(at_b, 4 * kGiB + 4 * kMiB);
  EXPECT_GE(space.map(c, Access::read_write), at_b + b.bytes() + 2 * kMiB);
  EXPECT_EQ(space.mapped_bytes(), a.bytes() + b.bytes() + c.bytes());
}

TEST_F(Iommu, UnmapGivesBackAndIsNotReusedAtOnce) {
  const Region a(Place::pageable, 4096);
  const Iova first = space.map(a, Access::read);
  space.unmap(first);
  EXPECT_TRUE(iommu.mapped.empty());
  EXPECT_EQ(space.mapped_bytes(), 0u);
  EXPECT_GT(space.map(a, Access::read), first);
  space.unmap(first);  // not mapped any more: nothing happens
  EXPECT_EQ(iommu.mapped.size(), 1u);
}

TEST_F(Iommu, SkipsWhatTheKernelReserves) {
  iommu.ranges = {{0, 4 * kGiB + 3 * kMiB}, {4 * kGiB + 5 * kMiB, 8 * kGiB}};
  const Region a(Place::pageable, 4 * kMiB);
  EXPECT_EQ(space.map(a, Access::read), 4 * kGiB + 6 * kMiB);
}

TEST_F(Iommu, AnIommuBelowFourGiB) {
  iommu.ranges = {{0, kGiB - 1}};
  const Region a(Place::pageable, 4096);
  EXPECT_EQ(space.map(a, Access::read), 2 * kMiB);  // never 0
}

TEST_F(Iommu, ComesRoundToWhatWasGivenBack) {
  iommu.ranges = {{4 * kGiB, 4 * kGiB + 16 * kMiB - 1}};
  const Region a(Place::pageable, 4096);
  std::vector<Iova> held;
  for (int i = 0; i < 4; ++i) held.push_back(space.map(a, Access::read));
  EXPECT_EQ(held.back(), 4 * kGiB + 12 * kMiB);
  EXPECT_TRUE(
      has(refusal([&] { (void)space.map(a, Access::read); }), "no room: 16384 bytes are mapped in 4 ranges"));
  space.unmap(held[1]);
  EXPECT_EQ(space.map(a, Access::read), held[1]);
}

TEST_F(Iommu, LastByteOfTheWidth) {
  iommu.ranges = {{4 * kGiB, ~u64{0}}};
  const Region a(Place::pageable, 4096);
  EXPECT_EQ(space.map(a, Access::read), 4 * kGiB);
  iommu.ranges = {{~u64{0} - 2 * kMiB + 1, ~u64{0}}};
  EXPECT_EQ(space.map(a, Access::read), ~u64{0} - 2 * kMiB + 1);
}

/// A range is handed out where all of the region fits, and only there.
TEST_F(Iommu, FitsToTheByteAndNoFurther) {
  const Region a(Place::pageable, 3 * kMiB);
  iommu.ranges = {{4 * kGiB, 4 * kGiB + a.bytes() - 2}, {5 * kGiB, 5 * kGiB + a.bytes() - 1}};
  EXPECT_EQ(space.map(a, Access::read), 5 * kGiB);
  EXPECT_TRUE(has(refusal([&] { (void)space.map(a, Access::read); }), "no room"));
}

/// Between two huge pages no IOVA is aligned; what follows such a range is somebody else's.
TEST_F(Iommu, ARangeWithoutAHugePage) {
  const Region a(Place::pageable, 4096);
  iommu.ranges = {{4 * kGiB + kMiB, 4 * kGiB + 2 * kMiB - 1}, {6 * kGiB + 1, 6 * kGiB + 2 * kMiB - 1}};
  EXPECT_TRUE(has(refusal([&] { (void)space.map(a, Access::read); }), "no room"));
  iommu.ranges.push_back({7 * kGiB + 1, 7 * kGiB + 2 * kMiB + 4095});
  EXPECT_EQ(space.map(a, Access::read), 7 * kGiB + 2 * kMiB);
}

/// Where the next huge page would begin behind the last IOVA there is.
TEST_F(Iommu, ARangeThatEndsWithTheWidth) {
  const Region a(Place::pageable, 4096);
  iommu.ranges = {{~u64{0} - kMiB + 1, ~u64{0}}};
  EXPECT_TRUE(has(refusal([&] { (void)space.map(a, Access::read); }), "no room"));
}

/// The gap behind the last mapping reaches beyond the width: what lies there is still in the way.
TEST_F(Iommu, TheLastPlaceIsTakenOnce) {
  const Region a(Place::pageable, 4096);
  const Iova last = ~u64{0} - 2 * kMiB + 1;
  iommu.ranges = {{last, ~u64{0}}};
  EXPECT_EQ(space.map(a, Access::read), last);
  EXPECT_TRUE(has(refusal([&] { (void)space.map(a, Access::read); }), "no room"));
  EXPECT_EQ(iommu.mapped.size(), 1u);
  space.unmap(last);
  EXPECT_EQ(space.map(a, Access::read), last);
}

/// Up to the last IOVA there is, and then from the bottom again: not from 0.
TEST_F(Iommu, ComesRoundFromTheEndOfTheWidth) {
  const Region a(Place::pageable, 2 * kMiB);
  iommu.ranges = {{0, 8 * kMiB - 1}, {~u64{0} - 4 * kMiB + 1, ~u64{0}}};
  const Iova first = space.map(a, Access::read);
  EXPECT_EQ(first, ~u64{0} - 4 * kMiB + 1);
  EXPECT_EQ(space.map(a, Access::read), 2 * kMiB);
}

TEST_F(Iommu, LargeRegionsBeginAtALargerPage) {
  iommu.ranges = {{4 * kGiB + 2 * kMiB, 16 * kGiB}};
  const Region small(Place::pageable, 4096);
  EXPECT_EQ(space.map(small, Access::read), 4 * kGiB + 2 * kMiB);
  const auto gpu = std::make_shared<NoMemory>();
  IommuSpace with_gpu(iommu, "0000:01:00.0", gpu);
  const Region below = with_gpu.allocate(Place::gpu, kGiB - 65536, gpu);
  EXPECT_EQ(with_gpu.map(below, Access::read), 4 * kGiB + 2 * kMiB);
  const Region large = with_gpu.allocate(Place::gpu, kGiB, gpu);
  EXPECT_EQ(with_gpu.map(large, Access::read), 6 * kGiB);
}

TEST_F(Iommu, EveryPageIsItsOwnBeforeItIsMapped) {
  // The kernel would otherwise pin the shared page of zeros for memory that a device may only read.
  const Region a = space.allocate(Place::pinned, 3 * kMiB, nullptr);
  (void)space.map(a, Access::read);
  std::vector<unsigned char> resident(a.bytes() / 4096);
  ASSERT_EQ(mincore(a.host(), a.bytes(), resident.data()), 0);
  for (const unsigned char page : resident) EXPECT_EQ(page & 1, 1);
}

TEST_F(Iommu, KeepsContents) {
  Region a(Place::pageable, 8192);
  std::memset(a.host(), 0x5a, a.bytes());
  (void)space.map(a, Access::read);
  for (u64 i = 0; i < a.bytes(); ++i) ASSERT_EQ(a.host()[i], 0x5a);
}

TEST_F(Iommu, AllocatesLargeMemoryAtHugePages) {
  const Region large = space.allocate(Place::pinned, 5 * kMiB, nullptr);
  EXPECT_EQ(reinterpret_cast<u64>(large.host()) % (2 * kMiB), 0u);
  EXPECT_EQ(large.bytes(), 5 * kMiB);
  EXPECT_EQ(large.place(), Place::pinned);
  EXPECT_EQ(large.host()[5 * kMiB - 1], 0);
  EXPECT_EQ(space.allocate(Place::pinned, 1, nullptr).bytes(), 4096u);
  EXPECT_TRUE(has(refusal([&] { (void)space.allocate(Place::pinned, 0, nullptr); }), "a region of 0 bytes"));
}

TEST_F(Iommu, ErrorsSayWhatToDo) {
  const Region a(Place::pageable, 4096);
  const auto why = [&](int error) {
    iommu.error = error;
    return refusal([&] { (void)space.map(a, Access::read); });
  };
  EXPECT_TRUE(has(why(ENOMEM), "ulimit -l"));
  EXPECT_TRUE(has(why(ENOMEM), "0000:01:00.0: mapping 4096 bytes of pageable memory: it passes the limit"));
  EXPECT_TRUE(has(why(ENOSPC), "dma_entry_limit"));
  EXPECT_TRUE(has(why(EFAULT), "cannot pin"));
  EXPECT_TRUE(has(why(EINVAL), "Invalid argument"));
  iommu.error = 0;
  EXPECT_EQ(space.map(a, Access::read), 4 * kGiB);  // a refusal uses nothing up
}

TEST_F(Iommu, HostMemoryIsRegisteredWithTheGpu) {
  const auto gpu = std::make_shared<FakeGpu>();
  {
    const Region a = space.allocate(Place::pageable, 4096, gpu);
    const Region b = space.allocate(Place::pinned, 4096, gpu);
    EXPECT_EQ(gpu->registered, 2);
    EXPECT_EQ(a.device(), a.host());
    EXPECT_EQ(space.map(b, Access::read), 4 * kGiB);
  }
  EXPECT_EQ(gpu->registered, 0);
}

TEST_F(Iommu, GpuMemory) {
  const auto gpu = std::make_shared<FakeGpu>();
  IommuSpace with_gpu(iommu, "0000:01:00.0", gpu);
  const Region a = with_gpu.allocate(Place::gpu, 65536, gpu);
  EXPECT_EQ(with_gpu.map(a, Access::read_write), 4 * kGiB);
  const auto why = [&](int error) {
    iommu.error = error;
    return refusal([&] { (void)with_gpu.map(a, Access::read); });
  };
  EXPECT_TRUE(has(why(ENOSYS), "interface=iommufd"));
  EXPECT_TRUE(has(why(ENOTTY), "maps no files"));
  EXPECT_TRUE(has(why(EOPNOTSUPP), "the GPU driver exports it, but this kernel's iommufd does not take it"));
  gpu->exports = false;
  EXPECT_TRUE(has(why(0), "no dma-buf in this driver"));
  EXPECT_TRUE(has(refusal([&] { (void)space.map(a, Access::read); }), "no GPU is open"));
}

TEST_F(Iommu, EmptyRegion) {
  EXPECT_TRUE(has(refusal([&] { (void)space.map(Region(), Access::read); }), "it is empty"));
}

}  // namespace
}  // namespace doorbell::pci
