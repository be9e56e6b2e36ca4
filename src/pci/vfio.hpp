// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A PCI function opened through VFIO: its BARs, its configuration space, and the memory it can reach.
#pragma once

#include <doorbell/config.hpp>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "pci/function.hpp"
#include "pci/iommu_space.hpp"
#include "system/descriptor.hpp"

namespace doorbell::pci {

/// The kernel has two interfaces: groups with a type 1 container, and device files with iommufd (Linux 6.6).
/// Automatic: the group, unless the kernel has only the other interface.
enum class VfioInterface { automatic, group, iommufd };

/// One interface's view of an open function.
class VfioConnection : public IommuMapper {
 public:
  [[nodiscard]] virtual std::string interface() const = 0;
  /// The descriptor that takes VFIO's device calls.
  [[nodiscard]] virtual int device() const = 0;
};
[[nodiscard]] std::unique_ptr<VfioConnection> connect_group(const Function& f);
[[nodiscard]] std::unique_ptr<VfioConnection> connect_iommufd(const Function& f);

/// Throws the error for a file that VFIO needs and that cannot be opened: who uses it, who may use it, what
/// to load.
[[noreturn]] void refuse_open(const Function& f, const std::string& file, int error);

/// Advice for a machine whose IOMMU does not remap interrupts, which VFIO refuses by default.
[[nodiscard]] std::string unsafe_interrupts(const std::string& module);

/// A BAR mapped into this process.
class BarMapping {
 public:
  BarMapping(u8* base, u64 bytes) : base_(base), bytes_(bytes) {}
  ~BarMapping();
  BarMapping(BarMapping&& other) noexcept
      : base_(std::exchange(other.base_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  BarMapping& operator=(BarMapping&&) = delete;
  [[nodiscard]] u8* base() const { return base_; }
  [[nodiscard]] u64 bytes() const { return bytes_; }

 private:
  u8* base_;
  u64 bytes_;
};

/// The function is open as long as this object lives; then the kernel resets the function, if it can.
/// Mappings must be destroyed before. Thread rule: any thread, but only one at a time may use the
/// configuration space.
class VfioFunction {
 public:
  /// Opens a function that is bound to vfio-pci, alone or with its whole group, and enables its memory space
  /// and bus mastering. Throws doorbell::Error that names the obstacle and what to do about it. `gpu`: the
  /// GPU whose memory the function must reach; may be null.
  VfioFunction(const std::string& address, VfioInterface interface, std::shared_ptr<gpu::Gpu> gpu = nullptr);
  ~VfioFunction();
  VfioFunction(const VfioFunction&) = delete;
  VfioFunction& operator=(const VfioFunction&) = delete;

  [[nodiscard]] const Function& function() const { return function_; }
  [[nodiscard]] std::string interface() const { return connection_->interface(); }
  [[nodiscard]] IommuSpace& address_space() { return space_; }
  /// Maps all of BAR `index`. Throws if the function has no such BAR, or if the kernel lets no program map
  /// it.
  [[nodiscard]] BarMapping map_bar(u32 index) const;
  void read_config(u32 offset, void* to, u32 bytes) const;
  void write_config(u32 offset, const void* from, u32 bytes) const;
  /// Resets only this function; throws if that is impossible.
  void reset() const;
  /// True once the kernel wants the function back, because the user removes it or gives it to another driver.
  /// The kernel then waits until this object is gone.
  [[nodiscard]] bool leaving();

 private:
  void enable() const;
  void watch_requests();

  Function function_;
  std::unique_ptr<VfioConnection> connection_;
  IommuSpace space_;
  Descriptor request_;  // an eventfd that the kernel writes when it wants the function back
  std::atomic<bool> leaving_{false};
};

}  // namespace doorbell::pci
