// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/mlx5dv/gpu_mappings.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include <iterator>

namespace doorbell::rdma {

namespace {

u64 page_bytes() {
  static const u64 bytes = static_cast<u64>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

}  // namespace

GpuMappings::Ranges::iterator GpuMappings::find(u64 address) {
  const auto after = ranges_.upper_bound(address);
  if (after == ranges_.begin()) return ranges_.end();
  const auto range = std::prev(after);
  return address - range->first < range->second.bytes ? range : ranges_.end();
}

u8* GpuMappings::acquire(void* p, u64 bytes, bool mmio) {
  const std::scoped_lock lock(mutex_);
  const u64 page = page_bytes();
  const auto address = reinterpret_cast<u64>(p);
  const u64 begin = address / page * page;
  const u64 end = (address + bytes + page - 1) / page * page;
  auto range = find(begin);
  if (range != ranges_.end() && end > range->first + range->second.bytes)
    throw Error(fmt::format("giving a GPU the {} bytes at {}", bytes, p),
                "it has the first page already, with other memory");
  if (range == ranges_.end()) {
    void* const device = gpu_->register_host(reinterpret_cast<void*>(begin), end - begin, mmio);
    range = ranges_.emplace(begin, Range{end - begin, static_cast<u8*>(device), 0}).first;
  }
  ++range->second.users;
  return range->second.device + (address - range->first);
}

void GpuMappings::release(void* p) noexcept {
  const std::scoped_lock lock(mutex_);
  const auto range = find(reinterpret_cast<u64>(p));
  if (range == ranges_.end() || --range->second.users != 0) return;
  gpu_->unregister_host(reinterpret_cast<void*>(range->first));
  ranges_.erase(range);
}

GpuMapping::~GpuMapping() {
  for (void* p : held_) mappings_->release(p);
}

}  // namespace doorbell::rdma
