// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A call's structure in a message on a transfer descriptor.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>

#include <doorbell/config.hpp>

namespace doorbell::qdma::daemon {

/// The versioned size rule for a call's structure: 0, or an errno.
template <class T>
[[nodiscard]] int take_structure(std::span<const u8> bytes, u32 smallest, T& out) {
  u32 size = 0;
  if (bytes.size() < sizeof size) return EFAULT;
  std::memcpy(&size, bytes.data(), sizeof size);
  if (size < smallest) return EINVAL;
  if (size > bytes.size()) return EFAULT;
  const auto own = bytes.first(size);
  if (std::ranges::any_of(own.subspan(std::min<std::size_t>(size, sizeof out)), [](u8 b) { return b != 0; }))
    return E2BIG;
  out = T{};
  std::memcpy(&out, own.data(), std::min<std::size_t>(size, sizeof out));
  return 0;
}

}  // namespace doorbell::qdma::daemon
