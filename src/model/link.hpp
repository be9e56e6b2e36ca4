// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The wire between a model and its host: an optional bandwidth, which all queues of a device share, and an
// optional latency for each operation.
#pragma once

#include <doorbell/config.hpp>

#include <algorithm>
#include <atomic>

namespace doorbell::model {

class Link {
 public:
  /// `bytes_per_s` 0: no limit. `latency_ns` is added to every operation.
  Link(double bytes_per_s, u64 latency_ns)
      : ns_per_byte_(bytes_per_s > 0 ? 1e9 / bytes_per_s : 0), latency_ns_(latency_ns) {}

  [[nodiscard]] bool limited() const { return ns_per_byte_ > 0 || latency_ns_ > 0; }

  /// The time in ns at which an operation of `bytes` ends that starts now. Any thread.
  [[nodiscard]] u64 finish_time(u64 now_ns, u64 bytes) {
    u64 end = now_ns;
    if (ns_per_byte_ > 0) {
      const auto busy = static_cast<u64>(static_cast<double>(bytes) * ns_per_byte_);
      u64 free_at = free_at_ns_.load(std::memory_order_relaxed);
      do {
        end = std::max(free_at, now_ns) + busy;
      } while (!free_at_ns_.compare_exchange_weak(free_at, end, std::memory_order_relaxed));
    }
    return end + latency_ns_;
  }

 private:
  double ns_per_byte_;
  u64 latency_ns_;
  std::atomic<u64> free_at_ns_{0};
};

}  // namespace doorbell::model
