// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The pattern's units by a CPU's vectors, in the compiler's own vector types: one source for 16 bytes (SSE2,
// NEON) and 32 (AVX2). Each call chooses by what the CPU has. Host only.
#pragma once

#include <doorbell/pattern_unit.hpp>

#include <cstring>

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
