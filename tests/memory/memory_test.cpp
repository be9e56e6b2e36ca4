// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Regions and the software address space: ownership, bounds, permissions, gaps, and lookups while the
// map changes.

#include <doorbell/error.hpp>
#include <doorbell/region.hpp>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <fstream>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "memory/software_address_space.hpp"
#include "memory/stream_copy.hpp"

namespace doorbell {
namespace {

TEST(Region, IsZeroedRoundedUpAndOwned) {
  Region r(Place::pageable, 5000);
  EXPECT_EQ(r.bytes(), 8192u);
  ASSERT_NE(r.host(), nullptr);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(r.host()) % 4096, 0u);
  EXPECT_EQ(r.device(), nullptr);
  for (u64 i = 0; i < r.bytes(); ++i) ASSERT_EQ(r.host()[i], 0);
  u8* const at = r.host();
  Region moved(std::move(r));
  EXPECT_EQ(moved.host(), at);
  EXPECT_EQ(r.host(), nullptr);  // NOLINT: the moved-from state is the subject
  EXPECT_EQ(r.bytes(), 0u);
  Region target(Place::pageable, 4096);
  target = std::move(moved);
  EXPECT_EQ(target.host(), at);
  EXPECT_EQ(target.bytes(), 8192u);
  Region& alias = target;
  target = std::move(alias);  // to itself: nothing is lost
  EXPECT_EQ(target.host(), at);
}

TEST(Region, CopiesAreBoundsChecked) {
  Region r(Place::pageable, 4096);
  u8 out[16] = {};
  r.write(4080, "0123456789abcdef", 16);
  r.read(4080, out, 16);
  EXPECT_EQ(std::memcmp(out, "0123456789abcdef", 16), 0);
  EXPECT_NO_THROW(r.write(4096, out, 0));
  EXPECT_THROW(r.write(4081, out, 16), Error);
  EXPECT_THROW(r.read(4097, out, 0), Error);
  EXPECT_THROW(r.read(~u64{0}, out, 2), Error);
  EXPECT_THROW(r.read(8, out, ~u64{0} - 4), Error);
}

TEST(Region, RefusesSizesThatCannotBe) {
  EXPECT_THROW(Region(Place::pageable, 0), Error);
  EXPECT_THROW(Region(Place::pageable, ~u64{0}), Error);
  EXPECT_THROW(Region(Place::pageable, ~u64{0} - 4095), Error);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_THROW(Region(Place::pageable, u64{1} << 60), Error);  // the sanitizers have a say of their own here
#endif
  try {
    const Region gpu(Place::gpu, 4096);
    FAIL() << "GPU memory without a GPU";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ExitCode::absent);
  }
}

TEST(Region, HugePagesThatAreNotThereAreExplained) {
  for (const Place place : {Place::huge_2m, Place::huge_1g}) {
    try {
      const Region r(place, u64{1} << 40);  // a terabyte of huge pages: more than a machine has
      FAIL();
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find("pages needed"), std::string::npos) << e.what();
      EXPECT_NE(e.hint().find("nr_hugepages"), std::string::npos) << e.hint();
    }
  }
}

using View = SoftwareAddressSpace::View;

/// Memory of this process that is not the kernel's page of zeros, in pages.
u64 resident_pages() {
  u64 size = 0;
  u64 resident = 0;
  std::ifstream("/proc/self/statm") >> size >> resident;
  return resident;
}

TEST(Region, PopulatedPagesAreItsOwn) {
  constexpr u64 kPages = 4096;
  Region r(Place::pageable, kPages * 4096);
  // A kernel without a huge page of zeros gives memory to a read.
  madvise(r.host(), r.bytes(), MADV_NOHUGEPAGE);
  u64 sum = 0;
  const u64 before = resident_pages();
  for (u64 at = 0; at < r.bytes(); at += 4096) sum += static_cast<volatile u8*>(r.host())[at];
  EXPECT_LT(resident_pages() - before, kPages / 4) << "reading gives it none";
  r.host()[5000] = 7;
  r.populate();
  EXPECT_GT(resident_pages() - before, kPages * 3 / 4);
  EXPECT_EQ(sum, 0u);
  EXPECT_EQ(r.host()[4096], 0);
  EXPECT_EQ(r.host()[5000], 7) << "what was there stays";
}

