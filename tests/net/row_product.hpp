// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A matrix product as a library makes it, to be checked.
#pragma once

#include <doorbell/config.hpp>

#include <cstring>
#include <vector>

namespace doorbell::net {

/// One row of the product in single precision; `fraction_bits` of each factor are kept.
inline std::vector<float> row_product(const float* a, const std::vector<float>& b, u32 n, u32 fraction_bits) {
  const auto cut = [&](float v) {
    u32 bits;
    std::memcpy(&bits, &v, 4);
    bits =
        (bits + (fraction_bits < 23 ? 1u << (22 - fraction_bits) : 0)) & ~((1u << (23 - fraction_bits)) - 1);
    std::memcpy(&v, &bits, 4);
    return v;
  };
  std::vector<float> c(n);
  for (u32 k = 0; k < n; ++k)
    for (u32 j = 0; j < n; ++j) c[j] += cut(a[k]) * cut(b[u64{k} * n + j]);
  return c;
}

}  // namespace doorbell::net
