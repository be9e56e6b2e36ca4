// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The check of converted windows: its own arithmetic, and that it finds what is wrong.

#include "net/assembly/window_check.hpp"

#include <doorbell/net/packet.hpp>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "net/assembly/assembler.hpp"
#include "net/assembly/reference_conversion.hpp"
#include "net/computing_gpu.hpp"
#include "net/flow/window_work.hpp"

namespace doorbell::net {
namespace {

constexpr Integer kIntegers[] = {Integer::int4, Integer::int8, Integer::int16, Integer::int32};
constexpr Float kFloats[] = {Float::fp16, Float::bf16, Float::fp32};

std::vector<u8> numbers_of(Integer i) {
  std::vector<u8> bytes;
  if (i == Integer::int32) {
    // Around every power of two, where roundings differ, and anything else.
    for (u32 bit = 0; bit < 32; ++bit)
      for (const i64 delta : {-3, -2, -1, 0, 1, 2, 3})
        for (const u32 v :
             {static_cast<u32>((i64{1} << bit) + delta), static_cast<u32>(delta - (i64{1} << bit))})
          for (u32 b = 0; b < 4; ++b) bytes.push_back(static_cast<u8>(v >> (8 * b)));
    std::mt19937 random(1);
    for (u32 n = 0; n < 40000; ++n) bytes.push_back(static_cast<u8>(random()));
  } else {
    for (u32 v = 0; v < 65536; ++v)
      bytes.push_back(static_cast<u8>(v)), bytes.push_back(static_cast<u8>(v >> 8));
  }
  return bytes;
}

TEST(ReferenceConversion, AgreesWithTheConversionOfWindows) {
  for (const Integer from : kIntegers)
    for (const Float to : kFloats)
      for (const bool big : {false, true}) {
        const Conversion c = {from, to, big};
        const std::vector<u8> in = numbers_of(from);
        std::vector<u8> fast(converted_bytes(c, in.size())), reference;
        convert(OneLane{}, c, in.data(), in.size(), fast.data());
        reference_conversion(c, in.data(), in.size(), reference);
        ASSERT_EQ(fast, reference) << static_cast<u32>(from) << " to " << static_cast<u32>(to) << " " << big;
      }
}

TEST(ReferenceConversion, OfNumbersThatAreKnown) {
  const auto of = [](const Conversion& c, std::vector<u8> in) {
    std::vector<u8> out;
    reference_conversion(c, in.data(), in.size(), out);
    return out;
  };
  // 1 and -1 as binary32; 1 as binary16; 258 = 0x0102 big endian as bfloat16, which 0x43810000 is cut from.
  EXPECT_EQ(of({Integer::int8, Float::fp32, false}, {1, 0xff}),
            (std::vector<u8>{0, 0, 0x80, 0x3f, 0, 0, 0x80, 0xbf}));
  EXPECT_EQ(of({Integer::int16, Float::fp16, false}, {1, 0}), (std::vector<u8>{0, 0x3c}));
  EXPECT_EQ(of({Integer::int16, Float::bf16, true}, {1, 2}), (std::vector<u8>{0x81, 0x43}));
  EXPECT_EQ(of({Integer::int4, Float::fp32, false}, {0x1f}),
            (std::vector<u8>{0, 0, 0x80, 0xbf, 0, 0, 0x80, 0x3f}));
  EXPECT_EQ(of({Integer::int32, Float::fp16, false}, {0, 0, 1, 0}),
            (std::vector<u8>{0, 0x7c}));  // 65536: infinity
}

/// Two slots of 64 bytes, of which packets have come as `arrived` says.
struct OneWindow {
  explicit OneWindow(u64 arrived) : bits{arrived} {
    for (u32 s = 0; s < 2; ++s) {
      if ((arrived >> s & 1) == 0) continue;
      for (u32 i = 0; i < 64; ++i) bytes[s * 64 + i] = static_cast<u8>(s * 100 + i);
      crcs[s] = crc32c(bytes.data() + s * 64, 64);
    }
    window.host = bytes.data();
    window.bytes = bytes.size();
    window.packets = 2;
    window.arrived = bits;
    window.slot_crcs = crcs;
    window.owner = &owner;
  }
  struct Owner final : WindowOwner {
    void give_back(const Window&) override { ++given; }
    u32 given = 0;
  } owner;
  std::vector<u8> bytes = std::vector<u8>(128);
  std::vector<u64> bits;
  std::vector<u32> crcs = {0, 0};
  Window window;
};

u64 failed(const OneWindow& w, Missing missing = Missing::zero) {
  DiscardWindows next;
  WindowCheck check({.slot_bytes = 64, .missing = missing}, next);
  check.take(w.window);
  EXPECT_EQ(check.checked(), 1u);
  return check.failed();
}

TEST(WindowCheck, FindsASlotThatIsWrong) {
  EXPECT_EQ(failed(OneWindow(3)), 0u);
  for (const u32 at : {0u, 63u, 64u, 127u}) {
    OneWindow w(3);
    w.bytes[at] ^= 4;
    EXPECT_EQ(failed(w), 1u) << at;
  }
}

TEST(WindowCheck, ASlotWithoutAPacketIsZeros) {
  EXPECT_EQ(failed(OneWindow(1)), 0u);
  OneWindow w(1);
  w.bytes[100] = 1;
  EXPECT_EQ(failed(w), 1u);
  EXPECT_EQ(failed(w, Missing::mark), 0u);
}

TEST(WindowCheck, AWindowThatIsNotAuditedIsPassedOn) {
  OneWindow w(3);
  w.window.slot_crcs = {};
  w.bytes[0] ^= 1;
  DiscardWindows next;
  WindowCheck check({.slot_bytes = 64}, next);
  check.take(w.window);
  EXPECT_EQ(check.checked(), 0u);
  EXPECT_EQ(w.owner.given, 1u);
}

/// Windows of 256 slots of 64 bytes in one buffer, in which what has come grows and shrinks.
struct OneBuffer {
  static constexpr u32 kSlots = 256;
  static constexpr u64 kSlotBytes = 64;

