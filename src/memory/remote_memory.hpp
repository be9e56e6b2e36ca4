// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Memory of another process that is not shared with this one: it is reached by asking that process.
#pragma once

#include <doorbell/address_space.hpp>

namespace doorbell {

class RemoteMemory {
 public:
  virtual ~RemoteMemory() = default;
  /// Waits for the other process, but not for ever. False: it refuses, has gone or does not answer. Any
  /// thread.
  [[nodiscard]] virtual bool read(Iova from, void* to, u64 bytes) = 0;
  [[nodiscard]] virtual bool write(Iova to, const void* from, u64 bytes) = 0;
};

}  // namespace doorbell
