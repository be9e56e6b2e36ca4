// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A test's wishes of fake_cpu_math.
#pragma once

struct FakeCpuMath {
  enum class Wrong {
    nothing,
    row,         ///< 1e6 in every element of one row of each product
    element,     ///< 1e6 in one element of each product
    columns,     ///< two columns of each product have changed places
    transposed,  ///< the second matrix is taken by columns
    bin,         ///< 0.1 more in one bin of the last of each call's transforms
  };
  Wrong wrong = Wrong::nothing;
  int products = 0, transforms = 0;
};
