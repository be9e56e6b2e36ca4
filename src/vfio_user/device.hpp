// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A PCI device as a vfio-user server serves it: its registers, its memory, and how it is reset.
#pragma once

#include <functional>
#include <span>

#include "memory/software_address_space.hpp"
#include "vfio_user/config_space.hpp"
#include "vfio_user/interrupts.hpp"

namespace doorbell::vfio_user {

struct Bar0 {
  u64 bytes = 0;   ///< a power of two
  Area area = {};  ///< a part that clients may map, at the same offset of `file`; empty: none
  int file = -1;
};

/// Thread rule: the server calls one function at a time.
class Device {
 public:
  virtual ~Device() = default;
  [[nodiscard]] virtual PciIdentity identity() const = 0;
  [[nodiscard]] virtual u32 vectors() const = 0;  ///< of MSI-X
  [[nodiscard]] virtual Bar0 bar0() const = 0;
  [[nodiscard]] virtual SoftwareAddressSpace& space() = 0;

  // 0, or an errno. The server has checked that the bytes lie in the BAR.
  [[nodiscard]] virtual int read(u64 offset, std::span<u8> to) = 0;
  [[nodiscard]] virtual int write(u64 offset, std::span<const u8> from) = 0;
  /// How a write is to be made: `at_once` by the thread of the sockets; one that `waits` for the device's
  /// threads by another; one that `ends_work` with what they are doing given up first.
  enum class Way { at_once, waits, ends_work };
  [[nodiscard]] virtual Way way_of_write(u64 offset, std::span<const u8> from) const = 0;

  // These wait for the device's threads.

  /// As after power-on.
  virtual void reset() = 0;
  /// Runs `change`, which maps and unmaps, while the device accesses nothing and raises no interrupt.
  virtual void change_memory(const std::function<void()>& change) = 0;

  /// Where interrupts go from now on; null: nowhere. Threads that are raising one may still use the old one
  /// until change_memory().
  virtual void interrupt_by(Interrupts* interrupts) = 0;
  /// Interrupts whose cause is still there are raised again, soon.
  virtual void raise_again() = 0;
};

}  // namespace doorbell::vfio_user
