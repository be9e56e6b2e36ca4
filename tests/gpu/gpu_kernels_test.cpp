// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Streams, events and kernels of a GPU, on the fake drivers.

#include <chrono>
#include <vector>

#include "fake_gpus.hpp"
#include "gpu/probe.hpp"

namespace doorbell::gpu {
namespace {

TEST_F(OpenGpu, WaitsWithADeadline) {
  const Stream s = hold();
  EXPECT_FALSE(gpu_->finished(s));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(gpu_->wait(s, 3'000'000));
  const auto took = std::chrono::steady_clock::now() - begin;
  EXPECT_GE(took, std::chrono::milliseconds(3));
  EXPECT_LT(took, std::chrono::seconds(1));
  unset("FAKE_CUDA_HOLD");
  EXPECT_TRUE(gpu_->wait(s, ~u64{0}));  // for ever is a valid time
  EXPECT_TRUE(gpu_->finished(s));
  set("FAKE_CUDA_FAIL", "cuStreamQuery=700");
  const Error e = error_of([&] { (void)gpu_->wait(s, 1000); });
  EXPECT_EQ(e.code(), ExitCode::data);
  EXPECT_TRUE(contains(e.what(), "work on GPU 0 (Fake H200) failed: CUDA_ERROR_ILLEGAL_ADDRESS")) << e.what();
  EXPECT_THROW((void)gpu_->finished({}), Error);
}

TEST_F(OpenGpu, OneStreamFollowsAnother) {
  const Stream later = gpu_->create_urgent_stream();
  EXPECT_EQ(live("urgent"), 1);
  const Stream earlier = hold();
  EXPECT_TRUE(gpu_->finished(later));
  const Event event = gpu_->create_event();
  gpu_->record(event, earlier);
  EXPECT_TRUE(gpu_->finished(later));
  gpu_->follow(later, event);
  EXPECT_FALSE(gpu_->finished(later));
  unset("FAKE_CUDA_HOLD");
  EXPECT_TRUE(gpu_->finished(later));
  set("FAKE_CUDA_FAIL", "cuEventCreate=2");
  EXPECT_THROW((void)gpu_->create_event(), Error);
  set("FAKE_CUDA_FAIL", "cuEventRecord=700");
  EXPECT_EQ(error_of([&] { gpu_->record(event, earlier); }).code(), ExitCode::data);
  set("FAKE_CUDA_FAIL", "cuStreamWaitEvent=700");
  EXPECT_EQ(error_of([&] { gpu_->follow(later, event); }).code(), ExitCode::data);
  unset("FAKE_CUDA_FAIL");
  EXPECT_THROW(gpu_->follow({}, event), Error);
  EXPECT_THROW(gpu_->follow(later, {}), Error);
  EXPECT_THROW(gpu_->record({}, earlier), Error);
  gpu_->destroy(gpu_->create_event());
  gpu_->destroy(Event{});
  EXPECT_EQ(live("events"), 1) << "the other one goes with the GPU";
}

TEST_F(OpenGpu, StartsACopyInAStream) {
  const Stream s = gpu_->create_stream();
  void* const device = gpu_->allocate(64);
  std::vector<char> out(64, 'x');
  gpu_->start_copy({out.data(), device, 64}, s);
  EXPECT_TRUE(gpu_->finished(s));
  EXPECT_EQ(out, std::vector<char>(64));
  gpu_->start_copy({nullptr, nullptr, 0}, s);
  EXPECT_THROW(gpu_->start_copy({out.data(), nullptr, 1}, s), Error);
  EXPECT_THROW(gpu_->start_copy({out.data(), device, 1}, {}), Error);
  set("FAKE_CUDA_FAIL", "cuMemcpyAsync=700");
  EXPECT_EQ(error_of([&] { gpu_->start_copy({out.data(), device, 64}, s); }).code(), ExitCode::data);
  unset("FAKE_CUDA_FAIL");
  gpu_->free(device);
}

TEST_F(OpenGpu, FreesNothingWhileAKernelRuns) {
  void* device = gpu_->allocate(1);
  void* pinned = gpu_->allocate_pinned(1);
  std::vector<char> memory(64);
  (void)gpu_->register_host(memory.data(), 64, false);
  const Stream s = hold();
  gpu_->free(device);
  gpu_->free_pinned(pinned);
  gpu_->unregister_host(memory.data());
  EXPECT_EQ(live("device") + live("pinned") + live("registered"), 3);
  EXPECT_EQ(live("blocked"), 0);
  EXPECT_TRUE(contains(error_of([&] { (void)gpu_->register_host(memory.data(), 64, false); }).what(),
                       "stays registered until the GPU is idle"));
  char out = 1;
  void* other = gpu_->allocate(1);  // allocating and copying go on
  gpu_->copy(&out, other, 1);
  EXPECT_EQ(out, 0);
  unset("FAKE_CUDA_HOLD");
  gpu_->free(other);
  EXPECT_EQ(live("device") + live("pinned") + live("registered"), 0);
  gpu_->destroy(s);
}

TEST_F(OpenGpu, StreamDestroyedWhileItWorks) {
  void* p = gpu_->allocate(1);
  gpu_->destroy(hold());
  gpu_->free(p);
  EXPECT_EQ(live("device"), 1);
  unset("FAKE_CUDA_HOLD");
  gpu_->destroy(Stream{});
  gpu_->free(gpu_->allocate(1));
  EXPECT_EQ(live("device"), 0);
}

TEST_F(GpuLoader, ClosingBehindAnEndlessKernelDoesNotHang) {
  // In a process of its own, because what is left behind would be counted in the other tests.
  const auto child = [] {
    auto gpu = open(0);
    const Stream s = gpu->create_stream();
    set("FAKE_CUDA_HOLD", "1");
    char kernel = 0;
    gpu->launch({&kernel}, {}, s, {});
    (void)gpu->allocate(1);
    const auto begin = std::chrono::steady_clock::now();
    gpu.reset();
    const bool quick = std::chrono::steady_clock::now() - begin < std::chrono::seconds(10);
    std::_Exit(quick && live("blocked") == 0 ? 0 : 1);
  };
  EXPECT_EXIT(child(), ::testing::ExitedWithCode(0), "");
}

TEST_F(OpenGpu, LaunchAsksForSharedMemory) {
  const Stream s = gpu_->create_stream();
  gpu_->launch(any_kernel(), {1, 32, 48 * 1024}, s, {});
  EXPECT_EQ(live("max_shared"), 0);
  gpu_->launch(any_kernel(), {1, 32, 100'000}, s, {});
  EXPECT_EQ(live("max_shared"), 100'000);
  set("FAKE_CUDA_FAIL", "cuFuncSetAttribute=1");
  EXPECT_TRUE(contains(error_of([&] {
                         gpu_->launch(any_kernel(), {1, 32, 200'000}, s, {});
                       }).hint(),
                       "less shared memory"));
  gpu_->launch(any_kernel(), {1, 32, 90'000}, s, {});  // within what was allowed: not asked again
}

TEST_F(OpenGpu, RefusesImpossibleLaunches) {
  const Stream s = gpu_->create_stream();
  EXPECT_THROW(gpu_->launch({}, {}, s, {}), Error);
  EXPECT_THROW(gpu_->launch(any_kernel(), {}, {}, {}), Error);
  EXPECT_THROW(gpu_->launch(any_kernel(), {0, 32, 0}, s, {}), Error);
  EXPECT_THROW(gpu_->launch(any_kernel(), {1, 0, 0}, s, {}), Error);
  EXPECT_THROW(gpu_->launch(any_kernel(), {1, 1025, 0}, s, {}), Error);
  set("FAKE_CUDA_FAIL", "cuLaunchKernel=700");
  EXPECT_EQ(error_of([&] { gpu_->launch(any_kernel(), {}, s, {}); }).code(), ExitCode::data);
}

TEST_F(OpenGpu, RunsTheProbe) {
  if (!built_for(Runtime::cuda)) {
    const Error e = error_of([&] { (void)gpu_->kernel("doorbell_probe"); });
    EXPECT_EQ(e.code(), ExitCode::absent);
    EXPECT_TRUE(contains(e.what(), "this build has no kernels for it")) << e.what();
    EXPECT_TRUE(contains(e.hint(), "make GPU=1")) << e.hint();
    return;
  }
  const Kernel probe = gpu_->kernel("doorbell_probe");
  EXPECT_EQ(gpu_->kernel("doorbell_probe").handle, probe.handle);
  auto* out = static_cast<u32*>(gpu_->allocate_pinned(4));
  auto* clocks = static_cast<u64*>(gpu_->allocate_pinned(kProbeClocks * sizeof(u64)));
  const Stream s = gpu_->create_stream();
  std::array<void*, 2> args = {&out, &clocks};
  gpu_->launch(probe, {1, 1, 0}, s, args);
  EXPECT_TRUE(gpu_->wait(s, 1'000'000'000));
  EXPECT_EQ(*out, kProbeValue);
  EXPECT_EQ(clocks[kProbeNsEnd] - clocks[kProbeNsBegin], 1'000'000u);
  const Error e = error_of([&] { (void)gpu_->kernel("no_such_kernel"); });
  EXPECT_TRUE(contains(e.what(), "kernel no_such_kernel for GPU 0 (Fake H200): none of the")) << e.what();
}

TEST_F(OpenGpu, DriverTooOldForTheKernels) {
  if (!built_for(Runtime::cuda)) GTEST_SKIP() << "this build has no CUDA kernels";
  set("FAKE_CUDA_FAIL", "cuModuleLoadData=222");
  const Error e = error_of([&] { (void)gpu_->kernel("doorbell_probe"); });
  EXPECT_EQ(e.code(), ExitCode::absent);
  EXPECT_TRUE(contains(e.what(), "CUDA_ERROR_UNSUPPORTED_PTX_VERSION")) << e.what();
  EXPECT_TRUE(contains(e.hint(), "they are built by nvcc")) << e.hint();
  unset("FAKE_CUDA_FAIL");
  EXPECT_NE(gpu_->kernel("doorbell_probe").handle, nullptr);  // a later attempt starts over
}

TEST(CodeObjects, AreWhole) {
  for (const CodeObject& object : code_objects()) {
    EXPECT_FALSE(object.name.empty());
    EXPECT_GT(object.image.size(), 100u) << object.name;
  }
}

}  // namespace
}  // namespace doorbell::gpu
