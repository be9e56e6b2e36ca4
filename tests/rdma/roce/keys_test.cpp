// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Memory keys: ranges up to the last address, rights, and how soon a key comes back.
#include "rdma/roce/keys.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <set>

namespace doorbell::roce::test {
namespace {

constexpr u32 kDomain = 3;
constexpr u32 kEvery = kLocalWrite | kRemoteWrite | kRemoteRead | kRemoteAtomic;

TEST(RoceKeys, RangesEndWhereAddressesDo) {
  KeyTable keys;
  std::array<u8, 64> memory{};
  RegisteredMemory key;
  ASSERT_EQ(keys.add_region(kDomain, memory.data(), 64, ~u64{0} - 63, kEvery, key), 0);
  const auto find = [&](u64 address, u64 bytes) {
    return keys.find(key.remote_key, kDomain, 0, address, bytes, kRemoteWrite);
  };
  EXPECT_EQ(find(~u64{0} - 63, 64), memory.data());
  EXPECT_EQ(find(~u64{0}, 1), memory.data() + 63);
  EXPECT_EQ(find(~u64{0}, 2), nullptr);
  EXPECT_EQ(find(~u64{0} - 64, 1), nullptr);
  EXPECT_EQ(find(0, 1), nullptr);
  EXPECT_EQ(find(~u64{0} - 63, ~u64{0}), nullptr);
  EXPECT_EQ(keys.add_region(kDomain, memory.data(), 64, ~u64{0} - 62, kEvery, key), EINVAL);
  EXPECT_EQ(keys.add_region(kDomain, memory.data(), ~u64{0}, 1, kEvery, key), EINVAL);
}

TEST(RoceKeys, RightsAreThoseOfRegistration) {
  KeyTable keys;
  std::array<u8, 64> memory{};
  RegisteredMemory key;
  EXPECT_EQ(keys.add_region(kDomain, memory.data(), 64, 0, kRemoteWrite, key), EINVAL);
  EXPECT_EQ(keys.add_region(kDomain, memory.data(), 64, 0, kRemoteAtomic, key), EINVAL);
  EXPECT_EQ(keys.add_region(kDomain, memory.data(), 64, 0, 1 << 8, key), EINVAL);
  ASSERT_EQ(keys.add_region(kDomain, memory.data(), 64, 0, kRemoteRead, key), 0);
  EXPECT_NE(keys.find(key.remote_key, kDomain, 0, 0, 64, kRemoteRead), nullptr);
  EXPECT_EQ(keys.find(key.remote_key, kDomain, 0, 0, 64, kRemoteWrite), nullptr);
  EXPECT_EQ(keys.find(key.remote_key, kDomain + 1, 0, 0, 64, kRemoteRead), nullptr);
  // Registered anew: the key stays, and each part changes that is named.
  RegisteredMemory again;
  EXPECT_EQ(keys.change_region(key.local_key, 4, 0, nullptr, 0, 0, kRemoteWrite, again), EINVAL);
  EXPECT_EQ(keys.change_region(key.local_key, 8, 0, nullptr, 0, 0, 0, again), EINVAL);
  EXPECT_EQ(keys.change_region(key.local_key, 4 | 2, kDomain + 1, nullptr, 0, 0, kEvery, again), 0);
  EXPECT_EQ(again.remote_key, key.remote_key);
  EXPECT_EQ(keys.find(key.remote_key, kDomain, 0, 0, 64, kRemoteWrite), nullptr);
  EXPECT_EQ(keys.find(key.remote_key, kDomain + 1, 0, 0, 64, kRemoteWrite), memory.data());
  EXPECT_EQ(keys.change_region(key.local_key, 1, 0, memory.data() + 8, 16, 100, 0, again), 0);
  EXPECT_EQ(keys.find(key.remote_key, kDomain + 1, 0, 100, 16, kRemoteWrite), memory.data() + 8);
  EXPECT_EQ(keys.find(key.remote_key, kDomain + 1, 0, 100, 17, kRemoteWrite), nullptr);
}

TEST(RoceKeys, AStaleKeyDoesNotComeBackSoon) {
  KeyTable keys;
  std::array<u8, 64> memory{};
  RegisteredMemory first;
  ASSERT_EQ(keys.add_region(kDomain, memory.data(), 64, 0, kEvery, first), 0);
  ASSERT_EQ(keys.remove_region(first.local_key), 0);
  EXPECT_EQ(keys.remove_region(first.local_key), EINVAL);
  EXPECT_NE(first.local_key, 0U);
  for (u32 i = 0; i < 200 * KeyTable::kResting; ++i) {
    RegisteredMemory key;
    ASSERT_EQ(keys.add_region(kDomain, memory.data(), 64, 0, kEvery, key), 0);
    ASSERT_NE(key.remote_key, first.remote_key) << i;
    ASSERT_EQ(keys.remove_region(key.local_key), 0);
  }
}

TEST(RoceKeys, KeysInUseDiffer) {
  KeyTable keys;
  std::array<u8, 64> memory{};
  std::set<u32> seen;
  for (u32 i = 0; i < 20000; ++i) {
    RegisteredMemory key;
    ASSERT_EQ(keys.add_region(kDomain, memory.data(), 64, 0, kEvery, key), 0);
    EXPECT_TRUE(seen.insert(key.remote_key).second);
    u32 window = 0;
    ASSERT_EQ(keys.add_window(kDomain, 1 + i % 2, window), 0);
    EXPECT_TRUE(seen.insert(window).second);
    // A window is no memory of this side's.
    EXPECT_EQ(keys.find_local({.address = 0, .length = 1, .key = window}, kDomain, 0, 1, 0), nullptr);
  }
}

}  // namespace
}  // namespace doorbell::roce::test
