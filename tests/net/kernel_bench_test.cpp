// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Every cell of `--mode kernels` over a GPU of the tests, which runs kernels and libraries on the CPU.

#include "net/kernel_bench/bench.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "errors.hpp"
#include "net/computing_gpu.hpp"
#include "net/fake_gpu_math.hpp"
#include "system/library.hpp"

namespace doorbell::net {
namespace {

using doorbell::test::error_of;
using doorbell::test::expect_says;

/// Spoils one byte of everything that kernel `gather` or `place` writes to.
class BadGpu final : public test::ComputingGpu {
 public:
  void launch(gpu::Kernel k, const Launch& shape, gpu::Stream s, std::span<void*> args) override {
    ComputingGpu::launch(k, shape, s, args);
    const std::string& name = *static_cast<const std::string*>(k.handle);
    if (name != spoilt) return;
    u8* to = nullptr;
    if (name == "doorbell_net_gather")
      to = reinterpret_cast<u8*>(static_cast<GatherJob*>(args[0])->items[0].to);
    else to = static_cast<PlaceJob*>(args[0])->window;
    enqueue(s, [to] { to[3] ^= 1; });
  }
  std::string spoilt;
};

class KernelBench : public testing::Test {
 protected:
  KernelBench() {
    for (const char* name : kLibraries) ::setenv(name, DOORBELL_FAKE_GPU_MATH, 1);
    hooks_.enqueue = [this](void* stream, std::function<void()> work) {
      gpu_->enqueue({stream}, std::move(work));
    };
    const FakeUse use = library_.need("fake_gpu_math_use");
    use(&hooks_);
    options_.data_bytes = {64, 1000};
    options_.window_bytes = 16'000;
    options_.windows = 3;
    options_.streams = 2;
    options_.repeats = 1;
    options_.duration_s = 0;
  }
  ~KernelBench() override {
    for (const char* name : kLibraries) ::unsetenv(name);
  }
  measure::BenchResult run() { return run_kernel_bench(options_, {}, gpu_); }

