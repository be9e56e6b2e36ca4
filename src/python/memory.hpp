// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Memory of a device that arrays of Python stand on.
#pragma once

#include <doorbell/nvme/block_device.hpp>

#include <map>
#include <memory>
#include <mutex>
#include <optional>

namespace doorbell::python {

class DeviceMemory;

/// A device and the arrays in its memory, which may outlive it. Thread rule: any thread; an array ends
/// wherever its last user is.
class OpenDevice {
 public:
  explicit OpenDevice(std::unique_ptr<nvme::BlockDevice> device) : device_(std::move(device)) {}

  /// Throws Error once it is closed.
  [[nodiscard]] nvme::BlockDevice& device();
  /// Takes the memory from the device, which uses it no more, and closes it. Arrays keep their contents.
  void close();
  [[nodiscard]] bool closed();

  /// The memory in which [at, at + bytes) lies; null if it is none of the device's.
  [[nodiscard]] nvme::BlockMemory* holder(const u8* at, u64 bytes);

 private:
  friend class DeviceMemory;
  std::mutex mutex_;  // of all below; never held while data moves
  std::unique_ptr<nvme::BlockDevice> device_;
  std::map<const u8*, DeviceMemory*> arrays_;  // by address
};

/// The memory of one array.
class DeviceMemory {
 public:
  DeviceMemory(std::shared_ptr<OpenDevice> owner, u64 bytes, Place place);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  /// On the host, or, of GPU memory, on the GPU.
  [[nodiscard]] u8* address() const { return address_; }

 private:
  friend class OpenDevice;
  std::shared_ptr<OpenDevice> owner_;
  nvme::BlockMemory memory_;
  u8* address_;
};

}  // namespace doorbell::python
