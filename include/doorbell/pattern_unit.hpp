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

#include <cstring>

namespace doorbell::pattern {

/// @name A unit's sizes
/// @{
inline constexpr u32 kUnitBytes = 512;
inline constexpr u32 kUnitWords = kUnitBytes / 4;
inline constexpr u32 kParts = kUnitBytes / 16;  ///< 16-byte parts; a 32-lane warp holds one a lane
inline constexpr u32 kHeaderWords = 8;
inline constexpr u32 kHeaderParts = 2;
/// @}
/// "DBL2"; the digit is the pattern's version.
inline constexpr u32 kMagic = 0x324c4244;

/// Who a unit is. `address` is a byte address on the device; `sequence` grows with each rewrite.
struct Identity {
  u64 seed = 0;      ///< of the run that wrote it
  u64 address = 0;   ///< in bytes, a multiple of 512; or kNoAddress
  u64 sequence = 0;  ///< the rewrite
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

/// The odd multiplier of absorb().
inline constexpr u32 kMix = 0x7feb352d;
/// Hashes one more word. One to one in `word` and in `hash`: what differs in one word only has another hash.
DOORBELL_INLINE u32 absorb(u32 hash, u32 word) {
  hash ^= word;
  hash ^= hash >> 16;
  hash *= kMix;
  return hash ^ hash >> 15;
}
/// The inverse of kMix modulo 2^32.
inline constexpr u32 kUnmix = 0x1d69e2a5;
/// The hash that absorb() made `absorbed` of with `word`.
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
/// A unit's start: the hash of its identity, on which every word of it depends.
DOORBELL_INLINE u32 start_of(const Identity& id) {
  return absorb(neighbours_hash(id), static_cast<u32>(id.address));
}

/// x^22 + x^2 + x + 1: the LFSR's, without x^32.
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
/// The same for one part alone.
DOORBELL_INLINE Word16 make_part(const Identity& id, u32 part) {
  return make_part(id, start_of(id), part);
}

/// The identity that a unit's header claims.
DOORBELL_INLINE Identity claimed(const u32* unit) {
  const auto u64_at = [&](u32 word) { return (u64{unit[word + 1]} << 32) | unit[word]; };
  return {u64_at(2), u64_at(4), u64_at(6)};
}

}  // namespace doorbell::pattern

// Version 1 of the test pattern, which earlier doorbells wrote: made only to tell a unit of it from a damaged
// one. Its header is that of version 2 with another magic; what follows is one walk of the LFSR, a step a
// word.
namespace doorbell::pattern::version1 {

/// "DBL1".
inline constexpr u32 kMagic = 0x314c4244;

/// The first state of a unit's walk, never 0.
DOORBELL_INLINE u32 start_of(const Identity& id) {
  const u64 h = mix64(id.seed ^ mix64(id.address ^ mix64(id.sequence)));
  const u32 s = static_cast<u32>(h ^ (h >> 32));
  return s != 0 ? s : 1;
}

/// A whole unit by one lane; `out` has kUnitWords words.
DOORBELL_INLINE void make_unit(u32* out, const Identity& id) {
  const u32 start = version1::start_of(id);
  const u64 header[] = {u64{start} << 32 | kMagic, id.seed, id.address, id.sequence};
  for (u32 w = 0; w < kHeaderWords; ++w) out[w] = static_cast<u32>(header[w / 2] >> (w % 2 * 32));
  u32 s = start;
  DOORBELL_NO_UNROLL
  for (u32 w = kHeaderWords; w < kUnitWords; ++w) out[w] = s = step(s);
}

/// A whole and undamaged unit of version 1, whatever it claims to be.
DOORBELL_NOINLINE bool is_unit(const u32* unit) {
  if (unit[0] != kMagic) return false;
  u32 s = version1::start_of(claimed(unit));
  u32 wrong = unit[1] ^ s;
  DOORBELL_NO_UNROLL
  for (u32 w = kHeaderWords; w < kUnitWords; ++w) {
    s = step(s);
    wrong |= unit[w] ^ s;
  }
  return wrong == 0;
}

/// True for a damaged unit, whatever its damage has left of the header: half of its walk is left in one
/// piece. (Tables of masks are shorter walks.) One lane.
DOORBELL_INLINE bool is_remnant(const u32* unit) {
  constexpr u32 kSteps = (kUnitWords - kHeaderWords) / 2 - 1;
  u32 steps = 0;
  DOORBELL_NO_UNROLL
  for (u32 w = kHeaderWords; w + 1 < kUnitWords; ++w) {
    steps = unit[w] != 0 && unit[w + 1] == step(unit[w]) ? steps + 1 : 0;
    if (steps == kSteps) return true;
  }
  return false;
}

}  // namespace doorbell::pattern::version1

// --- by a CPU's vectors -----------------------------------------------------------------------------------
// In the compiler's own vector types: one source for 16 bytes (SSE2, NEON) and 32 (AVX2). Each call chooses
// by what the CPU has. Host only.

// Code that a GPU compiler reads has no use for these vectors: lanes make their parts by make_part().
#if !defined(__CUDACC__) && !defined(__HIPCC__)
#define DOORBELL_CPU_VECTORS 1

namespace doorbell::pattern::cpu {

// Always inlined, whatever the build: a vector must not be handed over between a function that has its
// registers and one that has not.
#define DOORBELL_VECTORS inline __attribute__((always_inline))

/// N lanes of 32 bits; `InMemory` is the same at any place in an array of words. The interleaving is within
/// each 16 bytes, of words and of pairs of words.
template <u32 N>
struct Vector;

template <>
struct Vector<4> {
  typedef u32 Words __attribute__((vector_size(16)));
  typedef std::int32_t Signed __attribute__((vector_size(16)));
  typedef u32 InMemory __attribute__((vector_size(16), aligned(4), may_alias));
  static DOORBELL_VECTORS void words(Words& low, Words& high, const Words& a, const Words& b) {
    low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
    high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  }
  static DOORBELL_VECTORS void pairs(Words& low, Words& high, const Words& a, const Words& b) {
    low = __builtin_shufflevector(a, b, 0, 1, 4, 5);
    high = __builtin_shufflevector(a, b, 2, 3, 6, 7);
  }
};

template <>
struct Vector<8> {
  typedef u32 Words __attribute__((vector_size(32)));
  typedef std::int32_t Signed __attribute__((vector_size(32)));
  typedef u32 InMemory __attribute__((vector_size(32), aligned(4), may_alias));
  static DOORBELL_VECTORS void words(Words& low, Words& high, const Words& a, const Words& b) {
    low = __builtin_shufflevector(a, b, 0, 8, 1, 9, 4, 12, 5, 13);
    high = __builtin_shufflevector(a, b, 2, 10, 3, 11, 6, 14, 7, 15);
  }
  static DOORBELL_VECTORS void pairs(Words& low, Words& high, const Words& a, const Words& b) {
    low = __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13);
    high = __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15);
  }
};

