// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The pages of one object's memory that a GPU can reach. libcxi maps each object's pages separately, so no
// other object uses them.
#pragma once

#include <doorbell/gpu.hpp>

#include <map>
#include <memory>
#include <string>

namespace doorbell::cxi {

/// The destructor takes the pages away from the GPU, which must happen before libcxi unmaps them.
class GpuPages {
 public:
  enum class Kind { memory, registers };

  GpuPages(std::string device, std::shared_ptr<gpu::Gpu> gpu)
      : device_(std::move(device)), gpu_(std::move(gpu)) {}
  ~GpuPages();
  GpuPages(const GpuPages&) = delete;
  GpuPages& operator=(const GpuPages&) = delete;

  /// The GPU's address of p. The GPU gets the pages around [p, p + bytes) unless it already has them. Throws
  /// Error if there is no GPU or the GPU cannot reach the pages.
  template <class T>
  [[nodiscard]] T* give(T* p, u64 bytes, Kind kind) {
    return reinterpret_cast<T*>(register_pages(reinterpret_cast<u64>(p), bytes, kind));
  }

 private:
  [[nodiscard]] u8* register_pages(u64 address, u64 bytes, Kind kind);

  std::string device_;
  std::shared_ptr<gpu::Gpu> gpu_;
  std::map<u64, u8*> given_;  ///< from the address of the first page to the GPU's address
};

}  // namespace doorbell::cxi