  /// Packets in these slots, and zeros where one was before.
  void take(const std::vector<u32>& slots) {
    for (u32 s = 0; s < kSlots; ++s)
      if ((bits[s / 64] >> (s % 64) & 1) != 0) std::memset(&bytes[s * kSlotBytes], 0, kSlotBytes);
    std::ranges::fill(bits, 0);
    for (const u32 s : slots) {
      bits[s / 64] |= u64{1} << s % 64;
      std::memset(&bytes[s * kSlotBytes], static_cast<int>(s % 255 + 1), kSlotBytes);
      crcs[s] = crc32c(&bytes[s * kSlotBytes], kSlotBytes);
    }
    pass(static_cast<u32>(slots.size()));
  }
  /// As it lies there.
  void pass(u32 arrived) {
    Window w;
    w.host = bytes.data();
    w.bytes = bytes.size();
    w.packets = kSlots;
    w.missing = kSlots - arrived;
    w.arrived = bits;
    w.slot_crcs = crcs;
    w.owner = &owner;
    check.take(w);
  }
  OneWindow::Owner owner;
  std::vector<u8> bytes = std::vector<u8>(kSlots * kSlotBytes);
  std::vector<u64> bits = std::vector<u64>(kSlots / 64);
  std::vector<u32> crcs = std::vector<u32>(kSlots);
  DiscardWindows next;
  WindowCheck check{{.slot_bytes = kSlotBytes, .most_zeros = 0}, next};
};

/// With nothing left to pay for them, zeros are read where they may have been written.
TEST(WindowCheck, ZerosOfWindowsThatAreNearlyEmpty) {
  OneBuffer b;
  b.take({100});
  EXPECT_EQ(b.check.in_part(), 0u) << "nothing is known of a new buffer";
  b.take({63});
  EXPECT_EQ(b.check.in_part(), 1u);
  EXPECT_EQ(b.check.failed(), 0u);
  // Beside a packet, on either side, over the border of a word.
  for (const u32 beside : {62u, 64u}) {
    OneBuffer c;
    c.take({});
    c.bytes[beside * OneBuffer::kSlotBytes + 7] = 1;
    c.take({63});
    EXPECT_EQ(c.check.failed(), 1u) << beside;
  }
}

TEST(WindowCheck, WhatIsLeftOfAnEarlierPacketIsFoundInAnEmptyWindow) {
  OneBuffer b;
  b.take({});
  b.take({10, 200});
  std::ranges::fill(b.bits, 0);  // nothing has been made zeros
  b.pass(0);
  EXPECT_EQ(b.check.failed(), 1u);
}

TEST(WindowCheck, AStrayWriteIsFoundWithinSoManyWindowsOrAtTheEnd) {
  for (const u32 slot : {0u, 128u, 255u})
    for (const bool ends : {false, true}) {
      OneBuffer b;
      b.take({});
      b.bytes[slot * OneBuffer::kSlotBytes] = 1;
      for (u32 i = 0; i < (ends ? 1u : 64u); ++i) b.take({});
      if (ends) b.check.finish();
      EXPECT_GT(b.check.failed(), 0u) << slot << " " << ends;
    }
}

/// As many windows, and a known amount of memory that is read: what has come pays for its own window's.
TEST(WindowCheck, ZerosAreAllReadWhereEnoughArrives) {
  OneBuffer b;
  std::vector<u32> eighth;
  for (u32 s = 0; s < OneBuffer::kSlots; s += 8) eighth.push_back(s);
  for (u32 i = 0; i < 8; ++i) {
    b.take(eighth);
    for (u32& s : eighth) s = s / 8 * 8 + i;
  }
  EXPECT_EQ(b.check.in_part(), 0u);
  EXPECT_EQ(b.check.failed(), 0u);
}

/// Packets of 8 int16 in windows of 4 that a GPU puts together and converts.
TEST(WindowCheck, WindowsThatAGpuHasConverted) {
  for (const bool spoil : {false, true}) {
    const auto gpu = std::make_shared<test::ComputingGpu>();
    const Conversion c = {Integer::int16, Float::fp32, true};
    const auto gatherer = std::make_shared<GpuAssembly>(gpu, 64, c);
    DiscardWindows next;
    WindowCheck check({.slot_bytes = 32, .gpu = gpu, .gatherer = gatherer}, next);
    Assembler assembler({.shape = {.packets = 4, .open = 2},
                         .data_bytes = 16,
                         .place = Place::gpu,
                         .gpu = gpu,
                         .gatherer = gatherer,
                         .convert = c,
                         .audit_every = 2},
                        check);
    std::vector<std::vector<u8>> packets;
    for (u32 n = 0; n < 16; ++n) {
      packets.emplace_back(16);
      for (u32 i = 0; i < 16; ++i) packets[n][i] = static_cast<u8>(n * 37 + i * 11);
      EXPECT_EQ(assembler.add(n, packets[n].data(), 16, 1), Placing::placed);
      // The GPU gathers later than the CPU looks: this is what it then finds.
      if (spoil && n == 9) packets[n][3] ^= 1;
    }
    assembler.finish(16);
    EXPECT_EQ(check.checked(), 2u);  // windows 0 and 2
    EXPECT_EQ(check.failed(), spoil ? 1u : 0u);
  }
}

/// Spoils the first byte of each window that it copies.
class SpoilingGpu final : public test::ComputingGpu {
 public:
  void start_copy(const gpu::Copy& c, gpu::Stream s) override {
    ComputingGpu::start_copy(c, s);
    if (c.bytes > sizeof(u64)) enqueue(s, [to = static_cast<u8*>(c.to)] { *to ^= 1; });
  }
};

/// Windows that a run converts and a GPU then copies wrongly are in its result.
TEST(WindowWork, CountsConversionsThatAreWrong) {
  for (const bool spoil : {false, true}) {
    constexpr u32 kPackets = 8;
    WindowWorkRequest r;
    r.payload_bytes = kHeaderBytes + 64;
    r.gpu = spoil ? std::make_shared<SpoilingGpu>() : std::make_shared<test::ComputingGpu>();
    r.options.on = true;
    r.options.packets = 4;
    r.options.on_gpu = true;
    r.options.to_gpu = ToGpu::copy;
    r.options.convert = Conversion{Integer::int16, Float::fp32, false};
    WindowWork work(r);
    std::vector<u8> bytes(r.payload_bytes, 7);
    Burst burst(kPackets);
    std::vector<u32> place;
    std::vector<u64> number;
    for (u32 i = 0; i < kPackets; ++i) {
      burst.data[i] = bytes.data();
      burst.length[i] = r.payload_bytes;
      place.push_back(i), number.push_back(i);
    }
    burst.count = kPackets;
    const std::vector<u16> flow(kPackets);
    EXPECT_EQ(work.sinks().front()->take(burst, place, flow, number), 0u);
    work.finish({kPackets});
    EXPECT_EQ(work.json().at("conversions_checked"), 2u);
    EXPECT_EQ(work.json().at("conversions_failed"), spoil ? 2u : 0u);
    EXPECT_EQ(work.failed(), spoil ? 2u : 0u);
  }
}

}  // namespace
}  // namespace doorbell::net
