// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Where a GPU's stream of work has got to: marks among the work, which the GPU reports in host memory.
#pragma once

#include <doorbell/gpu.hpp>
#include <doorbell/region.hpp>

namespace doorbell::net {

/// Thread rule: one thread at a time; several StreamMarks may share a stream.
class StreamMarks {
 public:
  StreamMarks(std::shared_ptr<gpu::Gpu> gpu, gpu::Stream stream);

  /// Marks the end of what is in the stream by now. Marks are numbered from 1.
  u64 mark();
  /// Everything up to this mark is done. A load of host memory; reports no error of the GPU.
  [[nodiscard]] bool reached(u64 mark) const;
  /// Waits for a mark, at most `limit_ns`; false when the GPU has not got there. Throws Error when it has
  /// failed.
  [[nodiscard]] bool wait(u64 mark, u64 limit_ns);

 private:
  std::shared_ptr<gpu::Gpu> gpu_;
  gpu::Stream stream_;
  gpu::Kernel kernel_;
  Region word_;
  u64 last_ = 0;
};

}  // namespace doorbell::net
