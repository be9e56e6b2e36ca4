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
#include "net/row_product.hpp"
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
  Window lost = source.make(21);
  lost.missing = lost.packets;
  w->take(lost);
  w->finish();
  const WorkloadCounts& c = w->counts();
  EXPECT_EQ(c.runs, 20U);
  EXPECT_EQ(c.checked, 20U);
  EXPECT_EQ(c.failed, 0U);
  EXPECT_EQ(c.skipped, 2U);
  EXPECT_EQ(c.flop, 20 * w->shape().flop);
  EXPECT_GT(c.busy_ns, 0U);
  // Sums of these binary16 numbers are exact in single precision as long as they are below 16.
  if (GetParam() == WorkloadKind::gemm_fp16) {
    EXPECT_LT(c.worst, 0.02);
  } else {
    EXPECT_GT(c.worst, 1e-6);
  }
  EXPECT_LE(c.worst, 0.5);
  EXPECT_EQ(source.back.size(), 22U);
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
  control_.hold = true;
  const auto w = open();
  for (u64 i = 0; i < 2; ++i) w->take(source_.make(i));
  while (control_.started < 2) std::this_thread::yield();
  // Both end now, and the second one is looked at behind the check of the first.
  control_.hold = false;
  w->finish();
  EXPECT_EQ(w->counts().runs, 2U);
  EXPECT_EQ(w->counts().timed, 1U);
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
  // Work that nobody waits for runs only because something follows it.
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
