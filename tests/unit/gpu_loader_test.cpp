// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The GPU layer on fake driver libraries (fake_cuda.cpp, fake_hip.cpp), which replace the real ones through
// the environment variables DOORBELL_LIBCUDA and DOORBELL_LIBAMDHIP64.

#include <doorbell/error.hpp>
#include <doorbell/gpu.hpp>
#include <doorbell/gpu_clock.hpp>

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <optional>
#include <thread>
#include <vector>

namespace doorbell::gpu {
namespace {

using ::testing::Test;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// What the fake library at `path` counts under `what`.
int live(const char* what, const char* path = FAKE_CUDA) {
  void* library = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
  const auto ask = reinterpret_cast<int (*)(const char*)>(::dlsym(library, "fake_cuda_live"));
  const int answer = ask(what);
  ::dlclose(library);
  return answer;
}

/// The error that `call` throws; fails the test when it throws none.
Error error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& e) {
    return e;
  }
  ADD_FAILURE() << "no doorbell::Error";
  return {"nothing", "thrown"};
}

class GpuLoader : public Test {
 protected:
  void SetUp() override {
    for (const char* name : kVariables) ::unsetenv(name);
    set("DOORBELL_LIBCUDA", FAKE_CUDA);
    set("DOORBELL_LIBAMDHIP64", "/nonexistent/libamdhip64.so");
  }
  void TearDown() override {
    for (const char* name : kVariables) ::unsetenv(name);
  }
  static void set(const char* name, const char* value) { ::setenv(name, value, 1); }
  static void unset(const char* name) { ::unsetenv(name); }

  static RuntimeStatus cuda() { return runtimes().at(0); }

 private:
  static constexpr std::array kVariables = {"DOORBELL_LIBCUDA",  "DOORBELL_LIBAMDHIP64", "FAKE_CUDA_DEVICES",
                                            "FAKE_CUDA_VERSION", "FAKE_CUDA_FAIL",       "FAKE_CUDA_SPLIT",
                                            "FAKE_CUDA_HOLD",    "FAKE_CUDA_APART"};
};

/// With GPU 0 of the fake driver open.
class OpenGpu : public GpuLoader {
 protected:
  void SetUp() override {
    GpuLoader::SetUp();
    gpu_ = open(0);
  }
  void TearDown() override {
    unset("FAKE_CUDA_HOLD");
    unset("FAKE_CUDA_FAIL");
    gpu_.reset();
    for (const char* what :
         {"device", "pinned", "registered", "streams", "events", "modules", "contexts", "blocked", "current"})
      EXPECT_EQ(live(what), 0) << what;
    GpuLoader::TearDown();
  }

  /// A kernel handle that the fake driver accepts, whether or not this build has kernels.
  static Kernel any_kernel() {
    static char kernel = 0;
    return {&kernel};
  }
  Stream hold() {
    const Stream s = gpu_->create_stream();
    set("FAKE_CUDA_HOLD", "1");
    gpu_->launch(any_kernel(), {}, s, {});
    return s;
  }

  std::shared_ptr<Gpu> gpu_;
};

// --- finding GPUs ----------------------------------------------------------------------------------

TEST_F(GpuLoader, EnumeratesEveryGpu) {
  const std::vector<Info> all = enumerate();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].index, 0);
  EXPECT_EQ(all[0].runtime, Runtime::cuda);
  EXPECT_EQ(all[0].name, "Fake H200");
  EXPECT_EQ(all[0].arch, "sm_90");
  EXPECT_EQ(all[0].pci_address, "0000:18:00.0");
  EXPECT_EQ(all[0].memory_bytes, u64{8} << 30);
  EXPECT_EQ(all[0].multiprocessors, 132);
  EXPECT_EQ(all[0].warp_size, 32);
  EXPECT_TRUE(contains(all[0].driver, "CUDA 13.0")) << all[0].driver;
  EXPECT_EQ(all[1].index, 1);
  EXPECT_EQ(all[1].arch, "sm_80");
  EXPECT_EQ(live("contexts"), 0);
}

