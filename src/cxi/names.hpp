// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Names of Cassini's numbers, for messages and records.
#pragma once

#include <doorbell/cxi/types.hpp>

#include <string>

namespace doorbell::cxi {

/// "PT_DISABLED"; for a number without a name, "code 63".
[[nodiscard]] std::string name(ReturnCode code);
/// "TRIGGERED_OP"; for a number without a name, "type 22".
[[nodiscard]] std::string name(EventType type);
/// "ENABLED"; for a number without a name, "state 7".
[[nodiscard]] std::string name(PtlteState state);

}  // namespace doorbell::cxi