template <u32 N>
DOORBELL_VECTORS void step(typename Vector<N>::Words& to, const typename Vector<N>::Words& s) {
  using Words = typename Vector<N>::Words;
  to = (s + s) ^ (reinterpret_cast<Words>(reinterpret_cast<typename Vector<N>::Signed>(s) < 0) & kPolynomial);
}

/// Parts first .. first + N - 1, as four vectors in the order of memory. Lane l makes part (l % 4) * (N / 4)
/// + l / 4 of them: then a transposition within each 16 bytes is enough.
template <u32 N>
DOORBELL_VECTORS void make(typename Vector<N>::Words (&out)[4], u32 start, u32 first) {
  using Words = typename Vector<N>::Words;
  Words a = {}, b, c, d;
  for (u32 l = 0; l < N; ++l) a[l] = (first + l % 4 * (N / 4) + l / 4) * kSpread;
  a ^= start;
  a ^= a >> 16;
  a *= kMix;
  a ^= a >> 15;
  a -= reinterpret_cast<Words>(a == 0);  // a state of 0 becomes 1
  step<N>(b, a);
  step<N>(c, b);
  step<N>(d, c);
  Words ab[2], cd[2];
  Vector<N>::words(ab[0], ab[1], a, b);
  Vector<N>::words(cd[0], cd[1], c, d);
  Vector<N>::pairs(out[0], out[1], ab[0], cd[0]);
  Vector<N>::pairs(out[2], out[3], ab[1], cd[1]);
}

