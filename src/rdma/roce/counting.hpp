// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Counters that whoever has the engine counts, and any thread reads: plain additions, no torn values.
#pragma once

#include <atomic>
#include <cstring>

#include "rdma/roce/nic.hpp"

namespace doorbell::roce {

inline void count(u64& counter, u64 by = 1) {
  const std::atomic_ref<u64> shared(counter);
  shared.store(shared.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
}

static_assert(sizeof(Counters) % sizeof(u64) == 0 && alignof(Counters) == alignof(u64));
inline constexpr std::size_t kCounters = sizeof(Counters) / sizeof(u64);

/// Adds `from`, which the engine may count on, to `into`, which is the caller's own.
inline void add(Counters& into, const Counters& from) {
  u64* to = reinterpret_cast<u64*>(&into);
  u64* read = reinterpret_cast<u64*>(const_cast<Counters*>(&from));
  for (std::size_t i = 0; i < kCounters; ++i)
    to[i] += std::atomic_ref<u64>(read[i]).load(std::memory_order_relaxed);
}

}  // namespace doorbell::roce