  using FakeUse = void (*)(FakeGpuMath*);
  static constexpr const char* kLibraries[] = {"DOORBELL_LIBCUFFT", "DOORBELL_LIBCUBLAS"};
  static constexpr std::array<const char*, 1> kNames = {DOORBELL_FAKE_GPU_MATH};
  Library library_{"DOORBELL_FAKE_GPU_MATH_OVERRIDE", kNames, "build it"};
  FakeGpuMath hooks_;
  std::shared_ptr<BadGpu> gpu_ = std::make_shared<BadGpu>();
  KernelBenchOptions options_;
};

TEST_F(KernelBench, EveryCellIsVerified) {
  options_.window_bytes = 24'000;  // 3 packets for a workload, and enough for one of each kind
  const measure::BenchResult r = run();
  EXPECT_FALSE(r.failed);
  EXPECT_EQ(r.stop_reason, StopReason::done);
  EXPECT_TRUE(r.warnings.empty());
  // Two kernels by three places of packets and list, a copy from each place, two ways by four workloads.
  ASSERT_EQ(r.cells.size(), 2U * 6 + 2 + 8);
  EXPECT_EQ(kernel_cells(options_), r.cells.size()) << "what is said before the run";
  std::map<std::string, u32> assemblies, workloads, sources;
  for (const report::Cell& c : r.cells) {
    SCOPED_TRACE(c.cell.dump());
    ++assemblies[c.cell["assembly"]];
    ++workloads[c.cell["workload"]];
    const u64 bytes = c.cell["data_bytes"];
    ++sources[c.cell["source"]];
    const bool computed = c.cell["workload"] != "none";
    EXPECT_EQ(c.verify.checked, 3 * (24'000 / bytes) + (computed ? 3 : 0));
    EXPECT_EQ(c.verify.failed(), 0U);
    EXPECT_EQ(c.errors.at("identity"), 0U);
    EXPECT_EQ(c.metrics.ops, 3 * (24'000 / bytes));
    EXPECT_EQ(c.metrics.bytes, c.metrics.ops * bytes);
    EXPECT_EQ(c.repeats.size(), 1U);
    EXPECT_GT(c.extra["net"]["assembled_gbps"], 0.0);
    EXPECT_EQ(c.extra["net"].contains("share_of_no_workload"), computed);
  }
  EXPECT_EQ(assemblies, (std::map<std::string, u32>{{"copy", 6}, {"gather", 10}, {"place", 6}}));
  EXPECT_EQ(sources, (std::map<std::string, u32>{{"gpu", 9}, {"pinned", 13}}));
  EXPECT_EQ(workloads, (std::map<std::string, u32>{{"fft", 2}, {"gemm", 2}, {"gemm_fp16", 2}, {"none", 16}}));
}

TEST_F(KernelBench, MoreWindowsThanBitmapsAreAllPlaced) {
  options_.window_bytes = 8000;
  options_.data_bytes = {16};
  options_.windows = 300;  // 150 of each stream
  options_.workloads = false;
  const measure::BenchResult r = run();
  EXPECT_FALSE(r.failed);
  for (const report::Cell& c : r.cells) EXPECT_EQ(c.errors.at("identity"), 0U) << c.cell.dump();
}

TEST_F(KernelBench, AWrongByteFailsTheCellOfItsKernel) {
  options_.workloads = false;
  options_.data_bytes = {1000};
  for (const std::string kernel : {"gather", "place"}) {
    gpu_->spoilt = "doorbell_net_" + kernel;
    const measure::BenchResult r = run();
    EXPECT_TRUE(r.failed);
    for (const report::Cell& c : r.cells)
      EXPECT_EQ(c.verify.corrupt, c.cell["assembly"] == kernel ? 3U : 0U) << c.cell.dump();
  }
}

TEST_F(KernelBench, AWrongResultOfALibraryFailsItsCell) {
  options_.window_bytes = 24'000;
  options_.data_bytes = {8000};
  hooks_.spoil = true;
  const measure::BenchResult r = run();
  EXPECT_TRUE(r.failed);
  for (const report::Cell& c : r.cells)
    EXPECT_EQ(c.verify.corrupt > 0, c.cell["workload"] != "none") << c.cell.dump();
}

TEST_F(KernelBench, AMissingLibraryCostsOnlyItsCells) {
  ::setenv("DOORBELL_LIBCUBLAS", "/nonexistent/libcublas.so", 1);
  options_.data_bytes = {8000};
  options_.window_bytes = 24'000;
  const measure::BenchResult r = run();
  EXPECT_FALSE(r.failed);
  EXPECT_EQ(r.warnings.size(), 4U);
  EXPECT_EQ(r.cells.size(), 6U + 2 + 4);
}

TEST_F(KernelBench, StopsWhenItIsAsked) {
  measure::StopFlag stop;
  u32 seen = 0;
  const measure::BenchResult r = run_kernel_bench(options_,
                                                  {&stop,
                                                   [&](double, const std::string&) {
                                                     if (++seen == 3) (void)stop.request(2);
                                                   }},
                                                  gpu_);
  EXPECT_EQ(r.stop_reason, StopReason::requested);
  EXPECT_EQ(r.cells.size(), 3U);
}

TEST_F(KernelBench, RefusesWhatItCannotMeasure) {
  options_.data_bytes = {12};
  expect_says(error_of([&] { (void)run(); }), "12 is not in 16..16000");
  options_.data_bytes = {20};
  expect_says(error_of([&] { (void)run(); }), "no multiple of 8");
  options_.data_bytes = {64};
  options_.window_bytes = 7999;
  expect_says(error_of([&] { (void)run(); }), "8000..");
}

}  // namespace
}  // namespace doorbell::net
