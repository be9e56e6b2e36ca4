// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A socket's count of dropped packets, which the kernel keeps in 32 bits.
#pragma once

#include <doorbell/config.hpp>

namespace doorbell::net::sockets {

class DropCounter {
 public:
  /// Takes a reading. Packets carry the count of the moment when they were queued, so that a reading may be
  /// older than the one before it; it then changes nothing.
  void update(u32 reading) {
    const u32 ahead = reading - last_;
    if (ahead >= u32{1} << 31) return;
    total_ += ahead;
    last_ = reading;
  }
  /// All drops so far, if readings were never 2^31 drops apart.
  [[nodiscard]] u64 total() const { return total_; }

 private:
  u32 last_ = 0;
  u64 total_ = 0;
};

}  // namespace doorbell::net::sockets
