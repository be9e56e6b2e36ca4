// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A workload: it computes on received windows by a library, and checks that the library computed right.
#pragma once

#include <doorbell/gpu.hpp>

#include <memory>
#include <string>

#include "net/assembly/assembler.hpp"
#include "net/workload/shape.hpp"

namespace doorbell::net {

struct WorkloadRequest {
  u64 bytes = 0;     ///< of a window
  u32 gemm_dim = 0;  ///< rows of the matrices; 0: by `bytes`
  /// The GPU that computes; without one the CPU does.
  std::shared_ptr<gpu::Gpu> gpu = {};
  /// That of the windows' assembly, where a GPU does it: a run follows what is in it when its window is
  /// submitted. Null: windows are whole.
  gpu::Stream assembly = {};
  u32 in_flight = 2;  ///< windows that are computed on or wait for it, 1 to 2
  /// One run in so many is checked; 0: none. A check reads results back and computes on the CPU.
  u32 check_every = 1;
  Missing missing = Missing::zero;  ///< with `mark`, windows with gaps hold anything and are not checked
  u64 limit_ns = 10'000'000'000;    ///< for one run
};

struct WorkloadCounts {
  u64 runs = 0;
  u64 skipped = 0;  ///< windows of lost packets alone, or shorter than what a run needs: a stream's last
  u64 checked = 0;
  u64 failed = 0;   ///< of those checked: a result outside its limits
  u64 timed = 0;    ///< runs whose end was seen: one may end while another one's result is checked
  u64 flop = 0;     ///< of all runs
  u64 busy_ns = 0;  ///< while at least one of the timed runs was under way; checks do not count
  u64 check_ns = 0;
  double worst = 0;  ///< the largest error as a share of what is allowed
  WorkloadCounts& operator+=(const WorkloadCounts& o);
};

/// Thread rule: one thread at a time. A thread of its own calls the library.
class Workload : public WindowConsumer {
 public:
  /// Opens the library. Throws Error: no such library (ExitCode::absent), sizes out of range.
  [[nodiscard]] static std::unique_ptr<Workload> open(WorkloadKind kind, const WorkloadRequest& request);

  /// Hands a window over; waits while as many as allowed are in flight. The window goes back in a later call.
  virtual void submit(const Window& window) = 0;
  void take(const Window& window) final { submit(window); }
  /// Of the windows that have gone back.
  [[nodiscard]] virtual const WorkloadCounts& counts() const = 0;
  [[nodiscard]] virtual const WorkloadShape& shape() const = 0;
  /// The library that computes; empty for `none`.
  [[nodiscard]] virtual std::string library() const = 0;
};

}  // namespace doorbell::net
