// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Whether a library has computed what it was asked to, in double precision on the CPU.
#pragma once

#include <complex>
#include <span>
#include <vector>

#include "net/workload/shape.hpp"

namespace doorbell::net {

/// An error as a share of what is allowed; more than 1, or infinite, when it is too large or not a number.
[[nodiscard]] double share_of(double error, double allowed);

/// The number of a binary16.
[[nodiscard]] float half_value(u16 bits);

/// The second factor of every product: n x n random numbers of [-1, 1), the same in every run. Each is a
/// binary16 too when `half`.
[[nodiscard]] std::vector<float> second_factor(u32 n, bool half);
/// The same as binary16.
[[nodiscard]] std::vector<u16> second_factor_half(u32 n);

/// Rows of C = A B. An error may be sqrt(n) 2^-24 sum|a b| for float32, which numbers of 10 bits' fraction
/// (TF32) exceed nearly always; n 2^-23 sum|a b| for binary16, whose products are exact and whose sums may be
/// cut off.
class GemmCheck {
 public:
  GemmCheck(const WorkloadShape& shape, const std::vector<float>& b);
  /// The row of a window that is checked.
  [[nodiscard]] u32 row_of(u64 window) const { return static_cast<u32>(window % n_ * 7919 % n_); }
  /// `a` is a row of A as it was received, `c` the row of the result. Returns the largest share of its limit.
  [[nodiscard]] double row(const void* a, std::span<const float> c);

 private:
  u32 n_;
  bool half_;
  const std::vector<float>& b_;
  std::vector<double> sum_, magnitude_;
};

/// Forward transforms of kFftLength complex numbers: each one's energy (Parseval, 1e-5) and bin 0, and every
/// bin of one of them against the definition.
class FftCheck {
 public:
  FftCheck();
  /// One transform; returns the largest share of its limit.
  [[nodiscard]] double energy(const std::complex<float>* in, const std::complex<float>* out) const;
  [[nodiscard]] double every_bin(const std::complex<float>* in, const std::complex<float>* out) const;

 private:
  std::vector<std::complex<double>> roots_;
};

}  // namespace doorbell::net
