// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Host memory that stands for buffers in a GPU's memory, which no CPU thread can load or store. A thread
// makes and checks payloads in the mirror, and has them copied before and after.
#pragma once

#include <doorbell/config.hpp>

#include <array>
#include <span>

namespace doorbell {

/// Bytes of a mirror and of what it stands for.
struct MirrorRange {
  u64 offset = 0;
  u64 bytes = 0;
};

/// Virtual, because loops know nothing of GPUs. Each call takes as long as a GPU's copy, and is made for many
/// slots together, only where there is a mirror. Calls may come from several threads for different ranges.
class Mirror {
 public:
  /// Copies into the mirror. After a failure it holds zeros, which no payload is.
  virtual void fetch(std::span<const MirrorRange> ranges) noexcept = 0;
  /// Copies from the mirror.
  virtual void store(std::span<const MirrorRange> ranges) noexcept = 0;

  void fetch(const MirrorRange& one) noexcept { fetch({&one, 1}); }
  void store(const MirrorRange& one) noexcept { store({&one, 1}); }

 protected:
  ~Mirror() = default;
};

/// The slots of some turns. Neighbours become one range: the bytes between their payloads are of no use to
/// others.
class MirrorSlots {
 public:
  static constexpr u32 kMost = 64;

  MirrorSlots(u64 stride, u64 bytes) : stride_(stride), bytes_(bytes) {}

  void add(u64 slot) {
    if (n_ > 0 && slot == next_) ranges_[n_ - 1].bytes += stride_;
    else ranges_[n_++] = {slot * stride_, bytes_};
    next_ = slot + 1;
  }
  [[nodiscard]] std::span<const MirrorRange> ranges() const { return {ranges_.data(), n_}; }

 private:
  u64 stride_, bytes_;
  u64 next_ = 0;
  std::size_t n_ = 0;
  std::array<MirrorRange, kMost> ranges_;
};

}  // namespace doorbell
