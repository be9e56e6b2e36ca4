// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A PCI function opened through VFIO: its BARs, its configuration space, the memory it can reach.
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
/// Automatic: the group, unless the kernel has only the other.
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

/// An error of opening what VFIO needs: who has it, who may, what to load.
[[noreturn]] void refuse_open(const Function& f, const std::string& file, int error);

/// What to do on a machine whose IOMMU remaps no interrupts, which VFIO refuses by default.
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

/// Open until destroyed; the kernel resets the function then, if it can. What was mapped from it must be gone
/// before. Thread rule: any thread, except that the configuration space is for one at a time.
class VfioFunction {
 public:
  /// Opens a function that is bound to vfio-pci, alone or with its whole group, and switches its memory space
  /// and bus mastering on. Throws doorbell::Error saying what is in the way and what to do about it.
  /// `gpu`: whose memory it shall reach; may be null.
  VfioFunction(const std::string& address, VfioInterface interface, std::shared_ptr<gpu::Gpu> gpu = nullptr);
  ~VfioFunction();
  VfioFunction(const VfioFunction&) = delete;
  VfioFunction& operator=(const VfioFunction&) = delete;

  [[nodiscard]] const Function& function() const { return function_; }
  [[nodiscard]] std::string interface() const { return connection_->interface(); }
  [[nodiscard]] IommuSpace& address_space() { return space_; }
  /// All of BAR `index`. Throws when the function has none, or the kernel lets no program map it.
  [[nodiscard]] BarMapping map_bar(u32 index) const;
  void read_config(u32 offset, void* to, u32 bytes) const;
  void write_config(u32 offset, const void* from, u32 bytes) const;
  /// Resets the function alone; throws when it cannot be.
  void reset() const;
  /// True once the kernel wants it back: somebody removes it or gives it to another driver. That waits until
  /// this object is gone.
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
