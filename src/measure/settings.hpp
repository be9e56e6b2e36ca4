// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Settings that the benches of all paths have.
#pragma once

#include "options/setting.hpp"

namespace doorbell::measure::setting {

inline constexpr Setting duration{"duration", "duration"};
inline constexpr Setting repeats{"repeats", "repeats"};
inline constexpr Setting verify{"verification", "verify"};
inline constexpr Setting fault{"fault", "fault"};
inline constexpr Setting initiator{"initiator", "initiator"};
inline constexpr Setting infinite{"a run without an end", "infinite"};
inline constexpr Setting others{"comparison", "beside"};

}  // namespace doorbell::measure::setting
