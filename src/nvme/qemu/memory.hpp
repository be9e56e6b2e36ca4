// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Memory that a QEMU process shares.
#pragma once

#include <doorbell/address_space.hpp>

#include <memory>

#include "memory/shared_arena.hpp"

namespace doorbell::nvme {

/// The bus address of a byte is its address in this process. What the device may do with a mapping is not
/// enforced: QEMU reaches the whole memfd at any time.
class QemuMemory final : public AddressSpace {
 public:
  QemuMemory();

  [[nodiscard]] Iova map(const Region& region, Access access) override;
  void unmap(Iova) noexcept override {}
  [[nodiscard]] Region allocate(Place place, u64 bytes, std::shared_ptr<gpu::Gpu> gpu) override;

  [[nodiscard]] int fd() const { return arena_->fd(); }
  [[nodiscard]] u8* base() const { return arena_->base(); }
  [[nodiscard]] u64 bytes() const { return arena_->bytes(); }
  /// True when all of [at, at + n) may be read through its address.
  [[nodiscard]] bool holds(Iova at, u64 n) const;

 private:
  std::shared_ptr<SharedArena> arena_;
};

}  // namespace doorbell::nvme