TEST_F(GpuLoader, SaysWhatIsUsable) {
  const std::vector<RuntimeStatus> all = runtimes();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].runtime, Runtime::cuda);
  EXPECT_TRUE(all[0].usable);
  EXPECT_TRUE(contains(all[0].detail, "2 GPUs")) << all[0].detail;
  EXPECT_EQ(all[1].runtime, Runtime::hip);
  EXPECT_FALSE(all[1].usable);
  EXPECT_TRUE(contains(all[1].detail, "/nonexistent/libamdhip64.so cannot be loaded")) << all[1].detail;
}

TEST_F(GpuLoader, MissingLibrary) {
  set("DOORBELL_LIBCUDA", "/nonexistent/libcuda.so.1");
  EXPECT_FALSE(cuda().usable);
  EXPECT_TRUE(contains(cuda().detail, "/nonexistent/libcuda.so.1 cannot be loaded")) << cuda().detail;
  EXPECT_TRUE(enumerate().empty());
  const Error e = error_of([] { (void)open(0); });
  EXPECT_EQ(e.code(), ExitCode::absent);
  EXPECT_TRUE(contains(e.what(), "CUDA: /nonexistent/libcuda.so.1 cannot be loaded")) << e.what();
  EXPECT_TRUE(contains(e.what(), "HIP: /nonexistent/libamdhip64.so cannot be loaded")) << e.what();
  EXPECT_TRUE(contains(e.hint(), "DOORBELL_LIBCUDA")) << e.hint();
}

TEST_F(GpuLoader, LibraryWithoutANeededFunction) {
  set("DOORBELL_LIBCUDA", FAKE_CUDA_INCOMPLETE);
  EXPECT_FALSE(cuda().usable);
  EXPECT_TRUE(contains(cuda().detail, "it has no function cuMemAlloc_v2")) << cuda().detail;
  EXPECT_EQ(error_of([] { (void)open(0); }).code(), ExitCode::absent);
}

TEST_F(GpuLoader, NoDevice) {
  set("FAKE_CUDA_DEVICES", "0");
  EXPECT_FALSE(cuda().usable);
  EXPECT_TRUE(contains(cuda().detail, "CUDA_ERROR_NO_DEVICE (100)")) << cuda().detail;
  const Error e = error_of([] { (void)open(0); });
  EXPECT_EQ(e.code(), ExitCode::absent);
  EXPECT_TRUE(contains(e.hint(), "nvidia-smi")) << e.hint();
}

TEST_F(GpuLoader, DriverTooOld) {
  set("FAKE_CUDA_VERSION", "10020");
  EXPECT_FALSE(cuda().usable);
  EXPECT_TRUE(contains(cuda().detail, "supports CUDA 10.2, doorbell needs CUDA 11.0")) << cuda().detail;
  EXPECT_TRUE(contains(cuda().detail, "update the NVIDIA driver")) << cuda().detail;
}

TEST_F(GpuLoader, StubLibraryAndUnknownCodes) {
  set("FAKE_CUDA_FAIL", "cuInit=34");
  EXPECT_TRUE(contains(cuda().detail, "link-time stub")) << cuda().detail;
  set("FAKE_CUDA_FAIL", "cuInit=4242");
  EXPECT_TRUE(contains(cuda().detail, "unknown CUDA error (4242)")) << cuda().detail;
}

TEST_F(GpuLoader, UnreadableGpuKeepsItsIndex) {
  set("FAKE_CUDA_FAIL", "cuDeviceTotalMem_v2=700");
  const std::vector<Info> all = enumerate();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_TRUE(contains(all[0].name, "unreadable, CUDA_ERROR_ILLEGAL_ADDRESS")) << all[0].name;
  EXPECT_EQ(all[1].index, 1);
}

TEST_F(GpuLoader, IndexOutOfRange) {
  const Error absent = error_of([] { (void)open(2); });
  EXPECT_EQ(absent.code(), ExitCode::absent);
  EXPECT_TRUE(contains(absent.what(), "this machine has 2 GPUs")) << absent.what();
  EXPECT_EQ(error_of([] { (void)open(-1); }).code(), ExitCode::usage);
}

