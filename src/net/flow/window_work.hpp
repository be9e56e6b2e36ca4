// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The work on received packets in a run with windows: a sink and a workload for each receive queue, on the
// CPU or a GPU.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/assembly/assembly_sink.hpp"
#include "net/assembly/copy_stage.hpp"
#include "net/assembly/window_check.hpp"
#include "net/workload/workload.hpp"

namespace doorbell::net {

/// How packets come into a window in GPU memory: one copy of a window that the CPU has assembled in pinned
/// memory, or a kernel that reads them where they lie.
enum class ToGpu { copy, kernel };

struct WindowOptions {
  bool on = false;  ///< packets are assembled at all
  WorkloadKind workload = WorkloadKind::none;
  u64 batch_bytes = 0;  ///< of a window, rounded to whole packets; 0: by `packets`
  u32 gemm_dim = 0;     ///< 0: by the window's bytes
  u32 packets = 0;      ///< of a window; 0: 1024, or fewer so that it has about 8 MB
  u32 open = 4;
  double timeout_s = 0;
  Missing missing = Missing::zero;
  bool on_gpu = false;  ///< windows lie in GPU memory and the GPU computes
  ToGpu to_gpu = ToGpu::kernel;
  u32 check_every = 1;
  std::optional<Conversion> convert = {};  ///< integers to floating-point numbers on the way into a window
};

/// "int16:fp32" and the rest.
[[nodiscard]] const std::vector<std::string>& conversion_names();
/// By its place among the names.
[[nodiscard]] Conversion conversion(u32 name, bool big_endian);
[[nodiscard]] const std::string& name(const Conversion& c);

struct WindowWorkRequest {
  WindowOptions options;
  Spreading spreading = {};
  u32 payload_bytes = 8000;
  bool ordered = false;
  bool pinned = false;  ///< received packets lie in memory that the GPU reaches
  double timeout_s = 10;
  std::shared_ptr<gpu::Gpu> gpu = {};
};

class WindowWork {
 public:
  /// Throws Error: sizes out of range, no library, no GPU.
  explicit WindowWork(const WindowWorkRequest& request);

  /// One a receive queue.
  [[nodiscard]] std::vector<PacketSink*> sinks() const;
  /// After the last packet, on one thread: delivers what is open and waits for the workloads.
  void finish(const std::vector<u64>& sent);
  /// Unique packets that are in no window although they came: too late for it.
  [[nodiscard]] u64 late() const { return windows_.late; }
  [[nodiscard]] u64 placed() const { return windows_.placed; }
  /// Results that were wrong.
  [[nodiscard]] u64 failed() const { return work_.failed + conversions_failed_; }
  [[nodiscard]] nlohmann::ordered_json json() const;

 private:
  /// Destroyed from the last to the first: each may still be at work on memory of those before it.
  struct Queue {
    std::unique_ptr<AssemblySink> sink;
    std::shared_ptr<GpuAssembly> gatherer;
    std::unique_ptr<CopyStage> copy;
    std::unique_ptr<WindowCheck> check;  ///< of conversions
    std::unique_ptr<Workload> workload;
  };

  WindowWorkRequest r_;
  WorkloadShape shape_;
  std::vector<Queue> queues_;
  u64 window_bytes_ = 0;
  u32 window_packets_ = 0;
  WindowCounts windows_;
  WorkloadCounts work_;
  u64 due_ = 0;              ///< windows that what was sent makes
  u64 left_over_bytes_ = 0;  ///< of messages that are cut into windows: behind their last whole one
  u64 wrong_length_ = 0;
  u64 conversions_checked_ = 0, conversions_failed_ = 0, conversions_in_part_ = 0;
};

}  // namespace doorbell::net
