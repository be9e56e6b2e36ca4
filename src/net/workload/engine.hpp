// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Who computes a workload: a library on the CPU or on a GPU, opened at run time.
#pragma once

#include <doorbell/gpu.hpp>

#include <memory>
#include <string>

#include "net/assembly/window_buffers.hpp"
#include "net/workload/shape.hpp"

namespace doorbell::net {

/// Made and used by one thread, except announce(). Results lie in `slots` places of its own.
class Engine {
 public:
  virtual ~Engine() = default;
  /// The library, its version where it tells one.
  [[nodiscard]] virtual std::string name() const = 0;
  /// By the thread that hands windows over: what has been done to the next window of `slot` by now comes
  /// before its run.
  virtual void announce(u32 slot) { static_cast<void>(slot); }
  /// Computes on the window, whose memory stays as it is until it is done; the result goes to place `slot`.
  virtual void start(const Window& window, u32 slot) = 0;
  /// Waits for what was started last in `slot`, at most `limit_ns`, and a CPU computes it here. False: not
  /// done yet. Throws Error when the library has failed.
  [[nodiscard]] virtual bool wait(u32 slot, u64 limit_ns) = 0;
  /// A run begins in wait(), not with start().
  [[nodiscard]] virtual bool computes_in_wait() const { return false; }
  /// Copies input or result to host memory.
  virtual void read_input(const Window& window, u64 offset, void* to, u64 bytes) = 0;
  virtual void read_result(u32 slot, u64 offset, void* to, u64 bytes) = 0;
};

/// FFTW or OpenBLAS, one thread. Throws Error (ExitCode::absent): the library is not there.
[[nodiscard]] std::unique_ptr<Engine> cpu_engine(const WorkloadShape& shape, u32 slots);
/// cuFFT or cuBLAS, hipFFT or hipBLAS. announce() looks at the stream `assembly`, unless that is null.
[[nodiscard]] std::unique_ptr<Engine> gpu_engine(const WorkloadShape& shape, u32 slots,
                                                 std::shared_ptr<gpu::Gpu> gpu, gpu::Stream assembly);

}  // namespace doorbell::net
