// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Intel's GPUs on the fake Level Zero (fake_level_zero.cpp), which counts what the interface does not allow;
// and what a GPU without kernels does for models and checkers: DmaEngine, GpuMirror.

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <numeric>
#include <thread>
#include <vector>

#include "fake_gpus.hpp"
#include "gpu/code_objects.hpp"
#include "measure/gpu_runner.hpp"
#include "memory/gpu_mirror.hpp"
#include "model/dma.hpp"

namespace doorbell::gpu {
namespace {

template <class Function>
Function fake(const char* name) {
  static void* const library = ::dlopen(FAKE_LEVEL_ZERO, RTLD_NOW | RTLD_LOCAL);
  return reinterpret_cast<Function>(::dlsym(library, name));
}

int count(const char* what) {
  return fake<int (*)(const char*)>("fake_ze_live")(what);
}

class LevelZero : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : kVariables) ::unsetenv(name);
    fake<void (*)()>("fake_ze_restore")();
    set("DOORBELL_LIBZE_LOADER", FAKE_LEVEL_ZERO);
    set("DOORBELL_LIBCUDA", "/nonexistent/libcuda.so.1");
    set("DOORBELL_LIBAMDHIP64", "/nonexistent/libamdhip64.so");
  }
  void TearDown() override {
    for (const char* what :
         {"device", "pinned", "imported", "lists", "events", "pools", "contexts", "mistakes"})
      EXPECT_EQ(count(what), 0) << what << ' ' << fake<const char* (*)()>("fake_ze_mistake")();
    for (const char* name : kVariables) ::unsetenv(name);
  }
  static void set(const char* name, const char* value) { ::setenv(name, value, 1); }
  static void unset(const char* name) { ::unsetenv(name); }
  static RuntimeStatus status() { return runtimes().at(2); }

 private:
  static constexpr std::array kVariables = {
      "DOORBELL_LIBZE_LOADER", "DOORBELL_LIBCUDA", "DOORBELL_LIBAMDHIP64", "FAKE_ZE_DEVICES",
      "FAKE_ZE_FAIL",          "FAKE_ZE_HOLD",     "FAKE_ZE_LOST_AFTER",   "FAKE_ZE_WITHOUT"};
};

std::vector<u32> numbers(std::size_t n) {
  std::vector<u32> v(n);
  std::iota(v.begin(), v.end(), 7u);
  return v;
}

// --- finding GPUs ----------------------------------------------------------------------------------

TEST_F(LevelZero, EnumeratesGpusOnly) {
  const std::vector<Info> all = enumerate();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].runtime, Runtime::level_zero);
  EXPECT_EQ(name(all[0].runtime), "level_zero");
  EXPECT_EQ(all[0].name, "Fake Max 1550");
  EXPECT_EQ(all[0].arch, "8086:0bd5");
  EXPECT_EQ(all[0].pci_address, "0000:3a:00.0");
  EXPECT_EQ(all[0].driver, "1.3.24595 (Level Zero 1.4)");
  EXPECT_EQ(all[0].memory_bytes, u64{1} << 30);
  EXPECT_EQ(all[0].multiprocessors, 128);
  EXPECT_EQ(all[0].warp_size, 16);
  EXPECT_EQ(all[1].index, 1);
  EXPECT_EQ(all[1].pci_address, "0000:3b:00.0");
  EXPECT_TRUE(status().usable);
  EXPECT_EQ(status().detail, "driver 1.3.24595 (Level Zero 1.4), 2 GPUs");
  EXPECT_FALSE(has_kernels(Runtime::level_zero));
}

