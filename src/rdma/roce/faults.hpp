// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The faults that a NIC is asked for, as words: those of the wire, which its carrier injects, and those of
// its completions, which its engine does.
#pragma once

#include <string_view>

#include "rdma/roce/completion_faults.hpp"
#include "rdma/roce/wire_faults.hpp"

namespace doorbell::roce {

struct Faults {
  WireFaults wire;
  CompletionFaults completions;
};

/// Reads "drop=0.01,reorder=0.02,delay=0.001:500us,early=0.01:1ms". Empty: none. Throws Error that names the
/// part that is wrong and what it may be.
[[nodiscard]] Faults parse_faults(std::string_view text);

}  // namespace doorbell::roce
