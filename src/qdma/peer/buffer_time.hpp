// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// How long a host buffer may be on its way.
#pragma once

#include <doorbell/config.hpp>

#include <algorithm>

namespace doorbell::qdma {

inline constexpr double kMostForBufferS = 600;
/// The time that the kernel may take to find the memory of a host buffer on a busy machine, beyond the limit
/// of calls.
[[nodiscard]] inline double seconds_for_buffer(u64 bytes) {
  constexpr double kBytesPerS = 128 << 20;
  return std::min(static_cast<double>(bytes) / kBytesPerS, kMostForBufferS);
}

}  // namespace doorbell::qdma
