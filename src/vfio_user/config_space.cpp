// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "vfio_user/config_space.hpp"

#include <algorithm>

namespace doorbell::vfio_user {

namespace {

constexpr u32 kCommand = 0x04, kStatus = 0x06, kBar0 = 0x10, kBar4 = 0x20, kBar5 = 0x24;
constexpr u32 kDeviceControl = 0x08;         // in the PCI Express capability
constexpr u16 kFunctionLevelReset = 0x8000;  // in that register: always read as 0
constexpr u32 kRoleBased = 1u << 15, kFlr = 1u << 28;
constexpr u8 kMemory64 = 4;

}  // namespace

ConfigSpace::ConfigSpace(const PciIdentity& id, u64 bar0_bytes, u32 vectors) {
  set(0x00, id.vendor, 2);
  set(0x02, id.device, 2);
  set(kStatus, 0x0010, 2);  // there are capabilities
  set(0x08, id.revision, 1);
  set(0x09, id.class_code, 3);
  set(kBar0, kMemory64, 1);
  set(0x2c, id.subsystem_vendor, 2);
  set(0x2e, id.subsystem, 2);
  set(0x34, kPm, 1);
  set(0x3d, 1, 1);  // INTA
  // I/O, memory, bus master, parity, SERR and INTx disable are kept as they are written.
  may_write(kCommand, 0x0547, 2);
  may_write(0x0c, 0xffff, 2);  // cache line and latency: of no effect
  may_write(kBar0, ~(bar0_bytes - 1), 8);
  may_write(kBar4, ~u64{kTableBytes - 1}, 4);
  may_write(kBar5, ~u64{kTableBytes - 1}, 4);
  may_write(0x3c, 0xff, 1);
  // Power management, version 3. No state is lost on the way from D3 to D0.
  set(kPm, 0x01 | kExpress << 8 | 0x0003 << 16, 4);
  set(kPm + 4, 0x0008, 2);
  may_write(kPm + 4, 0x0003, 2);
  // PCI Express endpoint, version 2, of one lane.
  set(kExpress, 0x10 | kMsix << 8 | 0x0002 << 16, 4);
  set(kExpress + 4, kRoleBased | kFlr, 4);
  set(kExpress + 0x0c, 0x11, 4);
  set(kExpress + 0x12, 0x11, 2);
  set(kExpress + 0x24, 0x10, 4);
  may_write(kExpress + kDeviceControl, 0xffff, 2);
  may_write(kExpress + 0x10, 0x0fff, 2);
  may_write(kExpress + 0x28, 0xffff, 2);
  may_write(kExpress + 0x30, 0xffff, 2);
  // MSI-X: the table in BAR 4, the pending bits in BAR 5.
  set(kMsix, 0x11 | (vectors - 1) << 16, 4);
  set(kMsix + 4, 4, 4);
  set(kMsix + 8, 5, 4);
  may_write(kMsix + 2, 0xc000, 2);
  reset();
}

void ConfigSpace::set(u32 at, u64 value, u32 bytes) {
  for (u32 i = 0; i < bytes; ++i) initial_[at + i] = static_cast<u8>(value >> (8 * i));
}

void ConfigSpace::may_write(u32 at, u64 mask, u32 bytes) {
  for (u32 i = 0; i < bytes; ++i) mask_[at + i] = static_cast<u8>(mask >> (8 * i));
}

void ConfigSpace::read(u32 offset, std::span<u8> to) const {
  std::copy_n(bytes_.begin() + offset, to.size(), to.begin());
}

ConfigSpace::Changes ConfigSpace::write(u32 offset, std::span<const u8> from) {
  const u16 command = half(kCommand), control = half(kMsix + 2);
  for (std::size_t i = 0; i < from.size(); ++i) {
    u8& byte = bytes_[offset + i];
    const u8 mask = mask_[offset + i];
    byte = static_cast<u8>((byte & ~mask) | (from[i] & mask));
  }
  Changes c;
  if ((half(kExpress + kDeviceControl) & kFunctionLevelReset) != 0) {
    reset();
    c.reset = true;
  }
  c.interrupts = ((half(kCommand) ^ command) & 0x400) != 0 || half(kMsix + 2) != control;
  return c;
}

void ConfigSpace::reset() {
  bytes_ = initial_;
}

u64 ConfigSpace::bar0() const {
  u64 value = 0;
  for (u32 i = 0; i < 8; ++i) value |= u64{bytes_[kBar0 + i]} << (8 * i);
  value &= ~u64{0xf};
  const bool memory = (half(kCommand) & 2) != 0;
  return memory ? value : 0;
}

}  // namespace doorbell::vfio_user
