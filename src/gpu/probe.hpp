// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The contract between the kernel doorbell_probe and its callers.
#pragma once

#include <doorbell/config.hpp>

namespace doorbell {

/// The value that the kernel doorbell_probe writes to prove that it ran.
inline constexpr u32 kProbeValue = 0xD00B'E110u;

/// The samples that doorbell_probe takes, in the order of its `clocks` argument.
enum ProbeClock : u32 { kProbeNsBegin, kProbeCyclesBegin, kProbeNsEnd, kProbeCyclesEnd, kProbeClocks };

}  // namespace doorbell
