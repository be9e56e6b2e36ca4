// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The GPU layer on the fake drivers: what is found, memory, copies.

#include <unistd.h>

#include <numeric>
#include <optional>
#include <thread>
#include <vector>

#include "fake_gpus.hpp"

namespace doorbell::gpu {
namespace {

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
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].runtime, Runtime::cuda);
  EXPECT_TRUE(all[0].usable);
  EXPECT_TRUE(contains(all[0].detail, "2 GPUs")) << all[0].detail;
  EXPECT_EQ(all[1].runtime, Runtime::hip);
  EXPECT_FALSE(all[1].usable);
  EXPECT_TRUE(contains(all[1].detail, "/nonexistent/libamdhip64.so cannot be loaded")) << all[1].detail;
  EXPECT_EQ(all[2].runtime, Runtime::level_zero);
  EXPECT_FALSE(all[2].usable);
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

TEST_F(Hip, OneStreamFollowsAnother) {
  const auto gpu = open(2);
  const Stream later = gpu->create_urgent_stream(), earlier = gpu->create_stream();
  EXPECT_EQ(live("urgent", FAKE_HIP), 1);
  const Event event = gpu->create_event();
  gpu->record(event, earlier);
  gpu->follow(later, event);
  EXPECT_TRUE(gpu->finished(later));
  gpu->destroy(event);
  EXPECT_EQ(live("events", FAKE_HIP), 0);
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
