// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/workload/checks.hpp"

#include <doorbell/net/packet.hpp>
#include <doorbell/pattern_unit.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>

namespace doorbell::net {
namespace {

constexpr u64 kFactorSeed = 0x646f6f7262656c6c;
constexpr u64 kVectorSeed = 0x7665637400000000;
constexpr double kFftTolerance = std::countr_zero(kFftLength) * 0x1p-24;
/// A sum of errors with weights below 2 that have no relation to them is hardly ever four times their length.
constexpr double kWeightedSum = 4;

double energy_of(const std::complex<float>* v) {
  double sum = 0;
  for (u32 i = 0; i < kFftLength; ++i) {
    const double re = v[i].real(), im = v[i].imag();
    sum += re * re + im * im;
  }
  return sum;
}

/// The limit of all errors of a transform together. No bin can be larger than sqrt(N sum|x|^2).
double error_of_all(double energy) {
  return kFftTolerance * std::sqrt(kFftLength * energy);
}

/// Of either sign, with a magnitude in [1, 2).
std::vector<double> random_vector(u64 seed, u32 n) {
  std::vector<double> v(n);
  for (u32 i = 0; i < n; ++i) {
    const u64 bits = pattern::mix64(seed + i);
    const double magnitude = 1 + static_cast<double>(bits >> 11) * 0x1p-53;
    v[i] = (bits & 1) != 0 ? -magnitude : magnitude;
  }
  return v;
}

/// Sums in several parts, because each addition waits for the one before it.
constexpr u32 kParts = 8;
using Parts = std::array<double, kParts>;
double total(const Parts& parts) {
  double sum = 0;
  for (const double p : parts) sum += p;
  return sum;
}

struct RowSums {
  double got = 0;        ///< c r
  double wanted = 0;     ///< a product
  double magnitude = 0;  ///< |a| length
};

using Floats = float __attribute__((vector_size(16)));
using Words = u32 __attribute__((vector_size(16)));
using Doubles = double __attribute__((vector_size(32)));

template <class V>
[[gnu::always_inline]] inline V load(const void* from) {
  V v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

/// Two sums of each kind, because each addition waits for the one before it.
[[gnu::always_inline]] inline RowSums sums_of_row(const float* a, const float* c, const double* r,
                                                  const double* product, const double* length, u32 n) {
  Doubles got[2] = {}, wanted[2] = {}, magnitude[2] = {};
  u32 k = 0;
  for (; k + 8 <= n; k += 8)
    for (u32 half = 0; half < 2; ++half) {
      const u32 at = k + 4 * half;
      const auto x = load<Floats>(a + at), y = load<Floats>(c + at);
      const auto size = std::bit_cast<Floats>(std::bit_cast<Words>(x) & 0x7fffffffu);
      got[half] += __builtin_convertvector(y, Doubles) * load<Doubles>(r + at);
      wanted[half] += __builtin_convertvector(x, Doubles) * load<Doubles>(product + at);
      magnitude[half] += __builtin_convertvector(size, Doubles) * load<Doubles>(length + at);
    }
  RowSums sums;
  for (u32 lane = 0; lane < 4; ++lane) {
    sums.got += got[0][lane] + got[1][lane];
    sums.wanted += wanted[0][lane] + wanted[1][lane];
    sums.magnitude += magnitude[0][lane] + magnitude[1][lane];
  }
  for (; k < n; ++k) {
    sums.got += static_cast<double>(c[k]) * r[k];
    sums.wanted += static_cast<double>(a[k]) * product[k];
    sums.magnitude += std::abs(static_cast<double>(a[k])) * length[k];
  }
  return sums;
}

#if defined(__x86_64__)
[[gnu::target("avx2")]] RowSums sums_by_avx2(const float* a, const float* c, const double* r,
                                             const double* product, const double* length, u32 n) {
  return sums_of_row(a, c, r, product, length, n);
}
#endif

RowSums row_sums(const float* a, const float* c, const double* r, const double* product, const double* length,
                 u32 n) {
#if defined(__x86_64__)
  static const bool has_avx2 = __builtin_cpu_supports("avx2") != 0;
  if (has_avx2) return sums_by_avx2(a, c, r, product, length, n);
#endif
  return sums_of_row(a, c, r, product, length, n);
}

/// As half_value(), without a branch, so that a compiler makes it of vectors.
void to_floats(const u16* from, u32 n, float* to) {
  for (u32 i = 0; i < n; ++i) {
    const u32 bits = from[i], magnitude = bits & 0x7fff;
    // A smaller exponent's bias: numbers below the smallest exponent come right by it, too.
    const float small = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
    const u32 special = magnitude >= 0x7c00 ? 0x7f800000u : 0;
    to[i] = std::bit_cast<float>(std::bit_cast<u32>(small) | special | (bits & 0x8000) << 16);
  }
}

}  // namespace

double share_of(double error, double allowed) {
  // A limit that is not finite allows nothing.
  if (error <= allowed && std::isfinite(allowed)) return allowed > 0 ? error / allowed : 0;
  const double share = error / allowed;
  return std::isfinite(share) ? share : std::numeric_limits<double>::infinity();
}

float half_value(u16 bits) {
  const u32 sign = static_cast<u32>(bits & 0x8000) << 16, exponent = bits >> 10 & 31u,
            fraction = bits & 1023u;
  if (exponent == 0) {
    const float v = static_cast<float>(fraction) * 0x1p-24f;
    return sign != 0 ? -v : v;
  }
  // Infinity and what is no number keep their exponent of ones.
  return std::bit_cast<float>(sign | (exponent == 31 ? 255u : exponent + 112) << 23 | fraction << 13);
}

std::vector<u16> second_factor_half(u32 n) {
  std::vector<u16> b(u64{n} * n);
  for (u64 i = 0; i < b.size(); ++i)
    b[i] = static_cast<u16>(data_word(Fill::float16, kFactorSeed, 0, 0, i / 4) >> (16 * (i % 4)));
  return b;
}

std::vector<float> second_factor(u32 n, bool half) {
  std::vector<float> b(u64{n} * n);
  if (half) {
    std::ranges::transform(second_factor_half(n), b.begin(), half_value);
    return b;
  }
  for (u64 i = 0; i < b.size(); ++i) {
    const auto bits = static_cast<u32>(data_word(Fill::float32, kFactorSeed, 0, 0, i / 2) >> (32 * (i % 2)));
    std::memcpy(&b[i], &bits, 4);
  }
  return b;
}

GemmCheck::GemmCheck(const WorkloadShape& shape, const std::vector<float>& b)
    : n_(shape.n),
      half_(shape.kind == WorkloadKind::gemm_fp16),
      tolerance_(half_ ? n_ * 0x1p-25 : std::sqrt(static_cast<double>(n_)) * 0x1p-24),
      b_(b),
      sum_(n_),
      magnitude_(n_),
      row_(half_ ? n_ : 0) {
  for (u64 i = 0; i < kVectors; ++i) {
    Vector v = {random_vector(kVectorSeed + (i << 20), n_), std::vector<double>(n_), std::vector<double>(n_)};
    for (u32 k = 0; k < n_; ++k) {
      double sum = 0, squares = 0;
      for (u32 j = 0; j < n_; ++j) {
        const double x = static_cast<double>(b_[u64{k} * n_ + j]) * v.r[j];
        sum += x;
        squares += x * x;
      }
      v.product[k] = sum;
      v.length[k] = std::sqrt(squares);
    }
    vectors_.push_back(std::move(v));
  }
}

float GemmCheck::element(const void* row, u32 k) const {
  if (half_) {
    u16 bits;
    std::memcpy(&bits, static_cast<const u8*>(row) + u64{k} * 2, 2);
    return half_value(bits);
  }
  float value;
  std::memcpy(&value, static_cast<const u8*>(row) + u64{k} * 4, 4);
  return value;
}

double GemmCheck::product(u64 window, u32 rows, const void* a, const float* c) {
  const Vector& v = vectors_[window % kVectors];
  double worst = 0;
  for (u32 i = 0; i < rows; ++i) {
    const auto* x = static_cast<const float*>(a) + u64{i} * n_;
    if (half_) {
      to_floats(static_cast<const u16*>(a) + u64{i} * n_, n_, row_.data());
      x = row_.data();
    }
    const RowSums sums = row_sums(x, c + u64{i} * n_, v.r.data(), v.product.data(), v.length.data(), n_);
    worst = std::max(worst, share_of(std::abs(sums.got - sums.wanted), tolerance_ * sums.magnitude));
  }
  return worst;
}

double GemmCheck::row(const void* a, std::span<const float> c) {
  std::ranges::fill(sum_, 0);
  std::ranges::fill(magnitude_, 0);
  for (u32 k = 0; k < n_; ++k) {
    const double factor = element(a, k);
    const float* const b = &b_[u64{k} * n_];
    for (u32 j = 0; j < n_; ++j) {
      const double product = factor * static_cast<double>(b[j]);
      sum_[j] += product;
      magnitude_[j] += std::abs(product);
    }
  }
  double worst = 0;
  for (u32 j = 0; j < n_; ++j)
    worst =
        std::max(worst, share_of(std::abs(static_cast<double>(c[j]) - sum_[j]), tolerance_ * magnitude_[j]));
  return worst;
}

FftCheck::FftCheck()
    : roots_(kFftLength), weights_(random_vector(kVectorSeed, kFftLength)), weights_of_input_(kFftLength) {
  for (u32 i = 0; i < kFftLength; ++i) {
    const double angle = -2 * std::numbers::pi * i / kFftLength;
    roots_[i] = {std::cos(angle), std::sin(angle)};
  }
  for (u32 i = 0; i < kFftLength; ++i)
    for (u32 k = 0; k < kFftLength; ++k) weights_of_input_[i] += weights_[k] * roots_[k * i % kFftLength];
}

double FftCheck::transform(const std::complex<float>* in, const std::complex<float>* out) const {
  const double before = energy_of(in), after = energy_of(out) / kFftLength;
  Parts re{}, im{}, sum_re{}, sum_im{};
  static_assert(kFftLength % kParts == 0);
  for (u32 i = 0; i < kFftLength; i += kParts)
    for (u32 part = 0; part < kParts; ++part) {
      const u32 k = i + part;
      const double x = in[k].real(), y = in[k].imag(), w = weights_[k];
      const std::complex<double>& input = weights_of_input_[k];
      re[part] += w * static_cast<double>(out[k].real()) - (x * input.real() - y * input.imag());
      im[part] += w * static_cast<double>(out[k].imag()) - (x * input.imag() + y * input.real());
      sum_re[part] += x;
      sum_im[part] += y;
    }
  const double allowed = error_of_all(before);
  const double bin_0 = std::hypot(out[0].real() - total(sum_re), out[0].imag() - total(sum_im));
  return std::max({share_of(std::hypot(total(re), total(im)), kWeightedSum * allowed),
                   share_of(std::abs(after - before), 2 * kFftTolerance * before), share_of(bin_0, allowed)});
}

double FftCheck::every_bin(const std::complex<float>* in, const std::complex<float>* out) const {
  const double allowed = error_of_all(energy_of(in));
  double worst = 0;
  for (u32 k = 0; k < kFftLength; ++k) {
    double re = 0, im = 0;
    for (u32 i = 0; i < kFftLength; ++i) {
      const std::complex<double>& root = roots_[k * i % kFftLength];
      const double x = in[i].real(), y = in[i].imag();
      re += x * root.real() - y * root.imag();
      im += x * root.imag() + y * root.real();
    }
    worst = std::max(worst, share_of(std::hypot(out[k].real() - re, out[k].imag() - im), allowed));
  }
  return worst;
}

}  // namespace doorbell::net
