// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The 32 bytes at the start of every packet's payload, and the data behind them.
//
// The header is the same for raw frames, datagrams, messages and records of a TCP stream. Little endian:
//
//   0 magic  1 version (bits 3..0), flags (7..4)  2..3 run tag  4..7 data bytes  8..15 stream (63..48),
//   sequence 16..23 time of sending  24..27 CRC-32C of the data  28..31 CRC-32C of bytes 0..27
//
// Data is a function of (seed, stream, sequence mod 1021, position): a sender fills its buffers once, and a
// receiver or a GPU makes any part of it again.
#pragma once

#include <doorbell/pattern_unit.hpp>

#include <cstring>

namespace doorbell::net {

/// @name Constants of the header
/// @{
inline constexpr u8 kMagic = 0xdb;
inline constexpr u8 kVersion = 1;
inline constexpr u32 kHeaderBytes = 32;
inline constexpr u64 kSequenceMask = (u64{1} << 48) - 1;
/// @}
/// Data repeats after so many packets. A prime, so that it never aligns with a window of packets.
inline constexpr u32 kTemplates = 1021;

/// Bits 7:4 of the header's second byte.
enum Flags : u8 {
  kIntendedTime = 1,  ///< the time is a DueTime: the packet was due at one time, and left at another
  kHasDataCrc = 2,    ///< Header::data_crc32c is that of the data; else nobody has computed it
};

/// A header's 32 bytes as they travel.
struct Header {
  u8 magic = kMagic;            ///< anything else is no packet of doorbell's
  u8 version_flags = kVersion;  ///< version in bits 3:0, Flags in 7:4
  u16 run_tag = 0;              ///< tells packets of one run from those of another
  u32 data_bytes = 0;           ///< behind the header
  u64 stream_sequence = 0;      ///< stream_sequence(): which flow, and the number of the packet in it
  u64 tx_time_ns = 0;           ///< CLOCK_MONOTONIC of the sender when it sent; with kIntendedTime a DueTime
  u32 data_crc32c = 0;          ///< crc32c() of the data, with kHasDataCrc
  u32 header_crc32c = 0;        ///< crc32c() of bytes 0..27

  /// @name Its fields
  /// @{
  [[nodiscard]] DOORBELL_INLINE u16 stream() const { return static_cast<u16>(stream_sequence >> 48); }
  [[nodiscard]] DOORBELL_INLINE u64 sequence() const { return stream_sequence & kSequenceMask; }
  [[nodiscard]] DOORBELL_INLINE bool has(Flags f) const { return ((version_flags >> 4) & f) != 0; }
  [[nodiscard]] DOORBELL_INLINE u8 version() const { return version_flags & 15; }
  /// @}
};
static_assert(sizeof(Header) == kHeaderBytes && alignof(Header) == 8);

/// When a paced packet was due and when it left, in one word: the lower 44 bits of the first, in ns, and how
/// much later the second was, in units of 16384 ns and rounded up.
struct DueTime {
  /// @name Its layout
  /// @{
  static constexpr u32 kDueBits = 44, kUnitBits = 14;
  static constexpr u64 kDueMask = (u64{1} << kDueBits) - 1;
  static constexpr u64 kMostUnits = (u64{1} << (64 - kDueBits)) - 1;
  /// @}

  u64 due_ns = 0;   ///< CLOCK_MONOTONIC
  u64 left_ns = 0;  ///< not before due_ns

