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

/// C = A B. An element may be off by sqrt(n) 2^-24 sum|a b| for float32, which numbers of 10 bits' fraction
/// (TF32) exceed nearly always; by n/4 2^-23 sum|a b| for binary16, whose products are exact and whose sums
/// may be cut off, once for four products or more.
class GemmCheck {
 public:
  GemmCheck(const WorkloadShape& shape, const std::vector<float>& b);
  /// Every element of some rows at once, by Freivalds' method: C r against A (B r), with one of kVectors
  /// random vectors r, whose elements have either sign and a magnitude in [1, 2). Errors of a right library
  /// have no relation to r, so that they add up as their squares do: a row may be off by tolerance sum_k
  /// |a_k| |r b_k|, where |r b_k| is the length of row k of B, each element times that of r. One wrong
  /// element always counts with at least its own error. `a` are rows of A as they were received, `c` rows of
  /// the result.
  [[nodiscard]] double product(u64 window, u32 rows, const void* a, const float* c);
  /// The row of a window of which every element is compared.
  [[nodiscard]] u32 row_of(u64 window) const { return static_cast<u32>(window % n_ * 7919 % n_); }
  /// `a` is a row of A as it was received, `c` the row of the result. Returns the largest share of its limit.
  [[nodiscard]] double row(const void* a, std::span<const float> c);

 private:
  static constexpr u32 kVectors = 2;
  struct Vector {
    std::vector<double> r;
    std::vector<double> product;  ///< B r
    std::vector<double> length;   ///< of each row of B, its elements times those of r
  };
  [[nodiscard]] float element(const void* row, u32 k) const;

  u32 n_;
  bool half_;
  double tolerance_;
  const std::vector<float>& b_;
  std::vector<double> sum_, magnitude_;
  std::vector<float> row_;  ///< of A, where it has other numbers
  std::vector<Vector> vectors_;
};

/// Forward transforms of N = kFftLength complex numbers. All errors of one together (the root of the sum of
/// their squares) may be e = log2(N) 2^-24 sqrt(N sum|x|^2): single precision, a rounding a stage, of all
/// that comes out. A bin may be off by e, the energy by twice its share, a sum of bins with random weights by
/// 4 e.
class FftCheck {
 public:
  FftCheck();
  /// Every bin of one transform at once, by a sum with random weights of either sign and a magnitude in [1,
  /// 2); energy (Parseval) and bin 0. Returns the largest share of its limit.
  [[nodiscard]] double transform(const std::complex<float>* in, const std::complex<float>* out) const;
  /// Every bin against the definition.
  [[nodiscard]] double every_bin(const std::complex<float>* in, const std::complex<float>* out) const;

 private:
  std::vector<std::complex<double>> roots_;
  std::vector<double> weights_;                         ///< of bins
  std::vector<std::complex<double>> weights_of_input_;  ///< their transform: what each input adds to the sum
};

}  // namespace doorbell::net
