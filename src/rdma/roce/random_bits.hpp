// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Draws that follow from a seed and a place, in any order.
#pragma once

#include <doorbell/config.hpp>

namespace doorbell::roce {

/// Each bit of the result depends on each bit of `v` (the finalizer of splitmix64).
constexpr u64 mixed(u64 v) {
  v += 0x9E37'79B9'7F4A'7C15;
  v = (v ^ v >> 30) * 0xBF58'476D'1CE4'E5B9;
  v = (v ^ v >> 27) * 0x94D0'49BB'1331'11EB;
  return v ^ v >> 31;
}
/// In [0, 1).
constexpr double fraction(u64 bits) {
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

}  // namespace doorbell::roce
