// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A packet's integers as floating-point numbers, worked out by another way than the code under check: in
// double precision, number by number.
#pragma once

#include <vector>

#include "net/assembly/convert.hpp"

namespace doorbell::net {

/// Appends what `bytes` bytes at `from` become.
void reference_conversion(const Conversion& c, const u8* from, u64 bytes, std::vector<u8>& to);

}  // namespace doorbell::net
