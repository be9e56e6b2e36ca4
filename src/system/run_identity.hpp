// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Numbers that no other run has.
#pragma once

#include <doorbell/config.hpp>

namespace doorbell {

/// The first sequence of a run's units; it counts up from there. It is random, not a time: two runs have none
/// in common that start within one second, on two hosts, or behind a clock that was set back. (Of two runs
/// with 2^30 sequences each, one in 2^32 would.) Never 0. Throws Error if the kernel has no random numbers.
[[nodiscard]] u64 first_sequence();

}  // namespace doorbell
