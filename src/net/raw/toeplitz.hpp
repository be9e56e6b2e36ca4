// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Receive-side scaling: the Toeplitz hash over addresses and ports, and the indirection table behind it, as
// NICs compute them. Host code only.
#pragma once

#include <doorbell/config.hpp>

#include <array>
#include <span>

namespace doorbell::net {

inline constexpr u32 kRssKeyBytes = 40;
/// The longest input: two IPv6 addresses and two ports.
inline constexpr u32 kRssInputBytes = 36;
inline constexpr u32 kRssEntries = 128;

using RssKey = std::array<u8, kRssKeyBytes>;

/// The key that Microsoft publishes with its test tuples, which most drivers have as their default.
inline constexpr RssKey kDefaultRssKey = {0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67,
                                          0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb,
                                          0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30,
                                          0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa};

/// The hash of an input is the XOR, over its one bits, of the 32 key bits that begin at the bit's position.
/// The XOR for each value of each half byte is computed once.
class Toeplitz {
 public:
  explicit constexpr Toeplitz(const RssKey& key = kDefaultRssKey) {
    for (u32 half = 0; half < kHalves; ++half)
      for (u32 value = 0; value < 16; ++value)
        for (u32 bit = 0; bit < 4; ++bit)
          if ((value >> (3 - bit) & 1) != 0) part_[half][value] ^= key_bits(key, 4 * half + bit);
  }

  /// Of `input`, which is in network byte order: source address, destination address and, where the packet
  /// has them, source port and destination port: 8 or 12 bytes for IPv4, 32 or 36 for IPv6. At most
  /// kRssInputBytes.
  [[nodiscard]] constexpr u32 operator()(std::span<const u8> input) const {
    u32 hash = 0, half = 0;
    for (const u8 byte : input) {
      hash ^= part_[half][byte >> 4] ^ part_[half + 1][byte & 15];
      half += 2;
    }
    return hash;
  }

 private:
  static constexpr u32 kHalves = 2 * kRssInputBytes;
  /// 32 bits of the key from bit `at` on. The last input bit is 287, so that all 32 lie inside the key.
  static constexpr u32 key_bits(const RssKey& key, u32 at) {
    u64 five = 0;
    for (u32 i = 0; i < 5; ++i) five = five << 8 | (at / 8 + i < kRssKeyBytes ? key[at / 8 + i] : 0u);
    return static_cast<u32>(five >> (8 - at % 8));
  }

  std::array<std::array<u32, 16>, kHalves> part_{};
};

/// Queue numbers by the low bits of a hash.
class IndirectionTable {
 public:
  /// The queues in turn, as drivers fill the table unless told otherwise. At least one.
  explicit constexpr IndirectionTable(std::span<const u16> queues) {
    for (u32 i = 0; i < kRssEntries; ++i) queue_[i] = queues[i % queues.size()];
  }
  [[nodiscard]] constexpr u16 queue(u32 hash) const { return queue_[hash % kRssEntries]; }
  constexpr void set(u32 entry, u16 queue) { queue_[entry % kRssEntries] = queue; }

 private:
  std::array<u16, kRssEntries> queue_{};
};

}  // namespace doorbell::net
