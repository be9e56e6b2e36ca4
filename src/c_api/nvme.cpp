// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <doorbell/doorbell.h>
#include <doorbell/nvme/block_device.hpp>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string>

#include "c_api/error.hpp"

struct doorbell_nvme {
  std::unique_ptr<doorbell::nvme::BlockDevice> device;
  std::string name;
  std::map<const doorbell::u8*, doorbell::nvme::BlockMemory> memory;  // by its first byte; freed first

  /// The memory that all `bytes` from `data` lie in; null for other memory.
  doorbell::nvme::BlockMemory* holder(const void* data, doorbell::u64 bytes) {
    const auto* const at = static_cast<const doorbell::u8*>(data);
    auto next = memory.upper_bound(at);
    if (next == memory.begin()) return nullptr;
    --next;
    const auto offset = static_cast<doorbell::u64>(at - next->first);
    const bool inside = offset <= next->second.bytes() && bytes <= next->second.bytes() - offset;
    return inside && offset % 4 == 0 ? &next->second : nullptr;
  }
};

namespace {

using doorbell::c_api::guarded;
using doorbell::c_api::require;

doorbell::nvme::BlockOptions options_of(const doorbell_nvme_options* given) {
  doorbell::nvme::BlockOptions o;
  if (given == nullptr) return o;
  if (given->size < sizeof given->size) throw doorbell::Error("doorbell_nvme_options", "its size is not set");
  doorbell_nvme_options all = {};
  std::memcpy(&all, given, std::min(given->size, sizeof all));
  if (all.nsid != 0) o.nsid = all.nsid;
  if (all.in_flight != 0) o.in_flight = all.in_flight;
  if (all.timeout_s > 0) o.timeout_s = all.timeout_s;
  o.io_bytes = all.io_bytes;
  o.allow_write = all.allow_write != 0;
  return o;
}

/// Of a count that is too large the device says so.
doorbell::u64 bytes_of(const doorbell_nvme& n, doorbell::u64 count) {
  const doorbell::u64 each = n.device->block_bytes();
  return count > n.device->blocks() ? ~doorbell::u64{0} : count * each;
}

}  // namespace

DOORBELL_C_API doorbell_nvme* doorbell_nvme_open(const char* controller,
                                                 const doorbell_nvme_options* options) {
  return guarded([&] {
    auto n = std::make_unique<doorbell_nvme>();
    n->device = doorbell::nvme::BlockDevice::open(&require(controller, "controller"), options_of(options));
    n->name = n->device->name();
    return n.release();
  });
}

DOORBELL_C_API void doorbell_nvme_close(doorbell_nvme* nvme) {
  delete nvme;
}

DOORBELL_C_API uint64_t doorbell_nvme_blocks(const doorbell_nvme* nvme) {
  return nvme == nullptr ? 0 : nvme->device->blocks();
}

DOORBELL_C_API uint32_t doorbell_nvme_block_bytes(const doorbell_nvme* nvme) {
  return nvme == nullptr ? 0 : nvme->device->block_bytes();
}

DOORBELL_C_API const char* doorbell_nvme_name(const doorbell_nvme* nvme) {
  return nvme == nullptr ? "" : nvme->name.c_str();
}

DOORBELL_C_API void* doorbell_nvme_allocate(doorbell_nvme* nvme, uint64_t bytes) {
  return guarded([&]() -> void* {
    doorbell_nvme& n = require(nvme, "nvme");
    if (bytes == 0) throw doorbell::Error("allocating", "0 bytes are no memory");
    doorbell::nvme::BlockMemory memory = n.device->allocate(bytes);
    doorbell::u8* const base = memory.host();
    n.memory.emplace(base, std::move(memory));
    return base;
  });
}

DOORBELL_C_API void doorbell_nvme_free(doorbell_nvme* nvme, void* memory) {
  if (nvme != nullptr) nvme->memory.erase(static_cast<const doorbell::u8*>(memory));
}

DOORBELL_C_API int doorbell_nvme_read(doorbell_nvme* nvme, uint64_t lba, uint64_t count, void* data) {
  return guarded([&] {
    doorbell_nvme& n = require(nvme, "nvme");
    const auto* const at = &require(static_cast<const doorbell::u8*>(data), "data");
    if (auto* const m = n.holder(at, bytes_of(n, count)))
      n.device->read(lba, count, *m, static_cast<doorbell::u64>(at - m->host()));
    else n.device->read(lba, count, data);
    return 0;
  });
}

DOORBELL_C_API int doorbell_nvme_write(doorbell_nvme* nvme, uint64_t lba, uint64_t count, const void* data) {
  return guarded([&] {
    doorbell_nvme& n = require(nvme, "nvme");
    const auto* const at = &require(static_cast<const doorbell::u8*>(data), "data");
    if (const auto* const m = n.holder(at, bytes_of(n, count)))
      n.device->write(lba, count, *m, static_cast<doorbell::u64>(at - m->host()));
    else n.device->write(lba, count, data);
    return 0;
  });
}

DOORBELL_C_API int doorbell_nvme_flush(doorbell_nvme* nvme) {
  return guarded([&] {
    require(nvme, "nvme").device->flush();
    return 0;
  });
}
