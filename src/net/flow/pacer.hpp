// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// When packets are due. A sender that is held up catches up in small bursts, and not beyond kCatchUp packets.
#pragma once

#include <doorbell/config.hpp>

#include <algorithm>
#include <cmath>

namespace doorbell::net {

class Pacer {
 public:
  static constexpr u32 kBurst = 32;      ///< packets released at a time
  static constexpr u64 kCatchUp = 1024;  ///< packets that may be made up for

  /// `packets_per_s` 0: as fast as it goes.
  Pacer(double packets_per_s, u64 now_ns)
      : gap_ns_(packets_per_s > 0 ? 1e9 / packets_per_s : 0), begin_ns_(now_ns) {}

  [[nodiscard]] bool paced() const { return gap_ns_ > 0; }
  /// How many of `wanted` packets may leave now.
  [[nodiscard]] u32 allowed(u32 wanted, u64 now_ns) {
    if (!paced()) return wanted;
    const double due = std::floor(static_cast<double>(now_ns - begin_ns_) / gap_ns_) + 1 - given_;
    if (due > static_cast<double>(kCatchUp)) {
      skipped_ += due - static_cast<double>(kCatchUp);
      given_ += due - static_cast<double>(kCatchUp);
    }
    return static_cast<u32>(std::clamp(due, 0.0, static_cast<double>(std::min(wanted, kBurst))));
  }
  void sent(u32 n) { given_ += n; }
  /// When the next packet is due.
  [[nodiscard]] u64 due_ns() const { return begin_ns_ + static_cast<u64>(given_ * gap_ns_); }
  /// Packets that were due and never left, because the sender was held up for too long.
  [[nodiscard]] u64 skipped() const { return static_cast<u64>(skipped_); }
  [[nodiscard]] double gap_ns() const { return gap_ns_; }

 private:
  double gap_ns_;
  u64 begin_ns_;
  double given_ = 0;
  double skipped_ = 0;
};

}  // namespace doorbell::net