TEST_F(LevelZero, SaysWhatIsMissing) {
  set("FAKE_ZE_DEVICES", "0");
  EXPECT_FALSE(status().usable);
  EXPECT_TRUE(contains(status().detail, "ZE_RESULT_ERROR_UNINITIALIZED (0x78000001)")) << status().detail;
  EXPECT_TRUE(contains(status().detail, "libze-intel-gpu1")) << status().detail;
  unset("FAKE_ZE_DEVICES");
  set("FAKE_ZE_FAIL", "zeInit=0x70010000");
  EXPECT_TRUE(contains(status().detail, "group render")) << status().detail;
  set("FAKE_ZE_FAIL", "zeDriverGet=0x12345");
  EXPECT_TRUE(contains(status().detail, "unknown Level Zero result (0x12345)")) << status().detail;
  set("FAKE_ZE_FAIL", "zeDeviceGet=0x70000001");
  EXPECT_TRUE(contains(status().detail, "ZE_RESULT_ERROR_DEVICE_LOST")) << status().detail;
  set("DOORBELL_LIBZE_LOADER", "/nonexistent/libze_loader.so.1");
  EXPECT_TRUE(contains(status().detail, "/nonexistent/libze_loader.so.1 cannot be loaded"));
  const Error e = error_of([] { (void)open(0); });
  EXPECT_EQ(e.code(), ExitCode::absent);
  EXPECT_TRUE(contains(e.what(), "Level Zero: /nonexistent/libze_loader.so.1 cannot be loaded")) << e.what();
  set("DOORBELL_LIBZE_LOADER", FAKE_CUDA);
  EXPECT_TRUE(contains(status().detail, "it has no function zeInit")) << status().detail;
}

TEST_F(LevelZero, AnUnreadableGpuKeepsItsIndex) {
  set("FAKE_ZE_FAIL", "zeDeviceGetMemoryProperties=0x70000001");
  const std::vector<Info> all = enumerate();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_TRUE(contains(all[0].name, "unreadable, ZE_RESULT_ERROR_DEVICE_LOST")) << all[0].name;
}

TEST_F(LevelZero, AGpuThatDoesNotOpen) {
  for (const char* call : {"zeContextCreate", "zeDeviceGetCommandQueueGroupProperties"}) {
    set("FAKE_ZE_FAIL", (std::string(call) + "=0x70000002").c_str());
    const Error e = error_of([] { (void)open(0); });
    EXPECT_TRUE(contains(e.what(), "open GPU 0 (Fake Max 1550): ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY"))
        << e.what();
  }
}

TEST_F(LevelZero, ChoosesTheEngineThatOnlyCopies) {
  {
    const auto gpu = open(0);
    (void)gpu->create_stream();
    EXPECT_EQ(count("group"), 2) << "group 1 cannot fill";
  }
  set("FAKE_ZE_WITHOUT", "copy-engine");
  const auto gpu = open(0);
  (void)gpu->create_urgent_stream();
  EXPECT_EQ(count("group"), 0);
  EXPECT_EQ(count("urgent"), 1);
}

// --- memory ----------------------------------------------------------------------------------------