  /// As it travels in Header::tx_time_ns. A delay of more than 17 s becomes 17 s.
  [[nodiscard]] DOORBELL_INLINE u64 word() const {
    const u64 units = (left_ns - due_ns + ((u64{1} << kUnitBits) - 1)) >> kUnitBits;
    return (due_ns & kDueMask) | (units < kMostUnits ? units : kMostUnits) << kDueBits;
  }
  /// The times of a word, at a time `now_ns`, which is less than 4.8 hours later.
  [[nodiscard]] static DOORBELL_INLINE DueTime of(u64 word, u64 now_ns) {
    DueTime t;
    t.due_ns = now_ns - ((now_ns - word) & kDueMask);
    t.left_ns = t.due_ns + (word >> kDueBits << kUnitBits);
    return t;
  }
};

/// Header::stream_sequence of a flow's packet: the flow in bits 63:48, the sequence below.
[[nodiscard]] DOORBELL_INLINE u64 stream_sequence(u16 stream, u64 sequence) {
  return static_cast<u64>(stream) << 48 | (sequence & kSequenceMask);
}

/// The kind of values that the data consists of. Those of float16 and float32 lie in [-1, 1).
enum class Fill : u32 {
  bytes,    ///< any value
  float32,  ///< binary32, little endian
  float16,  ///< binary16, little endian
  zero,     ///< all bits 0
};

/// The 8 bytes at data offset 8 * `word` of a packet.
[[nodiscard]] DOORBELL_INLINE u64 data_word(Fill fill, u64 seed, u16 stream, u32 tmpl, u64 word) {
  if (fill == Fill::zero) return 0;
  const u64 key = pattern::mix64(seed ^ pattern::mix64((static_cast<u64>(stream) << 32 | tmpl) + 1));
  const u64 random = pattern::mix64(key + word * 0x9e3779b97f4a7c15ull);
  if (fill == Fill::bytes) return random;
  u64 out = 0;
  if (fill == Fill::float32) {
    for (u32 i = 0; i < 2; ++i) {
      // 24 bits are exact in a float: -1 + k * 2^-23.
      const float v = static_cast<float>((random >> (32 * i) & 0xffffffffu) >> 8) * 0x1p-23f - 1.0f;
      u32 bits;
      memcpy(&bits, &v, 4);
      out |= static_cast<u64>(bits) << (32 * i);
    }
  } else {
    for (u32 i = 0; i < 4; ++i) {
      // k * 2^-10 - 1 with 0 <= k < 2048 is exact in binary16: its magnitude m = |k - 1024| has at most 11
      // bits.
      const u32 k = static_cast<u32>(random >> (16 * i)) & 2047;
      const u32 m = k < 1024 ? 1024 - k : k - 1024;
      u32 half = 0;
      if (m != 0) {
        u32 top = 10;
        while ((m >> top) == 0) --top;
        half = ((top + 5) << 10) | ((m << (10 - top)) & 1023);  // m * 2^-10 = 1.f * 2^(top - 10), bias 15
      }
      if (k < 1024) half |= 0x8000;
      out |= static_cast<u64>(half) << (16 * i);
    }
  }
  return out;
}

// --- numbers ---------------------------------------------------------------------------------------------

/// Two's complement. Of two int4 in a byte the low four bits come first, with `big_endian` the high ones.
enum class Integer : u32 {
  int4,   ///< two in a byte
  int8,   ///< of a byte
  int16,  ///< of two bytes
  int32,  ///< of four bytes
};
/// Little endian, whatever the integers are. What fp16 cannot hold becomes infinity.
enum class Float : u32 {
  fp16,  ///< binary16
  bf16,  ///< the upper half of a binary32, rounded
  fp32,  ///< binary32
};

/// Integers of packets, made into floating-point numbers on their way into windows.
struct Conversion {
  Integer from = Integer::int16;  ///< as they travel
  Float to = Float::fp32;         ///< as they lie in a window
  bool big_endian = false;        ///< of the integers
  friend DOORBELL_INLINE bool operator==(const Conversion& a, const Conversion& b) {
    return a.from == b.from && a.to == b.to && a.big_endian == b.big_endian;
  }
};

/// The size of one, in bits.
[[nodiscard]] DOORBELL_INLINE constexpr u32 bits_of(Integer i) {
  return 4u << static_cast<u32>(i);
}
/// The size of one, in bytes.
[[nodiscard]] DOORBELL_INLINE constexpr u32 bytes_of(Float f) {
  return f == Float::fp32 ? 4 : 2;
}
/// How many integers `bytes` hold; the rest that makes up no whole one counts as none.
[[nodiscard]] DOORBELL_INLINE constexpr u64 elements_in(Integer i, u64 bytes) {
  return bytes * 8 / bits_of(i);
}
/// The bytes that the integers in `bytes` take when converted.
[[nodiscard]] DOORBELL_INLINE constexpr u64 converted_bytes(const Conversion& c, u64 bytes) {
  return elements_in(c.from, bytes) * bytes_of(c.to);
}

// --- checksum --------------------------------------------------------------------------------------------

/// CRC-32C (Castagnoli), as in RFC 3720 section 12.1, of `n` bytes: that of "123456789" is 0xE3069283. With
/// `crc`, the CRC of what came before, that of both together. Uses the CPU's instruction where there is one.
/// Host code only.
[[nodiscard]] u32 crc32c(const void* data, std::size_t n, u32 crc = 0);

}  // namespace doorbell::net
