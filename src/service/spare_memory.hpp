// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Memory for the time when there is none: what has begun can end, and nothing new is begun.
#pragma once

#include <doorbell/config.hpp>

#include <cstddef>

namespace doorbell::service {

/// Where operator new finds no memory, the process's spare memory is given up once and it tries again. Who
/// begins something asks first whether it is there.
class SpareMemory {
 public:
  static constexpr std::size_t kBytes = std::size_t{4} << 20;

  /// From now on this process has some; for the programs that serve others. Throws std::bad_alloc.
  static void provide();
  /// True also where provide() has not been called. Takes it back if it was given up.
  [[nodiscard]] static bool there() noexcept;
};

}  // namespace doorbell::service
