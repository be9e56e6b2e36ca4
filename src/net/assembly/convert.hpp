// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Received integers become floating-point numbers: int4, int8, int16 and int32 to fp16, bf16 and fp32,
// rounded to nearest, ties to even. Integer arithmetic only, so that a CPU and a GPU make the same bytes.
#pragma once

#include <doorbell/memory_order.hpp>
#include <doorbell/net/packet.hpp>
#include <doorbell/warp.hpp>

#include <cstring>

namespace doorbell::net {

/// The index of the highest set bit; m must not be 0.
DOORBELL_INLINE u32 highest_bit(u32 m) {
#if defined(DOORBELL_ON_GPU)
  return 31u - static_cast<u32>(__clz(static_cast<int>(m)));
#else
  return 31u - static_cast<u32>(__builtin_clz(m));
#endif
}

/// The bits of the float nearest to `v`, an int32 in two's complement.
template <Float F>
[[nodiscard]] DOORBELL_INLINE u32 float_bits(u32 v) {
  constexpr u32 kFraction = F == Float::fp16 ? 10 : F == Float::bf16 ? 7 : 23;  // bits behind the point
  constexpr u32 kBias = F == Float::fp16 ? 15 : 127;
  constexpr u32 kSign = F == Float::fp32 ? 0x80000000u : 0x8000u;
  if (v == 0) return 0;
  const bool negative = (v >> 31) != 0;
  const u32 magnitude = negative ? 0u - v : v;
  u32 top = highest_bit(magnitude);
  u32 digits;  // 1.fraction, kFraction + 1 bits
  if (top <= kFraction) {
    digits = magnitude << (kFraction - top);
  } else {
    const u32 cut = top - kFraction;
    const u32 rest = magnitude & ((1u << cut) - 1);
    const u32 half = 1u << (cut - 1);
    digits = magnitude >> cut;
    if (rest > half || (rest == half && (digits & 1) != 0)) ++digits;
    if (digits >> (kFraction + 1) != 0) {
      digits >>= 1;
      ++top;
    }
  }
  const u32 sign = negative ? kSign : 0;
  if constexpr (F == Float::fp16)
    if (top > kBias) return sign | 0x7c00u;
  return sign | ((top + kBias) << kFraction) | (digits & ((1u << kFraction) - 1));
}

/// Integer `index` of those that start in the low bits of `words`, extended to an int32's bits.
template <Integer I, bool BigEndian>
[[nodiscard]] DOORBELL_INLINE u32 integer_at(const u64* words, u32 index) {
  constexpr u32 kBits = bits_of(I);
  if (I == Integer::int4 && BigEndian) index ^= 1;
  const u32 at = index * kBits;
  u32 v = static_cast<u32>(words[at / 64] >> (at % 64));
  if constexpr (I == Integer::int16 && BigEndian) v = (v >> 8 & 0xff) | (v & 0xff) << 8;
  if constexpr (I == Integer::int32 && BigEndian)
    v = v >> 24 | (v >> 8 & 0xff00) | (v & 0xff00) << 8 | v << 24;
  if constexpr (kBits < 32) {
    // Two's complement to 32 bits, without a shift of a negative number.
    v &= (1u << kBits) - 1;
    const u32 sign = 1u << (kBits - 1);
    v = (v ^ sign) - sign;
  }
  return v;
}

/// Collective: converts the first `n` integers at `from` into `to`. With both aligned to 16 bytes, a lane
/// makes 16 bytes at a time; any other alignment works too.
template <Integer I, Float F, bool BigEndian, class Warp>
DOORBELL_INLINE void convert_as(const Warp& warp, const u8* from, u64 n, u8* to) {
  constexpr u32 kOut = bytes_of(F);
  constexpr u32 kTogether = 16 / kOut;
  constexpr u32 kIn = kTogether * bits_of(I) / 8;  // 2 to 32 bytes
  u64 done = 0;
  if (((reinterpret_cast<u64>(from) | reinterpret_cast<u64>(to)) & 15) == 0) {
    const u64 vectors = n / kTogether;
    for (u64 i = warp.lane(); i < vectors; i += Warp::size) {
      u64 words[4] = {};
      const u8* const in = from + i * kIn;
      if constexpr (kIn >= 16) {
        for (u32 k = 0; k < kIn / 16; ++k) {
          const Word16 w = load16(reinterpret_cast<const Word16*>(in) + k);
          words[2 * k] = static_cast<u64>(w.w[1]) << 32 | w.w[0];
          words[2 * k + 1] = static_cast<u64>(w.w[3]) << 32 | w.w[2];
        }
      } else {
        memcpy(words, __builtin_assume_aligned(in, kIn), kIn);
      }
      u32 out[4] = {};
      DOORBELL_UNROLL
      for (u32 e = 0; e < kTogether; ++e)
        out[e * kOut / 4] |= float_bits<F>(integer_at<I, BigEndian>(words, e)) << (e * kOut % 4 * 8);
      store16(reinterpret_cast<Word16*>(to) + i, Word16{{out[0], out[1], out[2], out[3]}});
    }
    done = vectors * kTogether;
  }
  for (u64 i = done + warp.lane(); i < n; i += Warp::size) {
    u64 word = 0;
    if constexpr (I == Integer::int4) {
      word = from[i / 2];
      word = float_bits<F>(integer_at<I, BigEndian>(&word, static_cast<u32>(i % 2)));
    } else {
      constexpr u32 kBytes = bits_of(I) / 8;
      for (u32 b = 0; b < kBytes; ++b) word |= static_cast<u64>(from[i * kBytes + b]) << (8 * b);
      word = float_bits<F>(integer_at<I, BigEndian>(&word, 0));
    }
    for (u32 b = 0; b < kOut; ++b) to[i * kOut + b] = static_cast<u8>(word >> (8 * b));
  }
}

template <Integer I, Float F, class Warp>
DOORBELL_INLINE void convert_from_to(const Warp& warp, bool big_endian, const u8* from, u64 n, u8* to) {
  if constexpr (I != Integer::int8)
    if (big_endian) return convert_as<I, F, true>(warp, from, n, to);
  convert_as<I, F, false>(warp, from, n, to);
}

template <Integer I, class Warp>
DOORBELL_INLINE void convert_from(const Warp& warp, const Conversion& c, const u8* from, u64 n, u8* to) {
  switch (c.to) {
    case Float::fp16:
      return convert_from_to<I, Float::fp16>(warp, c.big_endian, from, n, to);
    case Float::bf16:
      return convert_from_to<I, Float::bf16>(warp, c.big_endian, from, n, to);
    case Float::fp32:
      return convert_from_to<I, Float::fp32>(warp, c.big_endian, from, n, to);
  }
}

/// Collective: converts `bytes` bytes at `from` into converted_bytes(c, bytes) at `to`.
template <class Warp>
DOORBELL_INLINE void convert(const Warp& warp, const Conversion& c, const u8* from, u64 bytes, u8* to) {
  const u64 n = elements_in(c.from, bytes);
  switch (c.from) {
    case Integer::int4:
      return convert_from<Integer::int4>(warp, c, from, n, to);
    case Integer::int8:
      return convert_from<Integer::int8>(warp, c, from, n, to);
    case Integer::int16:
      return convert_from<Integer::int16>(warp, c, from, n, to);
    case Integer::int32:
      return convert_from<Integer::int32>(warp, c, from, n, to);
  }
}

}  // namespace doorbell::net
