// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "cxi/libcxi/gpu_pages.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <unistd.h>

namespace doorbell::cxi {

GpuPages::~GpuPages() {
  for (const auto& [address, device] : given_) gpu_->unregister_host(reinterpret_cast<void*>(address));
}

u8* GpuPages::register_pages(u64 address, u64 bytes, Kind kind) {
  if (gpu_ == nullptr)
    throw Error(fmt::format("the queues of {}", device_), "a GPU cannot reach them",
                "open the device with a GPU");
  static const u64 page = static_cast<u64>(::sysconf(_SC_PAGESIZE));
  const u64 begin = address / page * page;
  const u64 end = (address + bytes + page - 1) / page * page;
  auto found = given_.find(begin);
  if (found == given_.end()) {
    try {
      void* const device =
          gpu_->register_host(reinterpret_cast<void*>(begin), end - begin, kind == Kind::registers);
      found = given_.emplace(begin, static_cast<u8*>(device)).first;
    } catch (const Error& e) {
      throw Error(fmt::format("a GPU's access to the queues of {}", device_), e.what(), e.hint(), e.code());
    }
  }
  return found->second + (address - begin);
}

}  // namespace doorbell::cxi
