// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A ring of memory that is mapped twice, one mapping behind the other, so that what passes its end lies in
// one piece all the same.
#pragma once

#include <doorbell/region.hpp>

namespace doorbell::net::sockets {

class MirroredRing {
 public:
  /// `bytes` is rounded up to whole pages of the place, which is not Place::gpu. Throws Error.
  MirroredRing(Place place, u64 bytes, std::shared_ptr<gpu::Gpu> gpu = nullptr);

  /// Bytes base() .. base() + 2 * bytes() - 1 may be used; byte i and byte i + bytes() are the same.
  [[nodiscard]] u8* base() const { return memory_.host(); }
  [[nodiscard]] u64 bytes() const { return memory_.bytes() / 2; }

 private:
  Region memory_;
};

}  // namespace doorbell::net::sockets
