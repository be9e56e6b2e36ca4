// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The kernel's pools of huge pages.
#pragma once

#include <doorbell/config.hpp>

#include <string>

namespace doorbell {

inline constexpr u64 kHuge2M = u64{1} << 21;
inline constexpr u64 kHuge1G = u64{1} << 30;

struct HugePages {
  u64 total = 0;
  u64 free = 0;
  std::string control_file;  ///< write the wanted total here
};

/// The pool of one page size; zeros if the kernel has no such pool. Never throws.
[[nodiscard]] HugePages huge_pages(u64 page_bytes);

}  // namespace doorbell
