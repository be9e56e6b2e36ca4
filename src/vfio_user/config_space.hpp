// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The PCI configuration space of a served device: what drivers of others read and write there. Pure state.
#pragma once

#include <array>
#include <span>

#include "vfio_user/wire.hpp"

namespace doorbell::vfio_user {

struct PciIdentity {
  u16 vendor = 0, device = 0, subsystem_vendor = 0, subsystem = 0;
  u8 revision = 0;
  u32 class_code = 0;  ///< base class, sub-class and interface: 0x010802
};

/// BAR 0 (64-bit memory), MSI-X table and pending bits in BARs 4 and 5, power management, PCI Express with
/// function level reset, and MSI-X.
class ConfigSpace {
 public:
  static constexpr u32 kBytes = 4096, kCapability = 0x40;

  /// `bar0_bytes`: a power of two. `vectors`: of MSI-X, at most 256.
  ConfigSpace(const PciIdentity& identity, u64 bar0_bytes, u32 vectors);

  struct Changes {
    bool reset = false;       ///< a function level reset was asked for
    bool interrupts = false;  ///< whether and how interrupts may be raised
  };
  /// The caller has checked that the bytes lie in the space.
  void read(u32 offset, std::span<u8> to) const;
  /// Bits that are read-only stay; any bytes may be written together.
  Changes write(u32 offset, std::span<const u8> from);
  /// As after power-on. After a function level reset too.
  void reset();

  [[nodiscard]] bool msix_enabled() const { return (half(kMsix + 2) & 0x8000) != 0; }
  [[nodiscard]] bool msix_masked() const { return (half(kMsix + 2) & 0x4000) != 0; }
  [[nodiscard]] bool intx_enabled() const { return (half(4) & 0x400) == 0; }
  [[nodiscard]] bool bus_master() const { return (half(4) & 4) != 0; }
  /// The addresses that BAR 0 has; 0 while it has none, or while the driver sizes it.
  [[nodiscard]] u64 bar0() const;
  static constexpr u32 kTableBytes = 4096;

 private:
  static constexpr u32 kPm = 0x40, kExpress = 0x48, kMsix = 0x84;
  [[nodiscard]] u16 half(u32 at) const { return static_cast<u16>(bytes_[at] | bytes_[at + 1] << 8); }
  void set(u32 at, u64 value, u32 bytes);
  void may_write(u32 at, u64 mask, u32 bytes);

  std::array<u8, kBytes> initial_{}, bytes_{}, mask_{};
};

}  // namespace doorbell::vfio_user
