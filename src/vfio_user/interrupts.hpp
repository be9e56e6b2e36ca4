// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The interrupts of a served device: the client's eventfds, and which may be written.
#pragma once

#include <array>
#include <atomic>
#include <span>
#include <vector>

#include "system/descriptor.hpp"
#include "vfio_user/event_signal.hpp"
#include "vfio_user/wire.hpp"

namespace doorbell::vfio_user {

/// Device threads raise; one other thread at a time changes. A vector of MSI-X that cannot be delivered waits
/// until it can. The pin INTx does not: when it can be asserted again, the device is asked.
class Interrupts {
 public:
  static constexpr u32 kMostVectors = 256;
  explicit Interrupts(u32 vectors) : vectors_(vectors) {}

  [[nodiscard]] u32 count(u32 type) const;
  /// Any thread of the device, after what it tells of can be seen. Neither waits nor throws.
  void raise(u32 vector);

  /// As configuration space has them. Afterwards the device is asked to raise again.
  void allow(bool msix, bool msix_masked, bool intx);
  /// SET_IRQS, checked. `files` are the client's; those that are taken are moved from. 0, or an errno.
  /// Afterwards the device is asked to raise again if it is about INTx.
  [[nodiscard]] int set(const IrqSet& set, std::span<const u8> data, std::span<Descriptor> files);
  /// Nothing is connected, pending or allowed any more.
  void reset();
  /// A device reset: nothing is pending; eventfds stay.
  void forget_pending();
  /// Closes what set() and reset() have replaced. The device's threads have rested since.
  void close_replaced() { replaced_.clear(); }
  [[nodiscard]] bool has_replaced() const { return !replaced_.empty(); }

  /// The pending bits, as MSI-X has them.
  [[nodiscard]] u64 pending(u32 word) const { return pending_[word].load(); }
  [[nodiscard]] u64 raised() const { return raised_.load(std::memory_order_relaxed); }
  [[nodiscard]] u64 delivered() const { return delivered_.load(std::memory_order_relaxed); }
  [[nodiscard]] u32 connected() const;
  /// False: a client that makes its eventfds blocking, and full, can hold up what raises.
  [[nodiscard]] bool never_wait() const { return signals_.never_waits(); }

 private:
  struct Line {
    Descriptor file;
    std::atomic<int> fd{-1};
  };
  void connect(Line& line, Descriptor file);
  void deliver_msix(u32 vector);
  void signal(int fd);

  u32 vectors_;
  std::array<Line, kMostVectors> msix_;
  Line intx_, err_, req_;
  std::atomic<bool> msix_allowed_{false}, msix_masked_{false}, intx_allowed_{true};
  std::atomic<bool> intx_asserted_{false};  ///< until the client says that it has ended
  std::array<std::atomic<u64>, kMostVectors / 64> pending_{};
  std::atomic<u64> raised_{0}, delivered_{0};
  std::vector<Descriptor> replaced_;
  EventSignal signals_;
};

}  // namespace doorbell::vfio_user
