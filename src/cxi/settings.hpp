// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Settings of Cassini NICs and of their bench, beside those of one-sided operations.
#pragma once

#include "options/setting.hpp"

namespace doorbell::cxi::setting {

inline constexpr Setting device{"device", "device"};
inline constexpr Setting inline_below{"inlined bytes", "idc"};

}  // namespace doorbell::cxi::setting