TEST(Region, LargeOnesBeginAtAHugePage) {
  EXPECT_EQ(reinterpret_cast<u64>(Region(Place::pageable, 5 << 20).host()) % (2 << 20), 0u);
  EXPECT_THROW(Region(Place::pageable, ~u64{0} - 8192), Error);
}

TEST(StreamCopy, CopiesAllBytesAndNoOthers) {
  std::vector<u8> from(5000);
  std::mt19937_64 random(1);
  for (u8& b : from) b = static_cast<u8>(random());
  for (const u64 bytes : {0u, 1u, 15u, 63u, 64u, 79u, 80u, 127u, 511u, 512u, 4096u, 4107u})
    for (u64 to_at = 0; to_at < 64; ++to_at)
      for (const u64 from_at : {0u, 1u, 4u, 33u}) {
        std::vector<u8> expected(4300, 0xee);
        std::copy_n(from.begin() + static_cast<i64>(from_at), bytes,
                    expected.begin() + static_cast<i64>(to_at));
        std::vector<u8> to(expected.size(), 0xee);
        stream_copy(to.data() + to_at, from.data() + from_at, bytes);
        ASSERT_EQ(to, expected) << bytes << " bytes from " << from_at << " to " << to_at;
      }
}

TEST(AddressSpace, FindsWhatIsMappedAndNothingElse) {
  SoftwareAddressSpace space;
  View view(space);
  EXPECT_EQ(view.find(0, 1, Access::read).address, nullptr);
  const Region a(Place::pageable, 8192), b(Place::pageable, 4096);
  const Iova ia = space.map(a, Access::read_write);
  const Iova ib = space.map(b, Access::read_write);
  EXPECT_EQ(ia % 4096, 0u);
  EXPECT_GE(ia, u64{1} << 32);
  EXPECT_GE(ib, ia + a.bytes() + 4096) << "no gap: an overrun would land in the neighbour";
  EXPECT_EQ(view.find(ia, 8192, Access::read).address, a.host());
  EXPECT_EQ(view.find(ia + 8191, 1, Access::write).address, a.host() + 8191);
  EXPECT_EQ(view.find(ib + 100, 8, Access::read).address, b.host() + 100);
  const u64 before = view.faults();
  const std::pair<Iova, u64> outside[] = {{ia - 1, 1},
                                          {ia - 1, 2},
                                          {ia + 8192, 1},
                                          {ia + 8191, 2},
                                          {ia, 8193},
                                          {ia, ~u64{0}},
                                          {ia + 1, ~u64{0} - 1},
                                          {ib + 4096, 1},
                                          {ib, 4097},
                                          {~u64{0}, 1},
                                          {~u64{0}, ~u64{0}},
                                          {0, ~u64{0}},
                                          {ia + 8, ~u64{0} - ia - 8}};
  for (const auto& [at, n] : outside)
    EXPECT_EQ(view.find(at, n, Access::read).address, nullptr) << at << ' ' << n;
  EXPECT_EQ(view.faults() - before, std::size(outside));
}

TEST(AddressSpace, PermissionsHold) {
  SoftwareAddressSpace space;
  View view(space);
  const Region r(Place::pageable, 4096);
  const Iova ro = space.map(r, Access::read), wo = space.map(r, Access::write),
             rw = space.map(r, Access::read_write);
  EXPECT_NE(view.find(ro, 1, Access::read).address, nullptr);
  EXPECT_EQ(view.find(ro, 1, Access::write).address, nullptr);
  EXPECT_EQ(view.find(ro, 1, Access::read_write).address, nullptr);
  EXPECT_EQ(view.find(wo, 1, Access::read).address, nullptr);
  EXPECT_NE(view.find(wo, 1, Access::write).address, nullptr);
  EXPECT_NE(view.find(rw, 1, Access::read_write).address, nullptr);
  EXPECT_EQ(view.faults(), 3u);
}

