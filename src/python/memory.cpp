// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "memory.hpp"

#include <doorbell/error.hpp>

#include <iterator>
#include <utility>

namespace doorbell::python {

nvme::BlockDevice& OpenDevice::device() {
  const std::scoped_lock lock(mutex_);
  if (device_ == nullptr) throw Error("block device", "it is closed");
  return *device_;
}

bool OpenDevice::closed() {
  const std::scoped_lock lock(mutex_);
  return device_ == nullptr;
}

void OpenDevice::close() {
  const std::scoped_lock lock(mutex_);
  if (device_ == nullptr) return;
  // Whatever end() throws: the queue is gone.
  const auto let_go = [&] {
    for (const auto& [at, array] : arrays_) array->memory_.unmap();
    device_.reset();
  };
  try {
    device_->end();
  } catch (...) {
    let_go();
    throw;
  }
  let_go();
}

nvme::BlockMemory* OpenDevice::holder(const u8* at, u64 bytes) {
  const std::scoped_lock lock(mutex_);
  const auto after = arrays_.upper_bound(at);
  if (after == arrays_.begin()) return nullptr;
  nvme::BlockMemory& memory = std::prev(after)->second->memory_;
  const u64 offset = static_cast<u64>(at - std::prev(after)->first);
  return offset <= memory.bytes() && bytes <= memory.bytes() - offset ? &memory : nullptr;
}

DeviceMemory::DeviceMemory(std::shared_ptr<OpenDevice> owner, u64 bytes, Place place)
    : owner_(std::move(owner)),
      memory_(owner_->device().allocate(bytes, place)),
      address_(place == Place::gpu ? memory_.device() : memory_.host()) {
  const std::scoped_lock lock(owner_->mutex_);
  owner_->arrays_.emplace(address_, this);
}

DeviceMemory::~DeviceMemory() {
  const std::scoped_lock lock(owner_->mutex_);
  owner_->arrays_.erase(address_);
  memory_.unmap();  // while the device cannot be closed
}

}  // namespace doorbell::python
