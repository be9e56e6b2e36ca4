// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Sizes of workloads, and the checks of their results against right and wrong ones.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numbers>
#include <random>

#include "errors.hpp"
#include "net/row_product.hpp"
#include "net/workload/checks.hpp"
#include "net/workload/computing.hpp"

namespace doorbell::net {
namespace {

using doorbell::test::error_of;
using doorbell::test::expect_says;

// --- sizes ------------------------------------------------------------------------------------------

TEST(WorkloadShape, MatricesFollowFromTheWindow) {
  const std::pair<u64, u32> published[] = {{262144, 256},     {524288, 360},        {1u << 20, 512},
                                           {2u << 20, 720},   {4u << 20, 1024},     {8u << 20, 1448},
                                           {8'000'000, 1408}, {8'192'000, 1424},    {16384, 64},
                                           {100, 64},         {u64{1} << 40, 16384}};
  for (const auto& [bytes, n] : published) EXPECT_EQ(gemm_dim(bytes), n) << bytes;
  const WorkloadShape s = workload_shape(WorkloadKind::gemm, 8'192'000);
  EXPECT_EQ(s.n, 1424U);
  EXPECT_EQ(s.flop, u64{2} * 1424 * 1424 * 1424);
  EXPECT_EQ(s.input_bytes, u64{1424} * 1424 * 4);
  EXPECT_EQ(workload_shape(WorkloadKind::gemm_fp16, 8'192'000).input_bytes, u64{1424} * 1424 * 2);
  EXPECT_EQ(workload_shape(WorkloadKind::gemm_fp16, 8'192'000).n, 1424U);
  EXPECT_EQ(workload_shape(WorkloadKind::gemm, 8'192'000, 1024).n, 1024U);
}

TEST(WorkloadShape, TransformsFillTheWindow) {
  const WorkloadShape s = workload_shape(WorkloadKind::fft, 8'192'000);
  EXPECT_EQ(s.batch, 1000U);
  EXPECT_EQ(s.flop, 51'200'000U);
  EXPECT_EQ(workload_shape(WorkloadKind::fft, 8192 * 3 + 8191).batch, 3U);
}

TEST(WorkloadShape, RefusesWhatDoesNotFit) {
  expect_says(error_of([] { (void)workload_shape(WorkloadKind::fft, 8191); }), "at least 8192 bytes");
  expect_says(error_of([] { (void)workload_shape(WorkloadKind::gemm, 16383); }), "holds no 64 x 64 matrix");
  expect_says(error_of([] { (void)workload_shape(WorkloadKind::gemm, 1u << 20, 513); }), "513 x 513");
  expect_says(error_of([] { (void)workload_shape(WorkloadKind::gemm, 1u << 20, 16385); }), "1 to 16384");
  expect_says(error_of([] { (void)workload_kind("fftt"); }), "none, fft, gemm, gemm_fp16");
  EXPECT_EQ(workload_kind("gemm_fp16"), WorkloadKind::gemm_fp16);
}

// --- checks -----------------------------------------------------------------------------------------

std::vector<float> random_floats(u64 n, u64 seed) {
  std::vector<float> v(n);
  for (u64 i = 0; i < n; ++i) {
    const auto bits = static_cast<u32>(data_word(Fill::float32, seed, 0, 0, i / 2) >> (32 * (i % 2)));
    std::memcpy(&v[i], &bits, 4);
  }
  return v;
}

TEST(GemmCheck, AcceptsFloatAndCatchesTf32) {
  for (const u32 n : {64U, 256U, 512U}) {
    const WorkloadShape shape = workload_shape(WorkloadKind::gemm, u64{n} * n * 4, n);
    const auto b = second_factor(n, false);
    GemmCheck check(shape, b);
    const auto a = random_floats(n, 9);
    EXPECT_LT(check.row(a.data(), row_product(a.data(), b, n, 23)), 0.5) << n;
    EXPECT_GT(check.row(a.data(), row_product(a.data(), b, n, 10)), 1) << n;
    auto c = row_product(a.data(), b, n, 23);
    c[n - 1] += 0.001f;
    EXPECT_GT(check.row(a.data(), c), 1);
    c[n - 1] = std::nanf("");
    EXPECT_GT(check.row(a.data(), c), 1);
    auto unknown = a;
    unknown[3] = std::nanf("");
    EXPECT_GT(check.row(unknown.data(), row_product(a.data(), b, n, 23)), 1);
  }
}

TEST(GemmCheck, AnotherRowsResultIsWrong) {
  const u32 n = 64;
  const auto b = second_factor(n, false);
  GemmCheck check(workload_shape(WorkloadKind::gemm, u64{n} * n * 4, n), b);
  const auto a = random_floats(u64{2} * n, 9);
  EXPECT_GT(check.row(a.data(), row_product(a.data() + n, b, n, 23)), 1);
  EXPECT_GT(check.row(a.data(), std::vector<float>(n)), 1) << "zeros";
  const std::vector<float> zeros(n);
  EXPECT_EQ(check.row(zeros.data(), zeros), 0);
  EXPECT_GT(check.row(zeros.data(), std::vector<float>(n, 1e-30f)), 1);
}

TEST(GemmCheck, ReadsBinary16) {
  EXPECT_EQ(half_value(0x3c00), 1);
  EXPECT_EQ(half_value(0xc000), -2);
  EXPECT_EQ(half_value(0x0001), 0x1p-24f);
  EXPECT_EQ(half_value(0x7bff), 65504);
  EXPECT_TRUE(std::isinf(half_value(0x7c00)));
  EXPECT_TRUE(std::isnan(half_value(0x7e00)));
  const auto halves = second_factor_half(8);
  const auto floats = second_factor(8, true);
  for (u32 i = 0; i < 64; ++i) {
    EXPECT_EQ(half_value(halves[i]), floats[i]);
    EXPECT_TRUE(floats[i] >= -1 && floats[i] < 1);
  }
}

using Complex = std::complex<float>;

std::vector<Complex> transformed(const Complex* in) {
  std::vector<Complex> out(kFftLength);
  for (u32 k = 0; k < kFftLength; ++k) {
    std::complex<double> sum = 0;
    for (u32 i = 0; i < kFftLength; ++i)
      sum += std::complex<double>(in[i]) *
             std::polar(1.0, -2 * std::numbers::pi * (k * i % kFftLength) / kFftLength);
    out[k] = Complex(sum);
  }
  return out;
}

TEST(GemmCheck, SeesOneWrongElementOfAProduct) {
  for (const u32 n : {64U, 67U, 128U}) {
    const auto b = second_factor(n, false);
    GemmCheck check(workload_shape(WorkloadKind::gemm, u64{n} * n * 4, n), b);
    const auto a = random_floats(u64{n} * n, 11);
    std::vector<float> c;
    for (u32 i = 0; i < n; ++i) {
      const auto row = row_product(&a[u64{i} * n], b, n, 23);
      c.insert(c.end(), row.begin(), row.end());
    }
    for (u64 window : {0, 1}) {
      EXPECT_LT(check.product(window, n, a.data(), c.data()), 0.5) << n;
      for (const u32 at : {0U, n - 1, n * n / 2 + 5, n * n - 1}) {
        auto wrong = c;
        wrong[at] += 0.001f;
        EXPECT_GT(check.product(window, n, a.data(), wrong.data()), 1) << n << " at " << at;
        wrong[at] = std::nanf("");
        EXPECT_GT(check.product(window, n, a.data(), wrong.data()), 1) << n << " at " << at;
      }
      auto wrong = c;
      for (u32 i = 0; i < n; ++i) std::swap(wrong[i * n + 7], wrong[i * n + 8]);
      EXPECT_GT(check.product(window, n, a.data(), wrong.data()), 1) << "columns that have changed places";
    }
  }
}

TEST(GemmCheck, OfBinary16NumbersOfEveryKind) {
  constexpr u32 n = 64;
  const auto b = second_factor(n, true);
  GemmCheck check(workload_shape(WorkloadKind::gemm_fp16, u64{n} * n * 2, n), b);
  // Zeros, numbers below the smallest exponent, of either sign, and the largest.
  std::vector<u16> a(n);
  const u16 kinds[] = {0, 0x8000, 1, 0x83ff, 0x0400, 0x3c00, 0xc555, 0x7bff};
  for (u32 k = 0; k < n; ++k) a[k] = kinds[k % 8];
  std::vector<float> c(n);
  for (u32 j = 0; j < n; ++j) {
    double sum = 0;
    for (u32 k = 0; k < n; ++k)
      sum += static_cast<double>(half_value(a[k])) * static_cast<double>(b[k * n + j]);
    c[j] = static_cast<float>(sum);
  }
  EXPECT_LT(check.product(0, 1, a.data(), c.data()), 1);
  EXPECT_LT(check.row(a.data(), c), 1);
  a[7] = 0x7c00;
  EXPECT_GT(check.product(0, 1, a.data(), c.data()), 1) << "infinite";
  EXPECT_GT(check.row(a.data(), c), 1);
}

TEST(FftCheck, SeesWrongBinsAndWrongOrder) {
  const FftCheck check;
  const auto values = random_floats(2 * kFftLength, 4);
  const auto* const in = reinterpret_cast<const Complex*>(values.data());
  const auto right = transformed(in);
  EXPECT_LT(check.transform(in, right.data()), 0.2);
  EXPECT_LT(check.every_bin(in, right.data()), 0.2);
  for (const u32 k : {0U, 1U, 100U, kFftLength - 1}) {
    // A bin has about 18 in either part.
    auto wrong = right;
    wrong[k] += 0.1f;
    EXPECT_GT(check.transform(in, wrong.data()), 1) << k;
    EXPECT_GT(check.every_bin(in, wrong.data()), 1) << k;
    wrong[k] = right[k] + Complex(0, 0.1f);
    EXPECT_GT(check.transform(in, wrong.data()), 1) << k;
  }
  auto wrong = right;
  std::swap(wrong[5], wrong[6]);
  EXPECT_GT(check.transform(in, wrong.data()), 1) << "what the energy cannot see";
  EXPECT_GT(check.every_bin(in, wrong.data()), 1);
  wrong = right;
  wrong[7] = {std::nanf(""), 0};
  EXPECT_GT(check.transform(in, wrong.data()), 1);
  EXPECT_GT(check.every_bin(in, wrong.data()), 1);
  const std::vector<Complex> zeros(kFftLength);
  EXPECT_EQ(check.transform(zeros.data(), zeros.data()), 0);
  EXPECT_GT(check.transform(zeros.data(), right.data()), 1);
}

}  // namespace
}  // namespace doorbell::net