TEST(AddressSpace, UnmapTakesEffectAtOnce) {
  SoftwareAddressSpace space;
  View view(space);
  const Region a(Place::pageable, 4096), b(Place::pageable, 4096);
  const Iova ia = space.map(a, Access::read);
  const Iova ib = space.map(b, Access::read);
  EXPECT_NE(view.find(ia, 1, Access::read).address, nullptr);  // now cached in the view
  space.unmap(ia);
  EXPECT_EQ(view.find(ia, 1, Access::read).address, nullptr);
  EXPECT_NE(view.find(ib, 1, Access::read).address, nullptr);
  space.unmap(ia);  // twice, and something that never was: ignored
  space.unmap(12345);
  EXPECT_NE(view.find(ib, 1, Access::read).address, nullptr);
  const Iova again = space.map(a, Access::read);
  EXPECT_NE(again, ia) << "a stale address must stay a fault";
}

TEST(AddressSpace, AnEmptyRegionIsRefused) {
  SoftwareAddressSpace space;
  EXPECT_THROW((void)space.map(Region(), Access::read), Error);
}

TEST(AddressSpace, MappedUnmapsOnce) {
  SoftwareAddressSpace space;
  View view(space);
  std::optional<Mapped> outer;
  Iova at = 0;
  {
    Mapped m(space, Region(Place::pageable, 4096), Access::read_write);
    at = m.iova();
    outer.emplace(std::move(m));
  }
  EXPECT_NE(view.find(at, 1, Access::read).address, nullptr);
  Mapped other(space, Region(Place::pageable, 4096), Access::read_write);
  const Iova replaced = other.iova();
  other = std::move(*outer);
  EXPECT_EQ(view.find(replaced, 1, Access::read).address, nullptr);
  EXPECT_NE(view.find(at, 1, Access::read).address, nullptr);
  other = Mapped();
  EXPECT_EQ(view.find(at, 1, Access::read).address, nullptr);
}

TEST(AddressSpace, LookupsWhileTheMapChanges) {
  SoftwareAddressSpace space;
  const Region fixed(Place::pageable, 65536), moving(Place::pageable, 4096);
  const Iova at = space.map(fixed, Access::read_write);
  std::atomic<bool> stop{false};
  std::atomic<u64> looked{0};
  std::vector<std::thread> readers;
  for (u64 t = 0; t < 3; ++t)
    readers.emplace_back([&, t] {
      View view(space);
      std::mt19937_64 random(t);
      while (!stop.load(std::memory_order_relaxed)) {
        const u64 offset = random() % 65536;
        const auto hit = view.find(at + offset, 1, Access::read);
        ASSERT_EQ(hit.address, fixed.host() + offset);  // always there, whatever else comes and goes
        const auto other = view.find(at + (u64{1} << 21) + random() % (u64{1} << 30), 1, Access::read);
        if (other.address != nullptr) {
          ASSERT_GE(other.address, moving.host());
          ASSERT_LT(other.address, moving.host() + 4096);
        }
        looked.fetch_add(1, std::memory_order_relaxed);
      }
    });
  for (int i = 0; i < 300; ++i) {
    const Iova a = space.map(moving, Access::read);
    const Iova b = space.map(moving, Access::read);
    space.unmap(a);
    space.unmap(b);
    if (i % 50 == 0) std::this_thread::yield();
  }
  while (looked.load(std::memory_order_relaxed) < 1000) std::this_thread::yield();
  stop = true;
  for (std::thread& t : readers) t.join();
}

}  // namespace
}  // namespace doorbell
