// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// What of one object's memory a GPU has been given. libcxi maps each object's pages separately, so nobody
// else holds them.
#pragma once

#include <doorbell/gpu.hpp>

#include <map>
#include <memory>
#include <string>

namespace doorbell::cxi {

/// Takes the pages back on destruction, which must come before libcxi unmaps them.
class GpuPages {
 public:
  enum class Kind { memory, registers };

  GpuPages(std::string device, std::shared_ptr<gpu::Gpu> gpu)
      : device_(std::move(device)), gpu_(std::move(gpu)) {}
  ~GpuPages();
  GpuPages(const GpuPages&) = delete;
  GpuPages& operator=(const GpuPages&) = delete;

  /// The GPU's address of p, which it is given with the pages around [p, p + bytes) unless it has them.
  /// Throws Error where there is no GPU or it cannot reach them.
  template <class T>
  [[nodiscard]] T* give(T* p, u64 bytes, Kind kind) {
    return reinterpret_cast<T*>(register_pages(reinterpret_cast<u64>(p), bytes, kind));
  }

 private:
  [[nodiscard]] u8* register_pages(u64 address, u64 bytes, Kind kind);

  std::string device_;
  std::shared_ptr<gpu::Gpu> gpu_;
  std::map<u64, u8*> given_;  ///< the GPU's address, by the address of the first page
};

}  // namespace doorbell::cxi
