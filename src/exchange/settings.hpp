// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Where the two processes of a run meet.
#pragma once

#include "exchange/socket.hpp"
#include "options/setting.hpp"

namespace doorbell::exchange::setting {

inline constexpr Setting connect{kConnecting, "connect"};
inline constexpr Setting listen{kListening, "listen"};

}  // namespace doorbell::exchange::setting
