// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Where bytes that a device moves lie.
#pragma once

#include <doorbell/config.hpp>

namespace doorbell::model {

/// Bytes that a device has looked up: a host address or, in GPU memory, an address that only the GPU can use.
/// Has no initialisers, because hot paths keep arrays of it.
struct DmaPlace {
  u8* address;  ///< host address, or GPU address when `gpu`
  u8* device;   ///< the GPU's address; null for host memory that it cannot reach
  bool gpu;
  [[nodiscard]] DOORBELL_INLINE DmaPlace operator+(u64 n) const {
    return {address + n, device == nullptr ? nullptr : device + n, gpu};
  }
};

}  // namespace doorbell::model
