// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/workload/checks.hpp"

#include <doorbell/net/packet.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace doorbell::net {
namespace {

constexpr u64 kFactorSeed = 0x646f6f7262656c6c;
constexpr double kEnergyTolerance = 1e-5;

double energy_of(const std::complex<float>* v) {
  double sum = 0;
  for (u32 i = 0; i < kFftLength; ++i) {
    const double re = v[i].real(), im = v[i].imag();
    sum += re * re + im * im;
  }
  return sum;
}

/// What a bin may be off by. No bin can be larger than sqrt(N sum|x|^2).
double bin_tolerance(double energy) {
  return kEnergyTolerance * std::sqrt(kFftLength * energy);
}

}  // namespace

double share_of(double error, double allowed) {
  if (error <= allowed) return allowed > 0 ? error / allowed : 0;
  const double share = error / allowed;
  return std::isfinite(share) ? share : std::numeric_limits<double>::infinity();
}

float half_value(u16 bits) {
  const int exponent = bits >> 10 & 31;
  const auto fraction = static_cast<float>(bits & 1023);
  float v;
  if (exponent == 31)
    v = fraction != 0 ? std::numeric_limits<float>::quiet_NaN() : std::numeric_limits<float>::infinity();
  else if (exponent == 0) v = std::ldexp(fraction, -24);
  else v = std::ldexp(1024 + fraction, exponent - 25);
  return (bits & 0x8000) != 0 ? -v : v;
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
    : n_(shape.n), half_(shape.kind == WorkloadKind::gemm_fp16), b_(b), sum_(n_), magnitude_(n_) {}

double GemmCheck::row(const void* a, std::span<const float> c) {
  std::ranges::fill(sum_, 0);
  std::ranges::fill(magnitude_, 0);
  const auto* const bytes = static_cast<const u8*>(a);
  for (u32 k = 0; k < n_; ++k) {
    float value;
    if (half_) {
      u16 bits;
      std::memcpy(&bits, bytes + u64{k} * 2, 2);
      value = half_value(bits);
    } else {
      std::memcpy(&value, bytes + u64{k} * 4, 4);
    }
    const double factor = value;
    const float* const b = &b_[u64{k} * n_];
    for (u32 j = 0; j < n_; ++j) {
      const double product = factor * static_cast<double>(b[j]);
      sum_[j] += product;
      magnitude_[j] += std::abs(product);
    }
  }
  const double tolerance = half_ ? n_ * 0x1p-23 : std::sqrt(static_cast<double>(n_)) * 0x1p-24;
  double worst = 0;
  for (u32 j = 0; j < n_; ++j)
    worst =
        std::max(worst, share_of(std::abs(static_cast<double>(c[j]) - sum_[j]), tolerance * magnitude_[j]));
  return worst;
}

FftCheck::FftCheck() : roots_(kFftLength) {
  for (u32 i = 0; i < kFftLength; ++i) {
    const double angle = -2 * std::numbers::pi * i / kFftLength;
    roots_[i] = {std::cos(angle), std::sin(angle)};
  }
}

double FftCheck::energy(const std::complex<float>* in, const std::complex<float>* out) const {
  const double before = energy_of(in), after = energy_of(out) / kFftLength;
  std::complex<double> sum = 0;
  for (u32 i = 0; i < kFftLength; ++i) sum += std::complex<double>(in[i]);
  return std::max(share_of(std::abs(after - before), kEnergyTolerance * before),
                  share_of(std::abs(std::complex<double>(out[0]) - sum), bin_tolerance(before)));
}

double FftCheck::every_bin(const std::complex<float>* in, const std::complex<float>* out) const {
  const double allowed = bin_tolerance(energy_of(in));
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
