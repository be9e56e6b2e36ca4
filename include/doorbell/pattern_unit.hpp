// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// One unit of the test pattern, version 2: the 512 bytes that an identity makes. docs/pattern.md describes
// them for other programs.
//
//   bytes 0..3 magic, 4..7 start, 8..15 seed, 16..23 address, 24..31 sequence, 32..511 parts 2 to 31
//
// The start is a hash of seed, address and sequence. Each part of 16 bytes is four states of a 32-bit Galois
// LFSR (x^32 + x^22 + x^2 + x + 1), the first of them a hash of the start and the part's number: so each lane
// of a GPU and of a vector makes its own part, whatever lies before it.
#pragma once

#include <doorbell/config.hpp>
#include <doorbell/memory_order.hpp>

namespace doorbell::pattern {

inline constexpr u32 kUnitBytes = 512;
inline constexpr u32 kUnitWords = kUnitBytes / 4;
inline constexpr u32 kParts = kUnitBytes / 16;  ///< 16-byte parts; a 32-lane warp holds one a lane
inline constexpr u32 kHeaderWords = 8;
inline constexpr u32 kHeaderParts = 2;
inline constexpr u32 kMagic = 0x324c4244;  // "DBL2"; the digit is the pattern's version

/// Who a unit is. `address` is a byte address on the device; `sequence` grows with each rewrite.
struct Identity {
  u64 seed = 0;
  u64 address = 0;
  u64 sequence = 0;
  friend DOORBELL_INLINE bool operator==(const Identity& a, const Identity& b) {
    return a.seed == b.seed && a.address == b.address && a.sequence == b.sequence;
  }
};

/// The address in units that are written where nothing is checked: test data of no particular place.
inline constexpr u64 kNoAddress = ~u64{0};

/// A finalising 64-bit mix (the constants are those of MurmurHash3's fmix64).
DOORBELL_INLINE u64 mix64(u64 x) {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdull;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53ull;
  x ^= x >> 33;
  return x;
}

/// Hashes one more word. One to one in `word` and in `hash`: what differs in one word only has another hash.
inline constexpr u32 kMix = 0x7feb352d;
DOORBELL_INLINE u32 absorb(u32 hash, u32 word) {
  hash ^= word;
  hash ^= hash >> 16;
  hash *= kMix;
  return hash ^ hash >> 15;
}
/// The hash that absorb() made `absorbed` of with `word`.
inline constexpr u32 kUnmix = 0x1d69e2a5;  // kMix * kUnmix is 1
DOORBELL_INLINE u32 forget(u32 absorbed, u32 word) {
  u32 hash = absorbed ^ absorbed >> 15 ^ absorbed >> 30;
  hash *= kUnmix;
  return hash ^ hash >> 16 ^ word;
}

/// A unit's start but for the last step: it is the same for neighbours.
DOORBELL_INLINE u32 neighbours_hash(const Identity& id) {
  u32 h = absorb(kMagic, static_cast<u32>(id.seed));
  h = absorb(h, static_cast<u32>(id.seed >> 32));
  h = absorb(h, static_cast<u32>(id.sequence >> 32));
  h = absorb(h, static_cast<u32>(id.address >> 32));
  return absorb(h, static_cast<u32>(id.sequence));
}
DOORBELL_INLINE u32 start_of(const Identity& id) {
  return absorb(neighbours_hash(id), static_cast<u32>(id.address));
}

inline constexpr u32 kPolynomial = 0x00400007;
/// One step of the LFSR in three instructions: the bit that falls out, spread over the word, selects the
/// polynomial.
DOORBELL_INLINE u32 step(u32 s) {
  return (s << 1) ^ (static_cast<u32>(static_cast<std::int32_t>(s) >> 31) & kPolynomial);
}

/// Spreads a part's number over a word. A lane that makes one part of many units multiplies once.
inline constexpr u32 kSpread = 0x9e3779b9;

/// Part `part` of a unit as if it had no header. The LFSR's states are never 0, which it cannot leave.
DOORBELL_INLINE Word16 payload_part(u32 start, u32 part) {
  const u32 hash = absorb(start, part * kSpread);
  const u32 a = hash > 1 ? hash : 1;
  const u32 b = step(a);
  const u32 c = step(b);
  return {{a, b, c, step(c)}};
}

/// Part `part` (0..31) of the unit that `id` makes; `start` is start_of(id).
DOORBELL_INLINE Word16 make_part(const Identity& id, u32 start, u32 part) {
  Word16 w = payload_part(start, part);
  const bool header = part < kHeaderParts;
  const u64 low = part == 0 ? (u64{start} << 32) | kMagic : id.address;
  const u64 high = part == 0 ? id.seed : id.sequence;
  // Selected and not branched to: the lanes of a warp stay together.
  w.w[0] = header ? static_cast<u32>(low) : w.w[0];
  w.w[1] = header ? static_cast<u32>(low >> 32) : w.w[1];
  w.w[2] = header ? static_cast<u32>(high) : w.w[2];
  w.w[3] = header ? static_cast<u32>(high >> 32) : w.w[3];
  return w;
}
DOORBELL_INLINE Word16 make_part(const Identity& id, u32 part) {
  return make_part(id, start_of(id), part);
}

/// The identity that a unit's header claims.
DOORBELL_INLINE Identity claimed(const u32* unit) {
  const auto u64_at = [&](u32 word) { return (u64{unit[word + 1]} << 32) | unit[word]; };
  return {u64_at(2), u64_at(4), u64_at(6)};
}

}  // namespace doorbell::pattern
