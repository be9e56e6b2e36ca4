// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The other way of windows into GPU memory: a CPU puts them together in pinned memory, and each goes over in
// one copy, while the next one is being received.
#pragma once

#include <doorbell/gpu.hpp>

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include "net/assembly/window_buffers.hpp"

namespace doorbell::net {

/// Stands between an assembler of pinned windows and their consumer, which gets windows in GPU memory. A
/// thread of its own waits for the copies; the consumer is called on the assembler's thread alone.
class CopyStage final : public WindowConsumer {
 public:
  /// `copies`: windows that may wait for their copy or be copied; `in_flight`: windows that the consumer may
  /// keep.
  CopyStage(std::shared_ptr<gpu::Gpu> gpu, u64 window_bytes, u32 window_packets, WindowConsumer& consumer,
            u32 copies = 2, u32 in_flight = 2, u64 limit_ns = 10'000'000'000);
  ~CopyStage() override;
  CopyStage(const CopyStage&) = delete;
  CopyStage& operator=(const CopyStage&) = delete;

  void take(const Window& window) override;
  void poll() override;
  void wait(u64 limit_ns) override;
  void finish() override;
  /// Windows that have been copied.
  [[nodiscard]] u64 copied() const { return delivered_; }

 private:
  struct Job {
    Window from;
    u32 to = 0;
  };
  void run();
  /// Waits for the oldest copy; false when it takes longer.
  bool wait_for_copy(u64 limit_ns);
  [[nodiscard]] u64 waiting() const { return taken_ - delivered_; }

  std::shared_ptr<gpu::Gpu> gpu_;
  WindowBuffers buffers_;
  WindowConsumer& consumer_;
  u64 limit_ns_;
  // Jobs are numbered; number n lies at n mod the size.
  std::vector<Job> jobs_;
  u64 taken_ = 0;      ///< the assembler's thread only
  u64 delivered_ = 0;  ///< the assembler's thread only

  std::mutex mutex_;  ///< guards what follows
  std::condition_variable changed_;
  u64 given_ = 0;              ///< to the thread
  std::atomic<u64> done_ = 0;  ///< by the thread; read without the mutex once a burst
  bool stop_ = false;
  std::exception_ptr error_;
  std::thread thread_;
};

}  // namespace doorbell::net