/// Goes through neighbouring units: the hash of what they share is made once.
class Starts {
 public:
  DOORBELL_VECTORS explicit Starts(const Identity& id) : id_(id), hash_(neighbours_hash(id)) {}
  [[nodiscard]] DOORBELL_VECTORS const Identity& id() const { return id_; }
  [[nodiscard]] DOORBELL_VECTORS u32 start() const { return absorb(hash_, static_cast<u32>(id_.address)); }
  DOORBELL_VECTORS void next() {
    id_.address += kUnitBytes;
    if (static_cast<u32>(id_.address) < kUnitBytes) hash_ = neighbours_hash(id_);
  }

 private:
  Identity id_;
  u32 hash_;
};

template <u32 N>
DOORBELL_VECTORS void fill_units(u32* unit, u64 n, const Identity& first) {
  using L = Vector<N>;
  typename L::Words made[4];
  for (Starts at(first); n > 0; --n, unit += kUnitWords, at.next()) {
    const u32 start = at.start();
    const u64 header[] = {u64{start} << 32 | kMagic, at.id().seed, at.id().address, at.id().sequence};
    for (u32 p = 0; p < kParts; p += N) {
      make<N>(made, start, p);
      for (u32 i = 0; i < 4; ++i) *reinterpret_cast<typename L::InMemory*>(unit + p * 4 + i * N) = made[i];
    }
    std::memcpy(unit, header, sizeof header);
  }
}

/// How many units from the first on are what they should be.
template <u32 N>
[[nodiscard]] DOORBELL_VECTORS u64 same_units(const u32* unit, u64 n, const Identity& first) {
  using L = Vector<N>;
  typename L::Words made[4];
  Starts at(first);
  for (u64 done = 0; done < n; ++done, unit += kUnitWords, at.next()) {
    const u32 start = at.start();
    const u64 header[] = {u64{start} << 32 | kMagic, at.id().seed, at.id().address, at.id().sequence};
    u64 seen[4];
    std::memcpy(seen, unit, sizeof seen);
    u64 wrong = 0;
    for (u32 i = 0; i < 4; ++i) wrong |= seen[i] ^ header[i];
    typename L::Words differ = {};
    for (u32 p = 0; p < kParts; p += N) {
      make<N>(made, start, p);
      for (u32 i = 0; i < 4; ++i) {
        const typename L::Words here = *reinterpret_cast<const typename L::InMemory*>(unit + p * 4 + i * N);
        if (p * 4 + i * N >= kHeaderWords) differ |= made[i] ^ here;
      }
    }
    u64 halves[N / 2];
    std::memcpy(halves, &differ, sizeof halves);
    for (const u64 h : halves) wrong |= h;
    if (wrong != 0) return done;
  }
  return n;
}

inline void fill_plain(u32* unit, u64 n, const Identity& first) {
  fill_units<4>(unit, n, first);
}
[[nodiscard]] inline u64 same_plain(const u32* unit, u64 n, const Identity& first) {
  return same_units<4>(unit, n, first);
}

#if defined(__x86_64__)
[[gnu::target("avx2")]] inline void fill_avx2(u32* unit, u64 n, const Identity& first) {
  fill_units<8>(unit, n, first);
}
[[nodiscard, gnu::target("avx2")]] inline u64 same_avx2(const u32* unit, u64 n, const Identity& first) {
  return same_units<8>(unit, n, first);
}
[[nodiscard]] inline bool has_avx2() {
  return __builtin_cpu_supports("avx2") != 0;
}
#endif

/// Writes `n` neighbouring units, of which `first` names the first.
inline void fill(u32* unit, u64 n, const Identity& first) {
#if defined(__x86_64__)
  if (has_avx2()) {
    fill_avx2(unit, n, first);
    return;
  }
#endif
  fill_plain(unit, n, first);
}

/// How many of `n` neighbouring units, from the first on, are byte for byte what they should be.
[[nodiscard]] inline u64 same(const u32* unit, u64 n, const Identity& first) {
#if defined(__x86_64__)
  if (has_avx2()) return same_avx2(unit, n, first);
#endif
  return same_plain(unit, n, first);
}

#undef DOORBELL_VECTORS

}  // namespace doorbell::pattern::cpu

#endif
