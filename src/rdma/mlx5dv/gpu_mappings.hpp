// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The parts of libmlx5's memory that a GPU can reach. Queue pairs of one device share pages (doorbell
// records, doorbell registers), but a GPU's driver takes a page only once, so each range has a count of its
// users.
#pragma once

#include <doorbell/gpu.hpp>

#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace doorbell::rdma {

class GpuMappings {
 public:
  explicit GpuMappings(std::shared_ptr<gpu::Gpu> gpu) : gpu_(std::move(gpu)) {}
  GpuMappings(const GpuMappings&) = delete;
  GpuMappings& operator=(const GpuMappings&) = delete;

  [[nodiscard]] gpu::Gpu& gpu() const { return *gpu_; }
  [[nodiscard]] const std::shared_ptr<gpu::Gpu>& shared_gpu() const { return gpu_; }

  /// Gives the GPU the pages around [p, p + bytes), or counts one more user of them, and returns the GPU's
  /// address of p. `mmio`: the pages are a device's registers.
  [[nodiscard]] u8* acquire(void* p, u64 bytes, bool mmio);
  /// Ends one use of what acquire() gave; the last one takes the pages away from the GPU.
  void release(void* p) noexcept;

 private:
  struct Range {
    u64 bytes = 0;
    u8* device = nullptr;
    u32 users = 0;
  };
  using Ranges = std::map<u64, Range>;  // the key is the address of the first page
  [[nodiscard]] Ranges::iterator find(u64 address);

  std::shared_ptr<gpu::Gpu> gpu_;
  std::mutex mutex_;
  Ranges ranges_;
};

/// The ranges of one queue pair. Destroying it releases them; that must happen before the memory is freed.
class GpuMapping {
 public:
  explicit GpuMapping(std::shared_ptr<GpuMappings> mappings) : mappings_(std::move(mappings)) {}
  ~GpuMapping();
  GpuMapping(const GpuMapping&) = delete;
  GpuMapping& operator=(const GpuMapping&) = delete;

  template <class T>
  [[nodiscard]] T* add(T* p, u64 bytes, bool mmio = false) {
    void* const host = const_cast<std::remove_const_t<T>*>(p);
    u8* const device = mappings_->acquire(host, bytes, mmio);
    held_.push_back(host);
    return reinterpret_cast<T*>(device);
  }

 private:
  std::shared_ptr<GpuMappings> mappings_;
  std::vector<void*> held_;
};

}  // namespace doorbell::rdma