TEST_F(LevelZero, GivesMemoryThatNoHostCodeReaches) {
  const auto gpu = open(0);
  auto* const p = static_cast<u8*>(gpu->allocate(100'000));
  EXPECT_EQ(reinterpret_cast<u64>(p) % 65536, 0u);
  const int file = ::memfd_create("out", MFD_CLOEXEC);
  EXPECT_EQ(::write(file, p, 1), -1);
  EXPECT_EQ(errno, EFAULT);
  ::close(file);
  std::vector<u8> out(100'000, 1);
  gpu->copy(out.data(), p, out.size());
  EXPECT_EQ(std::count(out.begin(), out.end(), 0), 100'000);
  EXPECT_EQ(count("device"), 1);
  gpu->free(p);
  EXPECT_EQ(count("device"), 0);
}

TEST_F(LevelZero, SaysWhyMemoryIsRefused) {
  const auto gpu = open(0);
  void* const most = gpu->allocate(u64{900} << 20);
  const Error e = error_of([&] { (void)gpu->allocate(u64{200} << 20); });
  EXPECT_TRUE(contains(e.what(), "ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY (0x70000003): not enough GPU memory"))
      << e.what();
  gpu->free(most);
  set("FAKE_ZE_FAIL", "zeCommandListAppendMemoryFill=0x70000001");
  EXPECT_EQ(error_of([&] { (void)gpu->allocate(4096); }).code(), ExitCode::data);
  EXPECT_EQ(count("device"), 0);
  set("FAKE_ZE_FAIL", "zeMemAllocHost=0x70000002");
  EXPECT_THROW((void)gpu->allocate_pinned(1), Error);
  for (const char* call : {"zeCommandListCreateImmediate", "zeEventPoolCreate", "zeEventCreate"}) {
    set("FAKE_ZE_FAIL", (std::string(call) + "=0x70000003").c_str());
    EXPECT_THROW((void)gpu->create_stream(), Error) << call;
  }
}

TEST_F(LevelZero, RegistersHostMemoryNotRegisters) {
  std::vector<u8> memory(8192, 3);
  {
    const auto gpu = open(0);
    EXPECT_EQ(gpu->register_host(memory.data(), 8192, false), memory.data());
    EXPECT_EQ(count("imported"), 1);
    gpu->unregister_host(memory.data());
    EXPECT_EQ(count("imported"), 0);
    const Error e = error_of([&] { (void)gpu->register_host(memory.data(), 4096, true); });
    EXPECT_TRUE(contains(e.what(), "doorbell does not do it with GPUs of Level Zero")) << e.what();
  }
  set("FAKE_ZE_WITHOUT", "import");
  const auto gpu = open(0);
  EXPECT_EQ(gpu->register_host(memory.data(), 8192, false), memory.data());
  EXPECT_EQ(count("imported"), 0);
}

TEST_F(LevelZero, ExportsTheSameBytesAsDmabuf) {
  const auto gpu = open(0);
  const std::vector<u32> in = numbers(16384);
  auto* const p = static_cast<u8*>(gpu->allocate(65536));
  gpu->copy(p, in.data(), 65536);
  for (int times = 0; times < 2; ++times) {  // each time a descriptor that the caller may close
    const int fd = gpu->export_dmabuf(p, 65536);
    void* const seen = ::mmap(nullptr, 65536, PROT_READ, MAP_SHARED, fd, 0);
    ASSERT_NE(seen, MAP_FAILED);
    EXPECT_EQ(std::memcmp(seen, in.data(), 65536), 0);
    ::munmap(seen, 65536);
    EXPECT_NE(::fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
    ::close(fd);
  }
  const Error inside = error_of([&] { (void)gpu->export_dmabuf(p + 4096, 4096); });
  EXPECT_TRUE(contains(inside.what(), "ZE_RESULT_ERROR_INVALID_ARGUMENT")) << inside.what();
  EXPECT_TRUE(contains(inside.hint(), "whole allocation")) << inside.hint();
  EXPECT_THROW((void)gpu->export_dmabuf(p, u64{1} << 20), Error);
  gpu->free(p);
}

TEST_F(LevelZero, SaysThatADriverExportsNothing) {
  set("FAKE_ZE_WITHOUT", "export");
  const auto gpu = open(0);
  void* const p = gpu->allocate(4096);
  const Error e = error_of([&] { (void)gpu->export_dmabuf(p, 4096); });
  EXPECT_TRUE(contains(e.what(), "ZE_RESULT_ERROR_UNSUPPORTED_FEATURE")) << e.what();
}

TEST_F(LevelZero, GpusReachEachOther) {
  const auto one = open(0), other = open(1);
  EXPECT_EQ(count("contexts"), 1);
  one->reach(*other);
  const std::vector<u32> in = numbers(1024);
  std::vector<u32> out(1024);
  void* const here = one->allocate(4096);
  void* const there = other->allocate(4096);
  one->copy(here, in.data(), 4096);
  one->copy(there, here, 4096);
  other->copy(out.data(), there, 4096);
  EXPECT_EQ(in, out);
  set("FAKE_ZE_WITHOUT", "peer");
  EXPECT_TRUE(contains(error_of([&] { one->reach(*other); }).what(), "reach memory of GPU 1"));
}

// --- copies ----------------------------------------------------------------------------------------

TEST_F(LevelZero, CopiesInTheOrderOfTheStream) {
  const auto gpu = open(0);
  const Stream s = gpu->create_stream();
  auto* const p = static_cast<u8*>(gpu->allocate(4096));
  const std::vector<u8> ones(4096, 1), twos(4096, 2);
  std::vector<u8> out(4096);
  // The fake carries out in reverse order what no barrier separates.
  set("FAKE_ZE_HOLD", "1");
  gpu->start_copy({p, ones.data(), 4096}, s);
  gpu->start_copy({p, twos.data(), 4096}, s);
  EXPECT_FALSE(gpu->finished(s));
  gpu->start_copy({out.data(), p, 4096}, s);
  EXPECT_FALSE(gpu->finished(s));
  EXPECT_FALSE(gpu->wait(s, 2'000'000));
  unset("FAKE_ZE_HOLD");
  EXPECT_TRUE(gpu->wait(s, u64{60} * 1'000'000'000));
  EXPECT_TRUE(gpu->finished(s));
  EXPECT_EQ(out, twos);
  gpu->destroy(s);
}

TEST_F(LevelZero, ThreadsShareAGpu) {
  const auto gpu = open(0);
  const Stream common = gpu->create_stream();
  void* const shared = gpu->allocate(4096);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        void* p = gpu->allocate(4096);
        const int in = t * 1000 + i;
        int out = 0;
        gpu->copy(p, &in, sizeof in);
        gpu->copy(&out, p, sizeof out);
        EXPECT_EQ(out, in);
        gpu->free(p);
        gpu->start_copy({static_cast<int*>(shared) + t, &in, sizeof in}, common);
        EXPECT_TRUE(gpu->wait(common, u64{60} * 1'000'000'000));
      }
    });
  for (std::thread& thread : threads) thread.join();
}

TEST_F(LevelZero, AGpuThatIsLost) {
  const auto gpu = open(0);
  void* const p = gpu->allocate(4096);
  char out = 0;
  set("FAKE_ZE_LOST_AFTER", "0");
  const Error e = error_of([&] { gpu->copy(&out, p, 1); });
  EXPECT_EQ(e.code(), ExitCode::data);
  EXPECT_TRUE(contains(e.what(), "ZE_RESULT_ERROR_DEVICE_LOST (0x70000001)")) << e.what();
  EXPECT_TRUE(contains(e.hint(), "dmesg")) << e.hint();
}

TEST_F(LevelZero, RefusesWhatNeedsKernels) {
  const auto gpu = open(1);
  const Error e = error_of([&] { (void)gpu->kernel("doorbell_probe"); });
  EXPECT_EQ(e.code(), ExitCode::absent);
  EXPECT_TRUE(contains(e.what(), "GPU 1 (Fake Arc A770): doorbell has no kernels for Intel's GPUs"))
      << e.what();
  EXPECT_NO_THROW(measure::prepare_kernels(*gpu, {}));
  const std::vector<std::string> loops = {"doorbell_nvme_io"};
  EXPECT_THROW(measure::prepare_kernels(*gpu, loops), Error);
  EXPECT_THROW((void)gpu->create_event(), Error);
}

// --- models and checkers ---------------------------------------------------------------------------

class Engine : public LevelZero {
 protected:
  void SetUp() override {
    LevelZero::SetUp();
    gpu_ = open(0);
    there_ = Region(Place::gpu, kBytes, gpu_);
    iova_ = space_.map(there_, Access::read_write);
  }
  void TearDown() override {
    space_.unmap(iova_);
    there_ = Region();
    gpu_.reset();
    LevelZero::TearDown();
  }
  static constexpr u64 kBytes = 16 << 20;
  std::shared_ptr<Gpu> gpu_;
  SoftwareAddressSpace space_;
  Region there_;
  Iova iova_ = 0;
};

TEST_F(Engine, CopiesWithoutAKernel) {
  model::DmaAgent agent(gpu_, 1);
  model::DmaEngine dma(space_, &agent, 0);
  const std::vector<u32> in = numbers(kBytes / 4);
  std::vector<u32> out(kBytes / 4);
  // Larger than the memory that they pass through.
  EXPECT_TRUE(dma.deliver(iova_, in.data(), kBytes));
  EXPECT_TRUE(dma.pending());
  EXPECT_TRUE(dma.commit());
  EXPECT_FALSE(dma.pending());
  EXPECT_TRUE(dma.fetch(iova_, out.data(), kBytes));
  EXPECT_TRUE(dma.commit());
  EXPECT_EQ(in, out);
  // More small ones than one commit takes.
  for (u32 i = 0; i < 3000; ++i) EXPECT_TRUE(dma.deliver(iova_ + 64 * u64{i}, &in[i], 4));
  EXPECT_TRUE(dma.commit());
  for (u32 i = 0; i < 3000; ++i) EXPECT_TRUE(dma.fetch(iova_ + 64 * u64{i}, &out[i], 4));
  EXPECT_TRUE(dma.commit());
  EXPECT_TRUE(std::equal(in.begin(), in.begin() + 3000, out.begin()));
  EXPECT_FALSE(dma.deliver(iova_ + kBytes, in.data(), 4)) << "outside";
}

TEST_F(Engine, SaysThatTheGpuIsLost) {
  model::DmaAgent agent(gpu_, 1);
  model::DmaEngine dma(space_, &agent, 0);
  set("FAKE_ZE_LOST_AFTER", "0");
  u32 out = 5;
  EXPECT_TRUE(dma.fetch(iova_, &out, 4));
  EXPECT_FALSE(dma.commit());
  EXPECT_EQ(out, 5u) << "nothing is delivered that did not come";
}

TEST_F(Engine, AMirrorCopiesBothWays) {
  GpuMirror mirror(there_);
  MirrorSlots slots(256, 64);
  for (const u64 slot : {0, 1, 2, 9, 4, 5}) slots.add(slot);
  ASSERT_EQ(slots.ranges().size(), 3u);
  EXPECT_EQ(slots.ranges()[0].bytes, 2 * 256u + 64);
  for (u32 i = 0; i < 4096; ++i) mirror.host()[i] = static_cast<u8>(i % 251);
  mirror.store(slots.ranges());
  std::vector<u8> seen(4096);
  there_.read(0, seen.data(), seen.size());
  for (const u64 slot : {0, 1, 2, 4, 5, 9})
    for (u64 i = slot * 256; i < slot * 256 + 64; ++i) EXPECT_EQ(seen[i], i % 251) << i;
  for (const u64 at : {3 * 256, 6 * 256, 9 * 256 + 64}) EXPECT_EQ(seen[at], 0) << at;
  std::fill_n(mirror.host(), 4096, 1);
  mirror.fetch({9 * 256, 64});
  EXPECT_EQ(mirror.host()[9 * 256 + 1], (9 * 256 + 1) % 251);
  EXPECT_EQ(mirror.host()[0], 1);
  EXPECT_NO_THROW(mirror.check());
}

TEST_F(Engine, AMirrorThatFailedHoldsZeros) {
  GpuMirror mirror(there_);
  std::fill_n(mirror.host(), 4096, 1);
  set("FAKE_ZE_FAIL", "zeCommandListAppendMemoryCopy=0x70000001");
  mirror.fetch({64, 64});
  EXPECT_EQ(mirror.host()[63], 1);
  EXPECT_EQ(mirror.host()[64], 0);
  unset("FAKE_ZE_FAIL");
  EXPECT_EQ(error_of([&] { mirror.check(); }).code(), ExitCode::data);
  EXPECT_NO_THROW(mirror.check()) << "said once";
}

}  // namespace
}  // namespace doorbell::gpu
