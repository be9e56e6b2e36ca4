// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// What Cassini's numbers are called, for messages and records.
#pragma once

#include <doorbell/cxi/types.hpp>

#include <string>

namespace doorbell::cxi {

/// "PT_DISABLED"; a number that the card leaves unused gives "code 63".
[[nodiscard]] std::string name(ReturnCode code);
/// "TRIGGERED_OP"; "type 22".
[[nodiscard]] std::string name(EventType type);
/// "ENABLED"; "state 7".
[[nodiscard]] std::string name(PtlteState state);

}  // namespace doorbell::cxi
