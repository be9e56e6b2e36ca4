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
  u64 most_zeros = u64{256} << 20;             ///< bytes of zeros that are read for what has not come yet
};

/// Checks the windows that have slot_crcs and passes every window on. Thread rule: its consumer's.
///
/// Zeros of missing packets are all read while what arrives pays for it: kZerosPerByte of them for a byte.
/// Where nearly all is lost, a window's check would otherwise take longer than the window. Of such a window
/// only those slots are read that somebody may have written since they were read last: where a packet lay,
/// the slots beside a packet, and a part of the others in turn. finish() reads what is left of each buffer.
class WindowCheck final : public WindowConsumer {
 public:
  WindowCheck(const WindowCheckRequest& request, WindowConsumer& next)
      : r_(request), next_(next), credit_(request.most_zeros) {}
  void take(const Window& window) override;
  void poll() override { next_.poll(); }
  void wait(u64 limit_ns) override { next_.wait(limit_ns); }
  void finish() override;

  /// Windows that were looked at, those of them with a slot that is wrong, and those not all of whose zeros
  /// were read.
  [[nodiscard]] u64 checked() const { return checked_; }
  [[nodiscard]] u64 failed() const { return failed_; }
  [[nodiscard]] u64 in_part() const { return in_part_; }

 private:
  static constexpr u64 kZerosPerByte = 8;
  static constexpr u32 kInTurn = 64;  ///< a slot is read at least once in so many windows of its buffer

  /// A buffer of windows. There are few, each of which is seen first in the first windows.
  struct Buffer {
    const u8* host;
    const u8* device;
    std::vector<u64> zero;  ///< slots that were seen to hold zeros, and had no packet since
    std::vector<u64> look;  ///< slots that the present window's check reads
    u32 turn = 0;
    bool left = false;  ///< slots that hold zeros were not read again
  };
  [[nodiscard]] Buffer& buffer_of(const Window& window);
  /// Chooses the slots that are read.
  void choose(const Window& window, Buffer& buffer);
  /// Reads these slots; `window` null: they must hold zeros.
  [[nodiscard]] bool good(const Window* window, const Buffer& buffer, u32 packets);
  [[nodiscard]] bool slot_good(const Window* window, u32 slot, const u8* bytes) const;

  WindowCheckRequest r_;
  WindowConsumer& next_;
  std::vector<Buffer> buffers_;
  std::vector<u8> copy_;  ///< of slots in GPU memory
  u64 credit_;            ///< bytes of zeros that may be read
  u64 checked_ = 0, failed_ = 0, in_part_ = 0;
};

}  // namespace doorbell::net
