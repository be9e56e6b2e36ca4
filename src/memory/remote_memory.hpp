// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Memory of another process that is not shared with this one: it is reached by asking that process.
#pragma once

#include <doorbell/address_space.hpp>

#include <functional>

namespace doorbell {

class RemoteMemory {
 public:
  virtual ~RemoteMemory() = default;
  /// Waits for the other process, but not for ever. False: it refuses, has gone or does not answer. Any
  /// thread. `meanwhile`, unless it is empty, is called again and again while the thread waits: the other
  /// process may answer only after something else that this thread has a part in.
  [[nodiscard]] virtual bool read(Iova from, void* to, u64 bytes, const std::function<void()>& meanwhile) = 0;
  [[nodiscard]] virtual bool write(Iova to, const void* from, u64 bytes,
                                   const std::function<void()>& meanwhile) = 0;
};

}  // namespace doorbell
