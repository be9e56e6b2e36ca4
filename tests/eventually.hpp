// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// How a test waits for what another thread does, and what it does about a machine that pauses.
#pragma once

#include <cstdio>
#include <thread>

#include "system/clock.hpp"

namespace doorbell::test {

/// How long anything may take on a busy machine before the test gives up.
inline constexpr double kWaitLimitS = 30;

/// Calls `done` until it is true; false after `limit_s`.
template <class Fn>
bool eventually(Fn done, double limit_s = kWaitLimitS) {
  const u64 end = wall_ns() + static_cast<u64>(limit_s * 1e9);
  while (!done()) {
    if (wall_ns() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

/// For cases that have a time of their own, which a machine that pauses for as long would spoil: calls
/// attempt(1), attempt(2), attempt(4) and so on until one returns true, each with so many times the case's
/// times. An error of the code spoils every attempt; the last one is judged.
template <class Fn>
void with_longer_times(Fn attempt) {
  for (double scale = 1; !attempt(scale) && scale < 64; scale *= 2)
    std::printf("spoiled by a pause, or wrong: again with %.0f times the time\n", 2 * scale);
}

}  // namespace doorbell::test