TEST_F(GpuLoader, ContextThatCannotBeRetained) {
  set("FAKE_CUDA_FAIL", "cuDevicePrimaryCtxRetain=2");
  const Error e = error_of([] { (void)open(1); });
  EXPECT_TRUE(contains(e.what(), "open GPU 1 (Fake A100): CUDA_ERROR_OUT_OF_MEMORY (2)")) << e.what();
}

// --- memory ----------------------------------------------------------------------------------------

TEST_F(OpenGpu, AllocatesZeroedAndAligned) {
  auto* p = static_cast<unsigned char*>(gpu_->allocate(100'000));
  EXPECT_EQ(reinterpret_cast<u64>(p) % 65536, 0u);
  EXPECT_TRUE(std::all_of(p, p + 100'000, [](unsigned char c) { return c == 0; }));
  EXPECT_EQ(live("device"), 1);
  gpu_->free(p);
  EXPECT_EQ(live("device"), 0);
  gpu_->free(p);  // twice, or a pointer from elsewhere: nothing happens
  gpu_->free(nullptr);
}

TEST_F(OpenGpu, RefusesImpossibleSizes) {
  for (const u64 bytes : {u64{0}, (u64{8} << 30) + 1, ~u64{0}})
    EXPECT_TRUE(
        contains(error_of([&] { (void)gpu_->allocate(bytes); }).what(), "the GPU can give 1 to 8589934592"));
  EXPECT_THROW((void)gpu_->allocate_pinned(0), Error);
}

TEST_F(OpenGpu, SaysWhyMemoryIsRefused) {
  set("FAKE_CUDA_FAIL", "cuMemAlloc_v2=2");
  EXPECT_STREQ(
      error_of([&] { (void)gpu_->allocate(4096); }).what(),
      "allocate 4096 bytes of memory on GPU 0 (Fake H200): CUDA_ERROR_OUT_OF_MEMORY (2): fake text 2");
  set("FAKE_CUDA_FAIL", "cuMemsetD8Async=700");
  EXPECT_EQ(error_of([&] { (void)gpu_->allocate(4096); }).code(), ExitCode::data);
  EXPECT_EQ(live("device"), 0);
}

TEST_F(OpenGpu, PinnedMemoryHasOneAddress) {
  auto* p = static_cast<unsigned char*>(gpu_->allocate_pinned(10'000));
  EXPECT_TRUE(std::all_of(p, p + 10'000, [](unsigned char c) { return c == 0; }));
  EXPECT_EQ(live("pinned"), 1);
  gpu_->free(p);  // the wrong call for it
  EXPECT_EQ(live("pinned"), 1);
  gpu_->free_pinned(p);
  EXPECT_EQ(live("pinned"), 0);

  set("FAKE_CUDA_SPLIT", "1");
  const Error e = error_of([&] { (void)gpu_->allocate_pinned(4096); });
  EXPECT_TRUE(contains(e.hint(), "unified addressing")) << e.hint();
  EXPECT_EQ(live("pinned"), 0);
}

TEST_F(OpenGpu, RegistersHostMemoryAndRegisters) {
  std::vector<char> memory(8192);
  set("FAKE_CUDA_SPLIT", "1");
  EXPECT_EQ(gpu_->register_host(memory.data(), 4096, false), memory.data() + 4096);
  EXPECT_EQ(live("mmio"), 0);
  EXPECT_TRUE(
      contains(error_of([&] { (void)gpu_->register_host(memory.data(), 4096, false); }).what(), "(712)"));
  gpu_->unregister_host(memory.data());
  EXPECT_EQ(live("registered"), 0);

  (void)gpu_->register_host(memory.data(), 4096, true);
  EXPECT_EQ(live("mmio"), 1);
  gpu_->unregister_host(memory.data());

  set("FAKE_CUDA_FAIL", "cuMemHostRegister_v2=800");
  EXPECT_TRUE(contains(error_of([&] { (void)gpu_->register_host(memory.data(), 4096, true); }).hint(),
                       "PeerMappingOverride=1"));
  set("FAKE_CUDA_FAIL", "cuMemHostGetDevicePointer_v2=1");
  EXPECT_THROW((void)gpu_->register_host(memory.data(), 4096, false), Error);
  EXPECT_EQ(live("registered"), 0);
}

TEST_F(OpenGpu, RefusesEmptyAndWrappingRanges) {
  char byte = 0;
  EXPECT_THROW((void)gpu_->register_host(nullptr, 1, false), Error);
  EXPECT_THROW((void)gpu_->register_host(&byte, 0, false), Error);
  EXPECT_THROW((void)gpu_->register_host(&byte, ~u64{0}, false), Error);
}

TEST_F(OpenGpu, ExportsDmabuf) {
  void* p = gpu_->allocate(65536);
  const int fd = gpu_->export_dmabuf(p, 1000);  // rounded up to whole pages
  EXPECT_GE(fd, 0);
  ::close(fd);
  EXPECT_THROW((void)gpu_->export_dmabuf(static_cast<char*>(p) + 8, 4096), Error);
  EXPECT_THROW((void)gpu_->export_dmabuf(p, 0), Error);
  set("FAKE_CUDA_FAIL", "cuMemGetHandleForAddressRange=801");
  const Error e = error_of([&] { (void)gpu_->export_dmabuf(p, 4096); });
  EXPECT_TRUE(contains(e.what(), "CUDA_ERROR_NOT_SUPPORTED")) << e.what();
  EXPECT_TRUE(contains(e.hint(), "open kernel modules")) << e.hint();
  gpu_->free(p);
}

TEST_F(OpenGpu, ReachesAnotherGpu) {
  gpu_->reach(*gpu_);  // itself: nothing to do
  EXPECT_EQ(live("reached"), 0);
  const auto other = open(1);
  gpu_->reach(*other);
  EXPECT_EQ(live("reached"), 1);
  EXPECT_NO_THROW(gpu_->reach(*other)) << "a second time";
  set("FAKE_CUDA_APART", "1");
  const Error apart = error_of([&] { gpu_->reach(*other); });
  EXPECT_TRUE(contains(apart.what(), "GPU 1")) << apart.what();
  EXPECT_TRUE(contains(apart.hint(), "nvidia-smi topo")) << apart.hint();
  unset("FAKE_CUDA_APART");
  set("FAKE_CUDA_FAIL", "cuCtxEnablePeerAccess=711");
  EXPECT_TRUE(contains(error_of([&] { gpu_->reach(*other); }).what(), "711"));
}

TEST_F(OpenGpu, WhatIsLeftGoesWithTheGpu) {
  (void)gpu_->allocate(1);
  (void)gpu_->allocate_pinned(1);
  static char memory[64];
  (void)gpu_->register_host(memory, sizeof memory, false);
  (void)gpu_->create_stream();
}  // TearDown counts

// --- copies ----------------------------------------------------------------------------------------

TEST_F(OpenGpu, CopiesOneAndMany) {
  std::vector<u32> from(1000);
  std::iota(from.begin(), from.end(), 7u);
  std::vector<u32> to(1000);
  auto* p = static_cast<u32*>(gpu_->allocate(4000));
  gpu_->copy(p, from.data(), 4000);
  const std::array batch = {Copy{to.data(), p, 2000}, Copy{to.data(), nullptr, 0},
                            Copy{to.data() + 500, p + 500, 2000}};
  gpu_->copy(batch);
  EXPECT_EQ(from, to);
  gpu_->copy(std::span<const Copy>{});
  gpu_->fill_zero(p, 4000);
  gpu_->copy(to.data(), p, 4000);
  EXPECT_EQ(std::count(to.begin(), to.end(), 0u), 1000);
  EXPECT_EQ(live("streams"), 1);  // one copy at a time needs one stream
  gpu_->free(p);
}

TEST_F(OpenGpu, ReportsFailedCopies) {
  char from = 1;
  char to = 0;
  EXPECT_TRUE(contains(error_of([&] { gpu_->copy(&to, nullptr, 1); }).what(), "an address is null"));
  set("FAKE_CUDA_FAIL", "cuMemcpyAsync=1");
  const Error e = error_of([&] { gpu_->copy(&to, &from, 1); });
  EXPECT_EQ(e.code(), ExitCode::data);
  EXPECT_TRUE(contains(e.what(), "CUDA_ERROR_INVALID_VALUE")) << e.what();
  unset("FAKE_CUDA_FAIL");
  gpu_->copy(&to, &from, 1);
  EXPECT_EQ(to, 1);
}

TEST_F(OpenGpu, ThreadsShareAGpu) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([this, t] {
      for (int i = 0; i < 50; ++i) {
        void* p = gpu_->allocate(4096);
        int in = t * 1000 + i;
        int out = 0;
        gpu_->copy(p, &in, sizeof in);
        gpu_->copy(&out, p, sizeof out);
        EXPECT_EQ(out, in);
        gpu_->free(p);
      }
      EXPECT_EQ(live("current"), 0);  // the thread's own context is as it was
    });
  for (std::thread& thread : threads) thread.join();
}

// --- kernels ---------------------------------------------------------------------------------------

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

bool built_for(Runtime runtime) {
  const auto objects = code_objects();
  return std::any_of(objects.begin(), objects.end(),
                     [&](const CodeObject& o) { return o.runtime == runtime; });
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

// --- HIP -------------------------------------------------------------------------------------------

class Hip : public GpuLoader {
 protected:
  void SetUp() override {
    GpuLoader::SetUp();
    set("DOORBELL_LIBAMDHIP64", FAKE_HIP);
  }
};

TEST_F(Hip, ComesAfterCuda) {
  const std::vector<Info> all = enumerate();
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[2].index, 2);
  EXPECT_EQ(all[2].runtime, Runtime::hip);
  EXPECT_EQ(all[2].arch, "gfx90a");
  EXPECT_EQ(all[2].warp_size, 64);
  EXPECT_EQ(all[2].multiprocessors, 110);
  EXPECT_EQ(all[2].driver, "HIP 6.3");
  EXPECT_EQ(all[3].arch, "gfx1030");
  EXPECT_EQ(all[3].warp_size, 32);
}

TEST_F(Hip, IsFirstWithoutCuda) {
  set("DOORBELL_LIBCUDA", "/nonexistent/libcuda.so.1");
  EXPECT_EQ(open(0)->info().runtime, Runtime::hip);
}

TEST_F(Hip, MovesBytes) {
  {
    auto gpu = open(3);
    EXPECT_EQ(gpu->info().arch, "gfx1030");
    auto* p = static_cast<char*>(gpu->allocate(100));
    auto* q = static_cast<char*>(gpu->allocate_pinned(100));
    EXPECT_EQ(reinterpret_cast<u64>(p) % 65536, 0u);
    q[7] = 9;
    gpu->copy(p, q, 100);
    EXPECT_EQ(p[7], 9);
    EXPECT_NO_THROW(gpu->reach(*open(2)));
    EXPECT_THROW(gpu->reach(*open(0)), Error) << "a GPU of CUDA";
    const Stream s = gpu->create_stream();
    EXPECT_TRUE(gpu->wait(s, 1000));
    EXPECT_EQ(error_of([&] { (void)gpu->export_dmabuf(p, 4096); }).code(), ExitCode::usage);
    if (built_for(Runtime::hip)) {
      gpu->launch(gpu->kernel("doorbell_probe"), {1, 64, 60'000}, s, {});
    } else {
      EXPECT_THROW((void)gpu->kernel("doorbell_probe"), Error);
    }
  }
  EXPECT_EQ(live("device", FAKE_HIP) + live("pinned", FAKE_HIP) + live("streams", FAKE_HIP), 0);
}

}  // namespace
}  // namespace doorbell::gpu
