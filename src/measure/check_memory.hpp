// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The memory of a CPU's check ring.
#pragma once

#include <bit>
#include <vector>

#include "loop/check_ring.hpp"

namespace doorbell::measure {

/// The entries that a ring for `window` operations has.
[[nodiscard]] constexpr u32 check_capacity(u32 window) {
  return std::bit_ceil(window < 2 ? 2 : window);
}

/// How many bytes a checker thread takes at a time, and how many small payloads at most.
inline constexpr u64 kCheckedTogether = 32768;
inline constexpr u32 kMostTogether = 32;

/// A ring in host memory. Moving it leaves the ring where it is.
class CheckMemory {
 public:
  CheckMemory() = default;
  /// `checkers`: threads; 0: the loop does their work.
  CheckMemory(u32 window, u32 checkers)
      : words_(CheckRing::bytes(check_capacity(window), checkers) / sizeof(Line) + 2) {
    ring_.words = words_.front().words;
    ring_.capacity = check_capacity(window);
    ring_.checkers = checkers;
  }

  /// The ring for the next phase, with operations of `payload_bytes`.
  [[nodiscard]] const CheckRing& next_phase(u64 payload_bytes) {
    ring_.share(payload_bytes, kCheckedTogether, kMostTogether);
    ++ring_.epoch;
    return ring_;
  }

 private:
  struct alignas(128) Line {
    u64 words[16];
  };
  std::vector<Line> words_;
  CheckRing ring_;
};

}  // namespace doorbell::measure
