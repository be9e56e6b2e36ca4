// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Looks at windows on their way to a consumer: whether each slot holds what its packet became.
#pragma once

#include <doorbell/net/window_consumer.hpp>

#include <memory>
#include <vector>

#include "net/assembly/gpu_assembly.hpp"

namespace doorbell::net {

struct WindowCheckRequest {
  u64 slot_bytes = 0;
  Missing missing = Missing::zero;             ///< with `zero`, slots without a packet must hold zeros
  std::shared_ptr<gpu::Gpu> gpu = {};          ///< of windows in its memory,
  std::shared_ptr<GpuAssembly> gatherer = {};  ///< and what puts them together there; null: they are complete
  u64 wait_ns = 10'000'000'000;                ///< for the gatherer
};

/// Checks the windows that have slot_crcs and passes every window on. Thread rule: its consumer's.
class WindowCheck final : public WindowConsumer {
 public:
  WindowCheck(const WindowCheckRequest& request, WindowConsumer& next) : r_(request), next_(next) {}
  void take(const Window& window) override;
  void poll() override { next_.poll(); }
  void wait(u64 limit_ns) override { next_.wait(limit_ns); }
  void finish() override { next_.finish(); }

  /// Windows that were looked at, and those of them with a slot that is wrong.
  [[nodiscard]] u64 checked() const { return checked_; }
  [[nodiscard]] u64 failed() const { return failed_; }

 private:
  [[nodiscard]] bool good(const Window& window, const u8* bytes) const;

  WindowCheckRequest r_;
  WindowConsumer& next_;
  std::vector<u8> copy_;  ///< of a window in GPU memory
  u64 checked_ = 0, failed_ = 0;
};

}  // namespace doorbell::net
