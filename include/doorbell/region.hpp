// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Bytes at a place, with an owner and a lifetime. Host code only.
#pragma once

#include <doorbell/config.hpp>

#include <functional>
#include <memory>
#include <string_view>

namespace doorbell {

/// Who drives a queue. Its addresses of the queue's memory are used.
enum class Initiator {
  cpu,  ///< a thread of this process
  gpu,  ///< a kernel
};

namespace gpu {
class Gpu;
}

/// Where bytes lie.
enum class Place {
  pageable,  ///< ordinary host memory, page aligned
  pinned,    ///< page-locked; reachable by the GPU when one is given
  huge_2m,   ///< 2 MiB pages from the kernel's pool
  huge_1g,   ///< 1 GiB pages from the kernel's pool
  gpu,       ///< memory of the GPU: no CPU load or store reaches it
};
/// As options and messages name it: "pinned".
[[nodiscard]] std::string_view name(Place p);

/// Host memory that an address space provides; `free(base, bytes)` gives it back.
struct HostMemory {
  u8* base = nullptr;                             ///< page aligned, zeroed
  u64 bytes = 0;                                  ///< whole pages
  std::function<void(u8* base, u64 bytes)> free;  ///< called once, by the Region that took it over
};

/// Owns `bytes()` zeroed bytes at `place()`. Move-only; freed on destruction, which must come after
/// every device has stopped using it.
///
/// Errors: throws doorbell::Error saying how much was asked for, what there was, and how to get more.
class Region {
 public:
  /// No memory: bytes() is 0.
  Region() = default;
  /// `bytes` is rounded up to whole pages of the place. `gpu` is required for Place::gpu; with other
  /// places it makes the memory reachable by that GPU.
  Region(Place place, u64 bytes, std::shared_ptr<gpu::Gpu> gpu = nullptr);
  /// The same over host memory that is already there (zeroed, page aligned); with a GPU it is registered.
  Region(Place place, HostMemory memory, std::shared_ptr<gpu::Gpu> gpu = nullptr);
  ~Region();
  Region(Region&& other) noexcept;
  Region& operator=(Region&& other) noexcept;

  /// As it was asked for.
  [[nodiscard]] Place place() const { return place_; }
  /// Whole pages of the place, so perhaps more than was asked for.
  [[nodiscard]] u64 bytes() const { return bytes_; }
  /// The address for CPU code; null for GPU memory.
  [[nodiscard]] u8* host() const { return place_ == Place::gpu ? nullptr : base_; }
  /// The address for code on the GPU; null when the GPU cannot reach it.
  [[nodiscard]] u8* device() const { return device_; }
  /// The GPU that it was made with; null without one.
  [[nodiscard]] const std::shared_ptr<gpu::Gpu>& gpu() const { return gpu_; }
  /// Copies `n` bytes of host memory to `offset`, through the GPU when the region lies there. Blocking.
  void write(u64 offset, const void* from, u64 n);
  /// Copies `n` bytes from `offset` to host memory, likewise.
  void read(u64 offset, void* to, u64 n) const;
  /// Makes the kernel give every page memory of its own. Otherwise all unwritten pages are one shared page of
  /// zeros, which a cache holds and which makes reads look fast.
  void populate();

 private:
  void release() noexcept;
  void register_with_gpu();

  Place place_ = Place::pageable;
  u64 bytes_ = 0;
  u8* base_ = nullptr;
  u8* device_ = nullptr;
  bool registered_ = false;
  std::function<void(u8*, u64)> free_;  ///< how HostMemory goes back; empty for memory of our own
  std::shared_ptr<gpu::Gpu> gpu_;
};

}  // namespace doorbell
