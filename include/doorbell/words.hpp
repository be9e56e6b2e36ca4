// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Words of wire formats, and payload that travels inside a ring.
#pragma once

#include <doorbell/memory_order.hpp>

namespace doorbell {

[[nodiscard]] DOORBELL_INLINE u32 low(u64 v) {
  return static_cast<u32>(v);
}
[[nodiscard]] DOORBELL_INLINE u32 high(u64 v) {
  return static_cast<u32>(v >> 32);
}
[[nodiscard]] DOORBELL_INLINE u64 join(u32 upper, u32 lower) {
  return static_cast<u64>(upper) << 32 | lower;
}

[[nodiscard]] DOORBELL_INLINE Word16 words(u64 first, u64 second) {
  return {{low(first), high(first), low(second), high(second)}};
}
[[nodiscard]] DOORBELL_INLINE Word16 pick(bool first, const Word16& a, const Word16& b) {
  return {
      {first ? a.w[0] : b.w[0], first ? a.w[1] : b.w[1], first ? a.w[2] : b.w[2], first ? a.w[3] : b.w[3]}};
}

/// The smallest power of two that is no less than n; n is at most 2^31.
[[nodiscard]] DOORBELL_INLINE constexpr u32 power_of_two_from(u32 n) {
  u32 v = 1;
  while (v < n) v <<= 1;
  return v;
}

// --- inlined payload -------------------------------------------------------------------------------

/// Payload bytes at..at+3 as they lie in memory, zeros behind the end. `at` may lie behind the end.
[[nodiscard]] DOORBELL_INLINE u32 payload_word(const u8* payload, u32 bytes, u32 at) {
  const u32 left = at < bytes ? bytes - at : 0;
  if (left == 0) return 0;
  const u8* const from = payload + at;
  if (left >= 4) {
    u32 v;
#if defined(DOORBELL_ON_GPU)
    // A GPU faults on a misaligned word.
    if ((reinterpret_cast<std::uintptr_t>(from) & 3) == 0) return *reinterpret_cast<const u32*>(from);
    v = u32{from[0]} | u32{from[1]} << 8 | u32{from[2]} << 16 | u32{from[3]} << 24;
#else
    std::memcpy(&v, from, sizeof v);
#endif
    return v;
  }
  u32 v = from[0];
  if (left > 1) v |= u32{from[1]} << 8;
  if (left > 2) v |= u32{from[2]} << 16;
  return v;
}

/// Payload bytes at..at+15, zeros behind the end.
[[nodiscard]] DOORBELL_INLINE Word16 payload_part(const u8* payload, u32 bytes, u32 at) {
#if !defined(DOORBELL_ON_GPU)
  if (at < bytes && bytes - at >= sizeof(Word16)) {
    Word16 v;
    std::memcpy(&v, payload + at, sizeof v);
    return v;
  }
#endif
  return {{payload_word(payload, bytes, at), payload_word(payload, bytes, at + 4),
           payload_word(payload, bytes, at + 8), payload_word(payload, bytes, at + 12)}};
}

}  // namespace doorbell
