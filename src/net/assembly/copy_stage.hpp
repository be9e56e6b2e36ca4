// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The other way of windows into GPU memory: a CPU puts them together in pinned memory, and each goes over in
// one copy, while the next one is being received.
#pragma once

#include <doorbell/gpu.hpp>

#include "net/assembly/stream_marks.hpp"
#include "net/assembly/window_buffers.hpp"

namespace doorbell::net {

/// Stands between an assembler of pinned windows and their consumer, which gets windows in GPU memory. Thread
/// rule: one thread at a time, the assembler's.
class CopyStage final : public WindowConsumer {
 public:
  /// `copies`: windows that may wait for their copy or be copied, at least 1; `in_flight`: windows that the
  /// consumer may keep.
  CopyStage(std::shared_ptr<gpu::Gpu> gpu, u64 window_bytes, u32 window_packets, WindowConsumer& consumer,
            u32 copies = 2, u32 in_flight = 2, u64 limit_ns = 10'000'000'000);

  void take(const Window& window) override;
  void poll() override;
  void wait(u64 limit_ns) override;
  void finish() override;
  /// Windows that have been copied.
  [[nodiscard]] u64 copied() const { return delivered_; }

 private:
  /// What one copy needs. The streams are apart, so that a copy begins while the one before it is being
  /// marked, and urgent, so that no workload keeps a mark waiting.
  class Lane {
   public:
    explicit Lane(const std::shared_ptr<gpu::Gpu>& gpu);
    ~Lane();
    Lane(const Lane&) = delete;
    Lane& operator=(const Lane&) = delete;
    void start(const Window& window, u32 buffer, u8* to);
    [[nodiscard]] bool done() const { return marks_.reached(mark_); }
    [[nodiscard]] bool wait(u64 limit_ns) { return marks_.wait(mark_, limit_ns); }

    Window from;
    u32 to = 0;  ///< the buffer

   private:
    std::shared_ptr<gpu::Gpu> gpu_;
    gpu::Stream stream_;
    StreamMarks marks_;
    u64 mark_ = 0;
  };
  [[nodiscard]] Lane& oldest() { return *lanes_[delivered_ % lanes_.size()]; }
  [[nodiscard]] u64 waiting() const { return taken_ - delivered_; }
  /// Waits for the oldest copy; false when it takes longer.
  bool wait_for_copy(u64 limit_ns);

  std::shared_ptr<gpu::Gpu> gpu_;
  WindowBuffers buffers_;
  WindowConsumer& consumer_;
  u64 limit_ns_;
  // Window n is in lane n mod their number.
  std::vector<std::unique_ptr<Lane>> lanes_;
  u64 taken_ = 0;
  u64 delivered_ = 0;
};

}  // namespace doorbell::net
