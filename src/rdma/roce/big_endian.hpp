// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Big-endian numbers of any width in bytes, as headers have them.
#pragma once

#include <doorbell/config.hpp>

namespace doorbell::roce {

template <std::size_t Bytes>
inline void store(u8* to, u64 value) {
  for (std::size_t i = 0; i < Bytes; ++i) to[i] = static_cast<u8>(value >> (8 * (Bytes - 1 - i)));
}
template <std::size_t Bytes>
[[nodiscard]] inline u64 load(const u8* from) {
  u64 value = 0;
  for (std::size_t i = 0; i < Bytes; ++i) value = value << 8 | from[i];
  return value;
}

}  // namespace doorbell::roce
