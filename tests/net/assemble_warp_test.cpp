// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The code of the GPU's kernels, on one lane and on emulated warps.

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include "emulated_warp.hpp"
#include "net/assembly/assemble.hpp"

namespace doorbell::net {
namespace {

constexpr u8 kPoison = 0xa5;

/// Bytes with a guard on both sides, `offset` bytes past a multiple of 16.
class Bytes {
 public:
  explicit Bytes(u64 n, u32 offset = 0, u8 fill = kPoison)
      : n_(n), storage_(n + 64 + offset, fill), fill_(fill) {
    const auto at = reinterpret_cast<u64>(storage_.data());
    begin_ = (16 - at % 16) % 16 + 16 + offset;
  }
  u8* data() { return storage_.data() + begin_; }
  u64 size() const { return n_; }
  std::vector<u8> copy(u64 at, u64 n) { return {data() + at, data() + at + n}; }
  void expect_guards() {
    for (u64 i = 0; i < begin_; ++i) ASSERT_EQ(storage_[i], fill_);
    for (u64 i = begin_ + n_; i < storage_.size(); ++i) ASSERT_EQ(storage_[i], fill_);
  }

 private:
  u64 n_;
  std::vector<u8> storage_;
  u64 begin_;
  u8 fill_;
};

template <u32 N>
struct Lanes {
  static constexpr u32 value = N;
};
template <class L>
class AssembleWarp : public testing::Test {
 public:
  /// Runs f(lanes, warp, warps) for each of three warps, as a grid would.
  template <class F>
  static void grid(F f) {
    for (u32 w = 0; w < 3; ++w) collective<L::value>([&](const auto& lanes) { f(lanes, w, 3); });
  }
};
using Widths = testing::Types<Lanes<1>, Lanes<4>, Lanes<32>>;
TYPED_TEST_SUITE(AssembleWarp, Widths);

/// A packet as it is received: header, data.
std::vector<u8> packet(u16 tag, u16 stream, u64 sequence, const std::vector<u8>& data) {
  Header h;
  h.version_flags = static_cast<u8>(kVersion | kHasDataCrc << 4);
  h.run_tag = tag;
  h.data_bytes = static_cast<u32>(data.size());
  h.stream_sequence = stream_sequence(stream, sequence);
  std::vector<u8> out(kHeaderBytes + data.size());
  std::memcpy(out.data(), &h, kHeaderBytes);
  std::ranges::copy(data, out.begin() + kHeaderBytes);
  return out;
}

std::vector<u8> made_data(Fill fill, u64 seed, u16 stream, u64 number, u32 bytes) {
  std::vector<u8> out(bytes);
  for (u32 i = 0; i < bytes; ++i)
    out[i] = static_cast<u8>(data_word(fill, seed, stream, static_cast<u32>(number % kTemplates), i / 8) >>
                             (8 * (i % 8)));
  return out;
}

TYPED_TEST(AssembleWarp, GathersEveryLengthAtEveryAlignment) {
  std::mt19937_64 random(3);
  for (const u32 bytes : {1U, 7U, 16U, 32U, 100U, 128U, 968U, 2064U, 4096U}) {
    for (const u32 offset : {0U, 1U, 4U, 8U, 16U, 80U, 112U}) {
      constexpr u32 kCount = 7;
      Bytes from(u64{kCount} * bytes, offset), to(u64{kCount} * bytes, 0);
      for (u64 i = 0; i < from.size(); ++i) from.data()[i] = static_cast<u8>(random());
      std::vector<GatherItem> items;
      for (u32 i = 0; i < kCount; ++i)  // in another order
        items.push_back({reinterpret_cast<u64>(from.data() + i * bytes),
                         reinterpret_cast<u64>(to.data() + (i * 3 + 1) % kCount * bytes), bytes});
      const GatherJob job{items.data(), kCount, {}};
      this->grid([&](const auto& lanes, u32 w, u32 n) { gather(lanes, job, w, n); });
      for (u32 i = 0; i < kCount; ++i)
        ASSERT_EQ(to.copy((i * 3 + 1) % kCount * bytes, bytes), from.copy(i * bytes, bytes)) << bytes;
      to.expect_guards();
    }
  }
}

TYPED_TEST(AssembleWarp, GathersWithConversion) {
  const std::vector<u8> ints = {0xff, 0x7f, 0x00, 0x80, 0x01, 0x00};  // 32767, -32768, 1
  Bytes to(12);
  const GatherItem item{reinterpret_cast<u64>(ints.data()), reinterpret_cast<u64>(to.data()), 6};
  const GatherJob job{&item, 1, {{Integer::int16, Float::fp32, false}, 1}};
  this->grid([&](const auto& lanes, u32 w, u32 n) { gather(lanes, job, w, n); });
  float values[3];
  std::memcpy(values, to.data(), sizeof values);
  EXPECT_EQ(values[0], 32767);
  EXPECT_EQ(values[1], -32768);
  EXPECT_EQ(values[2], 1);
  to.expect_guards();
}

TYPED_TEST(AssembleWarp, PlacesByTheHeadersSequence) {
  constexpr u32 kPackets = 70, kBytes = 24;
  constexpr u64 kFirst = kSequenceMask - 20;  // the window lies across the wrap
  std::vector<std::vector<u8>> packets;
  const auto add = [&](u64 slot, u32 bytes = 24, u16 tag = 9, u16 stream = 2) {
    packets.push_back(packet(tag, stream, (kFirst + slot) & kSequenceMask,
                             std::vector<u8>(bytes, static_cast<u8>(slot + 1))));
  };
  std::vector<u32> order(kPackets);
  for (u32 i = 0; i < kPackets; ++i) order[i] = i;
  std::ranges::shuffle(order, std::mt19937(1));
  for (const u32 slot : order)
    if (slot != 3 && slot != 69) add(slot);
  add(5), add(6);                                               // duplicates
  add(kPackets), add(u64{0} - 1);                               // the windows on both sides
  add(3, kBytes - 8), add(3, kBytes, 8), add(3, kBytes, 9, 1);  // another length, run, stream
  packets.push_back(std::vector<u8>(kHeaderBytes + kBytes));    // no header at all
  std::vector<u64> addresses;
  for (auto& p : packets) addresses.push_back(reinterpret_cast<u64>(p.data()));

  Bytes window(u64{kPackets} * kBytes);
  std::vector<u64> arrived(2);
  PlaceCounts counts = {};
  const PlaceJob job{addresses.data(),
                     static_cast<u32>(addresses.size()),
                     kPackets,
                     window.data(),
                     arrived.data(),
                     &counts,
                     kFirst,
                     kBytes,
                     9,
                     2,
                     kBytes,
                     {}};
  this->grid([&](const auto& lanes, u32 w, u32 n) { place(lanes, job, w, n); });
  EXPECT_EQ(counts.placed, kPackets - 2);
  EXPECT_EQ(counts.duplicate, 2U);
  EXPECT_EQ(counts.outside, 6U);
  for (u32 slot = 0; slot < kPackets; ++slot) {
    const bool absent = slot == 3 || slot == 69;
    EXPECT_EQ((arrived[slot / 64] >> (slot % 64) & 1) == 0, absent) << slot;
    EXPECT_EQ(window.copy(slot * kBytes, kBytes),
              std::vector<u8>(kBytes, absent ? kPoison : static_cast<u8>(slot + 1)));
  }
  window.expect_guards();
}

TYPED_TEST(AssembleWarp, ZeroesTheSlotsOfTheListOnly) {
  for (const u32 bytes : {1U, 13U, 16U, 40U, 968U}) {
    Bytes window(u64{9} * bytes, 4);
    const std::vector<u32> slots = {0, 3, 4, 8};
    const ZeroJob job{window.data(), slots.data(), 4, bytes};
    this->grid([&](const auto& lanes, u32 w, u32 n) { zero_slots(lanes, job, w, n); });
    for (u32 slot = 0; slot < 9; ++slot) {
      const bool zeroed = std::ranges::find(slots, slot) != slots.end();
      ASSERT_EQ(window.copy(slot * bytes, bytes), std::vector<u8>(bytes, zeroed ? 0 : kPoison)) << slot;
    }
    window.expect_guards();
  }
}

TYPED_TEST(AssembleWarp, ChecksEveryByteOfWhatArrived) {
  for (const Fill fill : {Fill::bytes, Fill::float32, Fill::float16, Fill::zero})
    for (const u32 bytes : {32U, 61U}) {
      constexpr u32 kPackets = 66;
      constexpr u64 kFirst = 1000;  // templates start again inside the window
      Bytes window(u64{kPackets} * bytes);
      for (u32 i = 0; i < kPackets; ++i)
        std::ranges::copy(made_data(fill, 77, 5, kFirst + i, bytes), window.data() + i * bytes);
      std::vector<u64> arrived = {~u64{0}, 3};
      CheckCounts counts = {};
      CheckJob job{window.data(), arrived.data(), &counts, kFirst, 77, kPackets, bytes, fill, 5};
      const auto run = [&] {
        counts = {};
        this->grid([&](const auto& lanes, u32 w, u32 n) { check_slots(lanes, job, w, n); });
      };
      run();
      EXPECT_EQ(counts.checked, kPackets);
      EXPECT_EQ(counts.wrong, 0U);
      // The first, the last and a byte in between of three slots.
      window.data()[0] ^= 1;
      window.data()[30 * bytes + 17] ^= 0x80;
      window.data()[kPackets * bytes - 1] ^= 0x40;
      run();
      EXPECT_EQ(counts.wrong, 3U);
      EXPECT_EQ(std::set<u32>(counts.slots, counts.slots + 3), (std::set<u32>{0, 30, 65}));
      // Packets that did not arrive are not looked at.
      arrived = {~u64{0} ^ 1 ^ u64{1} << 30, 1};
      run();
      EXPECT_EQ(counts.checked, kPackets - 3);
      EXPECT_EQ(counts.wrong, 0U);
      job.arrived = nullptr;
      run();
      EXPECT_EQ(counts.wrong, 3U);
    }
}

TYPED_TEST(AssembleWarp, AnotherPacketsDataIsWrong) {
  constexpr u32 kPackets = 20, kBytes = 48;
  Bytes window(u64{kPackets} * kBytes);
  for (u32 i = 0; i < kPackets; ++i)
    std::ranges::copy(made_data(Fill::bytes, 1, 0, i + 1, kBytes), window.data() + i * kBytes);
  CheckCounts counts = {};
  const CheckJob job{window.data(), nullptr, &counts, 0, 1, kPackets, kBytes, Fill::bytes, 0};
  this->grid([&](const auto& lanes, u32 w, u32 n) { check_slots(lanes, job, w, n); });
  EXPECT_EQ(counts.wrong, kPackets);
  for (const u32 slot : counts.slots) EXPECT_LT(slot, kPackets);
}

}  // namespace
}  // namespace doorbell::net
