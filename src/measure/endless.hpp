// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Runs that go on until they are stopped: their duration is kEndlessS.
#pragma once

#include "measure/bench_run.hpp"

namespace doorbell::measure {

/// Whether a phase of so many seconds is one without an end, for displays and clocks.
[[nodiscard]] inline bool is_endless(double seconds) {
  return seconds > kEndlessS / 10;
}

}  // namespace doorbell::measure
