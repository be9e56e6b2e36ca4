// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The common part of CUDA's driver, HIP and Level Zero, call by call. A Driver only translates calls; policy,
// checks and messages are in DriverGpu.
#pragma once

#include <doorbell/gpu.hpp>

#include <cstdint>
#include <memory>
#include <string>

namespace doorbell::gpu {

/// A driver's result code. The values that matter here are the same in CUDA and in HIP; Level Zero's back end
/// translates those.
using Status = int;
inline constexpr Status kSuccess = 0;
inline constexpr Status kNotFound = 500;
inline constexpr Status kNotReady = 600;
inline constexpr Status kPeerReached = 704;  // already reached
inline constexpr Status kNotSupported = 801;

/// The handle that makes a GPU current on a thread: CUDA's context, HIP's device number, an open GPU of
/// Level Zero.
using Context = std::uintptr_t;

class Driver {
 public:
  Driver() = default;
  virtual ~Driver() = default;
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  [[nodiscard]] virtual Runtime runtime() const = 0;
  /// The driver's version, as users know it: "580.159.03 (CUDA 13.0)".
  [[nodiscard]] virtual std::string version() const = 0;
  /// "CUDA_ERROR_OUT_OF_MEMORY (2): out of memory".
  [[nodiscard]] virtual std::string explain(Status status) const = 0;
  /// Advice to the user about `status`; empty if there is none.
  [[nodiscard]] virtual std::string hint(Status status) const = 0;

  [[nodiscard]] virtual Status count(int& gpus) const = 0;
  /// Fills everything but `index`.
  [[nodiscard]] virtual Status describe(int ordinal, Info& info) const = 0;

  [[nodiscard]] virtual Status retain(int ordinal, Context& context) const = 0;
  virtual void release(int ordinal) const noexcept = 0;
  /// Makes `context` current and returns the previous one; leave() undoes this.
  [[nodiscard]] virtual Status enter(Context context, Context& previous) const = 0;
  virtual void leave(Context previous) const noexcept = 0;

  [[nodiscard]] virtual Status allocate(void*& p, u64 bytes) const = 0;
  virtual Status free(void* p) const noexcept = 0;
  [[nodiscard]] virtual Status allocate_pinned(void*& p, u64 bytes) const = 0;
  virtual Status free_pinned(void* p) const noexcept = 0;
  [[nodiscard]] virtual Status register_host(void* p, u64 bytes, bool mmio) const = 0;
  virtual Status unregister_host(void* p) const noexcept = 0;
  /// The GPU's address of pinned or registered host memory.
  [[nodiscard]] virtual Status device_pointer(void* host, void*& device) const = 0;

  [[nodiscard]] virtual Status copy(void* to, const void* from, u64 bytes, void* stream) const = 0;
  [[nodiscard]] virtual Status zero(void* p, u64 bytes, void* stream) const = 0;

  /// Creates a stream that does not wait for the default stream, and for which the default stream does not
  /// wait.
  [[nodiscard]] virtual Status create_stream(void*& stream) const = 0;
  /// The same, with the highest priority that the GPU has.
  [[nodiscard]] virtual Status create_urgent_stream(void*& stream) const = 0;
  virtual Status destroy_stream(void* stream) const noexcept = 0;
  /// Creates an event that takes no time stamps.
  [[nodiscard]] virtual Status create_event(void*& event) const = 0;
  virtual Status destroy_event(void* event) const noexcept = 0;
  [[nodiscard]] virtual Status record(void* stream, void* event) const = 0;
  [[nodiscard]] virtual Status follow(void* stream, void* event) const = 0;
  /// kSuccess if the stream is idle, kNotReady while it works, else the error.
  [[nodiscard]] virtual Status query(void* stream) const = 0;

  [[nodiscard]] virtual Status load_module(const void* image, void*& module) const = 0;
  virtual Status unload_module(void* module) const noexcept = 0;
  /// kNotFound if the module has no such kernel. What the driver would do lazily at the first launch is done
  /// here, because it may have to wait for running kernels.
  [[nodiscard]] virtual Status function(void* module, const char* name, void*& function) const = 0;
  [[nodiscard]] virtual Status allow_shared(void* function, u32 bytes) const = 0;
  [[nodiscard]] virtual Status launch(void* function, const Gpu::Launch& shape, void* stream,
                                      void** args) const = 0;
  /// Lets GPU `ordinal`, which is current, use memory of GPU `peer`; kNotSupported if there is no way.
  [[nodiscard]] virtual Status reach(int ordinal, int peer, Context peer_context) const = 0;
  [[nodiscard]] virtual Status export_dmabuf(void* p, u64 bytes, int& fd) const = 0;
};

/// Load and start a runtime. Each throws doorbell::Error (ExitCode::absent) that names what is missing.
[[nodiscard]] std::shared_ptr<Driver> load_cuda();
[[nodiscard]] std::shared_ptr<Driver> load_hip();
[[nodiscard]] std::shared_ptr<Driver> load_level_zero();

/// Opens one GPU of a loaded runtime. `ordinal` is the runtime's own number for it.
[[nodiscard]] std::shared_ptr<Gpu> open_gpu(std::shared_ptr<Driver> driver, int ordinal, Info info);

}  // namespace doorbell::gpu
