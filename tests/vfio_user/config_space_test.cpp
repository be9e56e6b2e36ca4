// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The configuration space as firmware and Linux use it.
#include "vfio_user/config_space.hpp"

#include <gtest/gtest.h>

namespace doorbell::vfio_user {
namespace {

struct ConfigSpaceTest : testing::Test {
  ConfigSpace space{{0x1234, 0x5678, 0x9abc, 0xdef0, 7, 0x010802}, 0x4000, 65};
  template <class T>
  T get(u32 at) {
    T v{};
    space.read(at, std::span(reinterpret_cast<u8*>(&v), sizeof v));
    return v;
  }
  template <class T>
  ConfigSpace::Changes set(u32 at, T v) {
    return space.write(at, bytes_of(v));
  }
};

TEST_F(ConfigSpaceTest, IsAnNvmeController) {
  EXPECT_EQ(get<u32>(0), 0x56781234u);
  EXPECT_EQ(get<u32>(8), 0x01080207u);
  EXPECT_EQ(get<u32>(0x2c), 0xdef09abcu);
  EXPECT_EQ(get<u16>(6), 0x0010u);
  EXPECT_EQ(get<u8>(0x3d), 1u);
  EXPECT_EQ(get<u32>(0x30), 0u);
}

TEST_F(ConfigSpaceTest, CapabilitiesAreAChain) {
  std::vector<u8> ids;
  for (u8 at = get<u8>(0x34); at != 0 && ids.size() < 9; at = get<u8>(at + 1u)) ids.push_back(get<u8>(at));
  EXPECT_EQ(ids, (std::vector<u8>{0x01, 0x10, 0x11}));
  EXPECT_EQ(get<u16>(0x86), 64u) << "vectors less one";
  EXPECT_EQ(get<u32>(0x88), 4u) << "the table lies in BAR 4";
  EXPECT_EQ(get<u32>(0x8c), 5u) << "the pending bits in BAR 5";
  EXPECT_NE(get<u32>(0x4c) & 1u << 28, 0u) << "function level reset";
}

TEST_F(ConfigSpaceTest, BarsAreSized) {
  set<u32>(0x10, ~0u);
  set<u32>(0x14, ~0u);
  EXPECT_EQ(get<u64>(0x10), ~u64{0x3fff} | 4);
  for (const u32 bar : {0x20u, 0x24u}) {
    set<u32>(bar, ~0u);
    EXPECT_EQ(get<u32>(bar), ~0xfffu);
  }
  for (const u32 none : {0x18u, 0x1cu, 0x30u}) {
    set<u32>(none, ~0u);
    EXPECT_EQ(get<u32>(none), 0u);
  }
  set<u32>(0x10, 0xfebd0000);
  set<u32>(0x14, 0);
  EXPECT_EQ(space.bar0(), 0u) << "memory is not switched on";
  set<u16>(4, 2);
  EXPECT_EQ(space.bar0(), 0xfebd0000u);
}

TEST_F(ConfigSpaceTest, WritesCrossFieldsAndKeepWhatIsReadOnly) {
  set<u32>(4, 0xffffffff);
  EXPECT_EQ(get<u32>(4), 0x00100547u);
  set<u64>(0, ~u64{0});
  EXPECT_EQ(get<u32>(0), 0x56781234u);
  std::vector<u8> all(ConfigSpace::kBytes, 0xff);
  EXPECT_TRUE(space.write(0, all).reset) << "the reset bit is among them";
  EXPECT_EQ(get<u32>(8), 0x01080207u);
  EXPECT_EQ(get<u16>(4), 0u);
}

TEST_F(ConfigSpaceTest, SaysWhatChanges) {
  EXPECT_FALSE(set<u16>(4, 6).interrupts);
  EXPECT_TRUE(space.intx_enabled());
  EXPECT_TRUE(set<u16>(4, 0x406).interrupts);
  EXPECT_FALSE(space.intx_enabled());
  EXPECT_TRUE(set<u16>(0x86, 0xc000).interrupts);
  EXPECT_TRUE(space.msix_enabled() && space.msix_masked());
  EXPECT_FALSE(set<u16>(0x86, 0xc000).interrupts);
  EXPECT_TRUE(set<u16>(0x50, 0x8000).reset);
  EXPECT_FALSE(space.msix_enabled());
  EXPECT_EQ(get<u16>(0x50), 0u);
}

}  // namespace
}  // namespace doorbell::vfio_user
