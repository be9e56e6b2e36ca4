// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// How long a thread polls before it lets others run.
#pragma once

#include <doorbell/config.hpp>

#include <sched.h>

#include <atomic>

namespace doorbell {

/// Polls without a find after which an initiator lets others run.
inline constexpr u32 kInitiatorPollsPerYield = 512;

/// Threads of this process that act as devices.
inline std::atomic<u32> polling_devices{0};

/// Polls without a find after which a thread gives up its processor: `usual`, and few where the devices that
/// it waits for are threads that have to share one processor with it, because none of them works while it
/// polls. Of the calling thread, as of now; a system call.
[[nodiscard]] inline u32 polls_per_yield(u32 usual) {
  constexpr u32 kOnOneProcessor = 4;
  cpu_set_t mine;
  if (polling_devices.load(std::memory_order_relaxed) == 0) return usual;
  return sched_getaffinity(0, sizeof mine, &mine) == 0 && CPU_COUNT(&mine) == 1 ? kOnOneProcessor : usual;
}

}  // namespace doorbell
