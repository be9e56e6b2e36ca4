// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The wire between a model and its host: an optional bandwidth, which all queues of a device share, and an
// optional latency for each operation.
#pragma once

#include <doorbell/memory_order.hpp>

namespace doorbell::model {

struct LinkRule {
  double ns_per_byte = 0;  ///< 0: no limit
  u64 latency_ns = 0;      ///< added to every operation

  [[nodiscard]] DOORBELL_INLINE bool limited() const { return ns_per_byte > 0 || latency_ns > 0; }
  /// The time in ns at which an operation of `bytes` ends that starts now. `free_at` is the time at which the
  /// wire is free; all threads of a device, or all warps, share it.
  [[nodiscard]] DOORBELL_HD u64 finish_time(u64* free_at, u64 now_ns, u64 bytes) const {
    u64 end = now_ns;
    if (ns_per_byte > 0) {
      const auto busy = static_cast<u64>(static_cast<double>(bytes) * ns_per_byte);
      u64 seen = load64_relaxed(free_at);
      do {
        end = (seen > now_ns ? seen : now_ns) + busy;
      } while (!replace(free_at, seen, end));
    }
    return end + latency_ns;
  }

 private:
  /// Puts `to` where `seen` was; else `seen` becomes what is there.
  [[nodiscard]] DOORBELL_INLINE static bool replace(u64* p, u64& seen, u64 to) {
#if defined(DOORBELL_ON_GPU)
    const u64 found = atomicCAS(reinterpret_cast<unsigned long long*>(p), seen, to);
    const bool done = found == seen;
    seen = found;
    return done;
#else
    return __atomic_compare_exchange_n(p, &seen, to, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
#endif
  }
};

class Link {
 public:
  /// `bytes_per_s` 0: no limit. `latency_ns` is added to every operation.
  Link(double bytes_per_s, u64 latency_ns) : rule_{bytes_per_s > 0 ? 1e9 / bytes_per_s : 0, latency_ns} {}

  [[nodiscard]] bool limited() const { return rule_.limited(); }
  [[nodiscard]] const LinkRule& rule() const { return rule_; }
  /// As LinkRule's. Any thread.
  [[nodiscard]] u64 finish_time(u64 now_ns, u64 bytes) {
    return rule_.finish_time(&free_at_ns_, now_ns, bytes);
  }

 private:
  LinkRule rule_;
  u64 free_at_ns_ = 0;
};

}  // namespace doorbell::model
