// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A copy past the cache, for memory that is larger than it.
#pragma once

#include <doorbell/config.hpp>

#include <cstring>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace doorbell {

/// Copies like memcpy(). The lines of `to` are not read first and do not go into the cache, which saves a
/// third of the memory's traffic where they are not in the cache. The last bytes are seen last, for a reader
/// that waits for them, and later stores of this thread after the copy. Without SSE2 it is memcpy().
inline void stream_copy(u8* to, const u8* from, u64 bytes) {
#ifdef __SSE2__
  const u64 head = (16 - reinterpret_cast<u64>(to) % 16) % 16;
  if (bytes > head + 64) {
    std::memcpy(to, from, head);
    u64 at = head;
    for (; at + 64 < bytes; at += 64) {
      const auto* const in = reinterpret_cast<const __m128i*>(from + at);
      auto* const out = reinterpret_cast<__m128i*>(to + at);
      const __m128i a = _mm_loadu_si128(in), b = _mm_loadu_si128(in + 1), c = _mm_loadu_si128(in + 2),
                    d = _mm_loadu_si128(in + 3);
      _mm_stream_si128(out, a);
      _mm_stream_si128(out + 1, b);
      _mm_stream_si128(out + 2, c);
      _mm_stream_si128(out + 3, d);
    }
    // Streaming stores are ordered with nothing; neither the last bytes' store nor a completion's may pass
    // them.
    _mm_sfence();
    std::memcpy(to + at, from + at, bytes - at);
    return;
  }
#endif
  std::memcpy(to, from, bytes);
}

}  // namespace doorbell
