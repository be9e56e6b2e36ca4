// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/workload/workload.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <numbers>
#include <random>
#include <thread>

#include "errors.hpp"
#include "net/computing_gpu.hpp"
#include "net/fake_cpu_math.hpp"
#include "net/fake_gpu_math.hpp"
#include "net/workload/computing.hpp"
#include "system/clock.hpp"
#include "system/library.hpp"

namespace doorbell::net {
namespace {

using doorbell::test::error_of;
using doorbell::test::expect_says;

/// The environment variable has this value as long as the object lives.
class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~Environment() { ::unsetenv(name_); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  const char* name_;
};

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

/// One row of the product in single precision; `fraction_bits` of each factor are kept.
std::vector<float> row_product(const float* a, const std::vector<float>& b, u32 n, u32 fraction_bits) {
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

// --- runs -------------------------------------------------------------------------------------------

constexpr u64 kWindowBytes = 64 * 1024;  // n = 128, 8 transforms

/// Windows of random numbers, and the record of which came back.
class Source final : public WindowOwner {
 public:
  explicit Source(Fill fill, bool gpu = false) : fill_(fill), gpu_(gpu) {}
  void give_back(const Window& w) override { back.push_back(w.index); }
  Window make(u64 index, u64 bytes = kWindowBytes) {
    auto& words = data_.emplace_back(kWindowBytes / 8);
    for (u64 i = 0; i < words.size(); ++i) words[i] = data_word(fill_, index + 1, 0, 0, i);
    Window w;
    w.index = index;
    (gpu_ ? w.device : w.host) = reinterpret_cast<const u8*>(words.data());
    w.bytes = bytes;
    w.packets = 8;
    w.owner = this;
    return w;
  }
  std::vector<u64> back;

 private:
  Fill fill_;
  bool gpu_;
  std::deque<std::vector<u64>> data_;
};

Fill fill_of(WorkloadKind kind) {
  return kind == WorkloadKind::gemm_fp16 ? Fill::float16 : Fill::float32;
}

std::unique_ptr<Workload> open_or_null(WorkloadKind kind, const WorkloadRequest& r, std::string& why) {
  try {
    return Workload::open(kind, r);
  } catch (const Error& e) {
    if (e.code() != ExitCode::absent) throw;
    why = e.what() + std::string(": ") + e.hint();
    return nullptr;
  }
}

class WorkloadOnCpu : public testing::TestWithParam<WorkloadKind> {};

TEST_P(WorkloadOnCpu, ComputesEveryWindowRight) {
  std::string why;
  const auto w = open_or_null(GetParam(), {.bytes = kWindowBytes}, why);
  if (w == nullptr) GTEST_SKIP() << why;
  EXPECT_FALSE(w->library().empty());
  Source source(fill_of(GetParam()));
  for (u64 i = 0; i < 20; ++i) {
    w->take(source.make(i));
    w->poll();
  }
  w->take(source.make(20, w->shape().input_bytes - 1));
  w->finish();
  const WorkloadCounts& c = w->counts();
  EXPECT_EQ(c.runs, 20U);
  EXPECT_EQ(c.checked, 20U);
  EXPECT_EQ(c.failed, 0U);
  EXPECT_EQ(c.skipped, 1U);
  EXPECT_EQ(c.flop, 20 * w->shape().flop);
  EXPECT_GT(c.busy_ns, 0U);
  // Sums of these binary16 numbers are exact in single precision as long as they are below 16.
  if (GetParam() == WorkloadKind::gemm_fp16) {
    EXPECT_LT(c.worst, 0.02);
  } else {
    EXPECT_GT(c.worst, 1e-6);
  }
  EXPECT_LE(c.worst, 0.5);
  EXPECT_EQ(source.back.size(), 21U);
}

TEST_P(WorkloadOnCpu, GapsAreCheckedOnlyWhereTheyAreZeros) {
  for (const Missing missing : {Missing::zero, Missing::mark}) {
    std::string why;
    const auto w = open_or_null(GetParam(), {.bytes = kWindowBytes, .missing = missing}, why);
    if (w == nullptr) GTEST_SKIP() << why;
    Source source(fill_of(GetParam()));
    w->take(source.make(0));
    Window gap = source.make(1);
    gap.missing = 1;
    w->take(gap);
    w->finish();
    EXPECT_EQ(w->counts().runs, 2U);
    EXPECT_EQ(w->counts().checked, missing == Missing::zero ? 2U : 1U);
  }
}

TEST_P(WorkloadOnCpu, ChecksOneInSoMany) {
  std::string why;
  const auto w = open_or_null(GetParam(), {.bytes = kWindowBytes, .in_flight = 1, .check_every = 4}, why);
  if (w == nullptr) GTEST_SKIP() << why;
  Source source(fill_of(GetParam()));
  for (u64 i = 0; i < 9; ++i) w->take(source.make(i));
  w->finish();
  EXPECT_EQ(w->counts().runs, 9U);
  EXPECT_EQ(w->counts().checked, 3U);
}

std::string kind_name(const testing::TestParamInfo<WorkloadKind>& info) {
  return std::string(name(info.param));
}
constexpr WorkloadKind kComputing[] = {WorkloadKind::fft, WorkloadKind::gemm, WorkloadKind::gemm_fp16};
INSTANTIATE_TEST_SUITE_P(All, WorkloadOnCpu, testing::ValuesIn(kComputing), kind_name);

// --- libraries that compute wrong ---------------------------------------------------------------------

class WrongLibrary : public testing::Test {
 protected:
  WrongLibrary() {
    const FakeUse use = library_.need("fake_cpu_math_use");
    use(&told_);
  }
  /// Of kWindows windows.
  WorkloadCounts counts(WorkloadKind kind, FakeCpuMath::Wrong wrong) {
    told_.wrong = wrong;
    const auto w = Workload::open(kind, {.bytes = kWindowBytes});
    Source source(fill_of(kind));
    for (u64 i = 0; i < kWindows; ++i) w->take(source.make(i));
    w->finish();
    EXPECT_EQ(w->counts().checked, kWindows);
    return w->counts();
  }
  static constexpr u64 kWindows = 8;
  using FakeUse = void (*)(FakeCpuMath*);
  static constexpr std::array<const char*, 1> kNames = {DOORBELL_FAKE_CPU_MATH};

  Environment blas_{"DOORBELL_LIBOPENBLAS", DOORBELL_FAKE_CPU_MATH},
      fftw_{"DOORBELL_LIBFFTW3F", DOORBELL_FAKE_CPU_MATH};
  Library library_{"DOORBELL_FAKE_CPU_MATH_OVERRIDE", kNames, "build it"};
  FakeCpuMath told_;
};

TEST_F(WrongLibrary, IsFoundInEveryWindow) {
  using Wrong = FakeCpuMath::Wrong;
  for (const WorkloadKind kind : {WorkloadKind::gemm, WorkloadKind::gemm_fp16}) {
    EXPECT_EQ(counts(kind, Wrong::nothing).failed, 0U) << name(kind);
    for (const Wrong wrong : {Wrong::row, Wrong::element, Wrong::columns, Wrong::transposed})
      EXPECT_EQ(counts(kind, wrong).failed, kWindows) << name(kind) << " " << static_cast<int>(wrong);
  }
  EXPECT_EQ(counts(WorkloadKind::fft, Wrong::nothing).failed, 0U);
  EXPECT_EQ(counts(WorkloadKind::fft, Wrong::bin).failed, kWindows);
  EXPECT_GT(told_.products, 0);
  EXPECT_GT(told_.transforms, 0);
}

TEST(Workload, NoneGivesBackAtOnce) {
  const auto w = Workload::open(WorkloadKind::none, {});
  Source source(Fill::float32);
  w->take(source.make(0));
  EXPECT_EQ(source.back.size(), 1U);
  EXPECT_EQ(w->counts().runs, 0U);
}

TEST(Workload, AMissingLibraryIsNamed) {
  const Environment no_blas("DOORBELL_LIBOPENBLAS", "/nonexistent/libopenblas.so");
  const Environment no_fftw("DOORBELL_LIBFFTW3F", "/nonexistent/libfftw3f.so");
  const WorkloadRequest r{.bytes = kWindowBytes};
  expect_says(error_of([&] { (void)Workload::open(WorkloadKind::gemm, r); }, ExitCode::absent),
              "libopenblas0");
  expect_says(error_of([&] { (void)Workload::open(WorkloadKind::fft, r); }, ExitCode::absent),
              "libfftw3-single3");
}

TEST(Workload, RefusesWindowsThatItCannotReach) {
  std::string why;
  const auto w = open_or_null(WorkloadKind::gemm, {.bytes = kWindowBytes}, why);
  if (w == nullptr) GTEST_SKIP() << why;
  Source source(Fill::float32, true);
  expect_says(error_of([&] { w->take(source.make(0)); }), "cannot reach");
  expect_says(
      error_of([] { (void)Workload::open(WorkloadKind::fft, {.bytes = kWindowBytes, .in_flight = 3}); }),
      "1 to 2");
}

/// An engine whose results a test chooses and whose end it decides.
class PlantedEngine final : public Engine {
 public:
  struct Control {
    std::atomic<bool> hold = false;
    std::atomic<u32> started = 0;
    std::atomic<u64> spoil = ~u64{0};  ///< the run whose result is wrong
    std::atomic<bool> fail = false;
    std::atomic<bool> in_wait = false;  ///< a CPU, which computes then
    std::atomic<u32> check_ms = 0;      ///< that reading a result takes
  };
  PlantedEngine(const WorkloadShape& shape, const std::vector<float>& b, Control& control)
      : shape_(shape), b_(b), control_(control), window_(2), run_(2) {}
  [[nodiscard]] std::string name() const override { return "planted"; }
  void start(const Window& w, u32 slot) override {
    window_[slot] = w.host;
    run_[slot] = control_.started++;
    if (control_.fail) throw Error("a product of matrices", "it failed on purpose", {}, ExitCode::data);
  }
  [[nodiscard]] bool wait(u32, u64) override { return !control_.hold; }
  [[nodiscard]] bool computes_in_wait() const override { return control_.in_wait; }
  void read_input(const Window& w, u64 offset, void* to, u64 bytes) override {
    std::memcpy(to, w.host + offset, bytes);
  }
  void read_result(u32 slot, u64 offset, void* to, u64 bytes) override {
    std::this_thread::sleep_for(std::chrono::milliseconds(control_.check_ms));
    const u64 row_bytes = u64{shape_.n} * 4;
    for (u64 done = 0; done < bytes; done += row_bytes) {
      auto c = row_product(reinterpret_cast<const float*>(window_[slot] + offset + done), b_, shape_.n, 23);
      if (run_[slot] == control_.spoil && offset + done == 0) c[17] += 0.01f;
      std::memcpy(static_cast<u8*>(to) + done, c.data(), row_bytes);
    }
  }

 private:
  WorkloadShape shape_;
  const std::vector<float>& b_;
  Control& control_;
  std::vector<const u8*> window_;
  std::vector<u64> run_;
};

class PlantedWorkload : public testing::Test {
 protected:
  std::unique_ptr<Computing> open(WorkloadRequest r = {}) {
    r.bytes = kWindowBytes;
    return std::make_unique<Computing>(
        shape_, r, [this] { return std::make_unique<PlantedEngine>(shape_, b_, control_); });
  }
  WorkloadShape shape_ = workload_shape(WorkloadKind::gemm, kWindowBytes);
  std::vector<float> b_ = second_factor(shape_.n, false);
  PlantedEngine::Control control_;
  Source source_{Fill::float32};
};

TEST_F(PlantedWorkload, ChecksAreNoPartOfTheTimeOfComputing) {
  control_.in_wait = true;
  control_.check_ms = 5;
  const u64 begin = wall_ns();
  const auto w = open();
  for (u64 i = 0; i < 6; ++i) w->take(source_.make(i));
  w->finish();
  const u64 all = wall_ns() - begin;
  EXPECT_EQ(w->counts().timed, 6U);
  EXPECT_GE(w->counts().check_ns, 30'000'000U);
  EXPECT_LE(w->counts().busy_ns + w->counts().check_ns, all);
}

/// A GPU may be done long before the check of the window before.
TEST_F(PlantedWorkload, ARunThatEndedDuringACheckHasNoTime) {
  control_.check_ms = 2;
  const auto w = open();
  for (u64 i = 0; i < 20; ++i) w->take(source_.make(i));
  w->finish();
  EXPECT_EQ(w->counts().runs, 20U);
  EXPECT_GE(w->counts().timed, 1U);
  EXPECT_LT(w->counts().timed, 20U);
}

TEST_F(PlantedWorkload, AWrongResultIsCounted) {
  control_.spoil = 3;
  const auto w = open();
  for (u64 i = 0; i < 6; ++i) w->take(source_.make(i));
  w->finish();
  EXPECT_EQ(w->counts().checked, 6U);
  EXPECT_EQ(w->counts().failed, 1U);
  EXPECT_GT(w->counts().worst, 1);
}

TEST_F(PlantedWorkload, TwoWindowsAreInFlight) {
  control_.hold = true;
  const auto w = open({.limit_ns = 1'000'000'000'000});
  w->take(source_.make(0));
  w->take(source_.make(1));
  while (control_.started < 2) std::this_thread::yield();  // both are started before the first is done
  w->poll();
  EXPECT_TRUE(source_.back.empty());
  control_.hold = false;
  for (u64 i = 2; i < 10; ++i) w->take(source_.make(i));
  w->finish();
  EXPECT_EQ(w->counts().runs, 10U);
  std::vector<u64> in_order;
  for (u64 i = 0; i < 10; ++i) in_order.push_back(i);
  EXPECT_EQ(source_.back, in_order);
}

TEST_F(PlantedWorkload, ARunThatDoesNotEndIsAnError) {
  control_.hold = true;
  const auto w = open({.limit_ns = 2'000'000});
  w->take(source_.make(0));
  expect_says(error_of([&] { w->finish(); }, ExitCode::data), "s");
}

TEST_F(PlantedWorkload, WhatTheLibrarySaysReachesTheCaller) {
  control_.fail = true;
  const auto w = open();
  w->take(source_.make(0));
  expect_says(error_of([&] { w->finish(); }, ExitCode::data), "it failed on purpose");
  expect_says(error_of([&] { w->take(source_.make(1)); }, ExitCode::data), "it failed on purpose");
}

// --- a GPU's libraries ----------------------------------------------------------------------------------

/// Kernels and libraries on the CPU, in the order of the stream.
class MathGpu final : public test::ComputingGpu {
 public:
  explicit MathGpu(gpu::Runtime runtime) { described_.runtime = runtime; }
  [[nodiscard]] const gpu::Info& info() const override { return described_; }
  void make_current() override { ++made_current; }
  std::atomic<u32> made_current = 0;

 private:
  gpu::Info described_;
};

struct OnGpu {
  WorkloadKind kind;
  gpu::Runtime runtime;
};

class WorkloadOnGpu : public testing::TestWithParam<OnGpu> {
 protected:
  WorkloadOnGpu() {
    hooks_.enqueue = [this](void* stream, std::function<void()> work) {
      gpu_->enqueue({stream}, std::move(work));
    };
    const FakeUse use = library_.need("fake_gpu_math_use");
    use(&hooks_);
  }
  using FakeUse = void (*)(FakeGpuMath*);
  static constexpr std::array<const char*, 1> kNames = {DOORBELL_FAKE_GPU_MATH};

  Environment cufft_{"DOORBELL_LIBCUFFT", DOORBELL_FAKE_GPU_MATH},
      cublas_{"DOORBELL_LIBCUBLAS", DOORBELL_FAKE_GPU_MATH},
      hipfft_{"DOORBELL_LIBHIPFFT", DOORBELL_FAKE_GPU_MATH},
      hipblas_{"DOORBELL_LIBHIPBLAS", DOORBELL_FAKE_GPU_MATH};
  Library library_{"DOORBELL_FAKE_GPU_MATH_OVERRIDE", kNames, "build it"};
  FakeGpuMath hooks_;
  std::shared_ptr<MathGpu> gpu_ = std::make_shared<MathGpu>(GetParam().runtime);
};

constexpr u64 kSmallBytes = 16 * 1024;  // n = 64, 2 transforms

TEST_P(WorkloadOnGpu, AsksTheLibraryForTheRightThing) {
  for (const bool spoil : {false, true}) {
    hooks_.spoil = spoil;
    hooks_.calls = 0;
    const auto w = Workload::open(GetParam().kind, {.bytes = kSmallBytes, .gpu = gpu_});
    EXPECT_GT(gpu_->made_current, 0U);
    Source source(fill_of(GetParam().kind), true);
    for (u64 i = 0; i < 3; ++i) w->take(source.make(i, kSmallBytes));
    w->finish();
    EXPECT_EQ(hooks_.calls, 3);
    EXPECT_EQ(w->counts().runs, 3U);
    EXPECT_EQ(w->counts().checked, 3U);
    EXPECT_EQ(w->counts().failed, spoil ? 3U : 0U) << w->counts().worst;
    EXPECT_EQ(source.back.size(), 3U);
  }
}

TEST_P(WorkloadOnGpu, ARunFollowsTheAssemblyOfItsWindow) {
  const gpu::Stream assembly = gpu_->create_urgent_stream();
  const auto w = Workload::open(GetParam().kind, {.bytes = kSmallBytes, .gpu = gpu_, .assembly = assembly});
  Source source(fill_of(GetParam().kind), true);
  Window window = source.make(0, kSmallBytes);
  // What nobody waits for runs only because something follows it.
  std::atomic<int> assembled = 0;
  for (int i = 0; i < 3; ++i) gpu_->enqueue(assembly, [&] { ++assembled; });
  w->take(window);
  // Of a later window.
  gpu_->enqueue(assembly, [&] { ++assembled; });
  w->finish();
  EXPECT_EQ(assembled, 3);
  EXPECT_EQ(w->counts().failed, 0U);
}

TEST_P(WorkloadOnGpu, AnEngineThatDoesNotStartIsAnError) {
  hooks_.fail_create = true;
  expect_says(error_of([&] { (void)Workload::open(GetParam().kind, {.bytes = kSmallBytes, .gpu = gpu_}); },
                       ExitCode::data),
              "its status is 1");
}

std::string gpu_name(const testing::TestParamInfo<OnGpu>& info) {
  return std::string(name(info.param.kind)) + (info.param.runtime == gpu::Runtime::cuda ? "_cuda" : "_hip");
}
INSTANTIATE_TEST_SUITE_P(All, WorkloadOnGpu,
                         testing::Values(OnGpu{WorkloadKind::fft, gpu::Runtime::cuda},
                                         OnGpu{WorkloadKind::gemm, gpu::Runtime::cuda},
                                         OnGpu{WorkloadKind::gemm_fp16, gpu::Runtime::cuda},
                                         OnGpu{WorkloadKind::fft, gpu::Runtime::hip},
                                         OnGpu{WorkloadKind::gemm, gpu::Runtime::hip},
                                         OnGpu{WorkloadKind::gemm_fp16, gpu::Runtime::hip}),
                         gpu_name);

}  // namespace
}  // namespace doorbell::net
