// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The other way of windows into GPU memory: a CPU puts them together in pinned memory, and each goes over in
// one copy, while the next one is being received.
#pragma once

#include <doorbell/gpu.hpp>
#include <doorbell/memory_order.hpp>

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
  /// The resources of one copy. The streams are apart, so that a copy begins while the one before it is being
  /// reported.
  class Lane {
   public:
    explicit Lane(const std::shared_ptr<gpu::Gpu>& gpu);
    ~Lane();
    Lane(const Lane&) = delete;
    Lane& operator=(const Lane&) = delete;
    void start(const Window& window, u32 buffer, u8* address);
    /// A load of host memory, which the copy behind the window's writes: no kernel takes part, and no
    /// workload keeps it waiting. After much longer than a copy takes, the GPU is asked: throws Error when it
    /// has failed, or when the copy was started more than `limit_ns` ago.
    [[nodiscard]] bool done(u64 limit_ns) { return reported() || ended(limit_ns); }
    /// False when the GPU takes longer. Throws Error when it has failed.
    [[nodiscard]] bool wait(u64 limit_ns);

    Window from;
    u32 to = 0;  ///< the buffer

   private:
    static constexpr u64 kDone = 1;
    [[nodiscard]] bool reported() const {
      return load64_acquire(reinterpret_cast<const u64*>(report_.host())) == kDone;
    }
    [[nodiscard]] bool ended(u64 limit_ns);
    std::shared_ptr<gpu::Gpu> gpu_;
    gpu::Stream stream_;
    Region source_;  ///< in GPU memory: kDone
    Region report_;
    u64 begin_ns_ = 0;
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
