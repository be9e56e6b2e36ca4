// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The CPU's instruction for CRC-32C, and whether there is one.
#pragma once

#if defined(__x86_64__)

#include <nmmintrin.h>

namespace doorbell::net {

inline const bool kHasCrc32c = __builtin_cpu_supports("sse4.2") != 0;

}  // namespace doorbell::net

#endif
