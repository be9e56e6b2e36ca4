// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "nvme/qemu/memory.hpp"

#include <doorbell/error.hpp>

namespace doorbell::nvme {

QemuMemory::QemuMemory() : arena_(SharedArena::make("QEMU")) {}

Region QemuMemory::allocate(Place place, u64 bytes, std::shared_ptr<gpu::Gpu> gpu) {
  return arena_->allocate(place, bytes, std::move(gpu));
}

Iova QemuMemory::map(const Region& region, Access) {
  const Iova at = reinterpret_cast<Iova>(region.host());
  if (!holds(at, region.bytes()))
    throw Error("mapping a region for a QEMU controller", "it is not memory that is shared with QEMU");
  return at;
}

bool QemuMemory::holds(Iova at, u64 n) const {
  return arena_->holds(reinterpret_cast<const u8*>(at), n);
}

}  // namespace doorbell::nvme
