// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Windows in GPU memory, as the host drives them. The GPU is a test's own: kernels' code on the CPU.

#include "net/assembly/gpu_assembly.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "errors.hpp"
#include "eventually.hpp"
#include "net/assembly/assembler.hpp"
#include "net/assembly/assembly_sink.hpp"
#include "net/assembly/copy_stage.hpp"
#include "net/computing_gpu.hpp"
#include "net/window_sink.hpp"

namespace doorbell::net {
namespace {

using doorbell::test::error_of;
using doorbell::test::expect_says;
using test::ComputingGpu;
using test::WindowSink;

constexpr u32 kBytes = 40;

std::vector<u8> sent_data(u64 n) {
  std::vector<u8> d(kBytes);
  for (u32 i = 0; i < kBytes; i += 8) {
    const u64 word = data_word(Fill::bytes, 11, 0, static_cast<u32>(n % kTemplates), i / 8);
    std::memcpy(d.data() + i, &word, 8);
  }
  return d;
}

AssemblerRequest on_gpu(const std::shared_ptr<ComputingGpu>& gpu,
                        const std::shared_ptr<GpuAssembly>& gatherer) {
  AssemblerRequest r;
  r.shape = {.packets = 4, .open = 2};
  r.data_bytes = kBytes;
  r.place = Place::gpu;
  r.gpu = gpu;
  r.gatherer = gatherer;
  return r;
}

/// Looks at a window when the GPU has done everything that was started before it.
class GpuSink final : public WindowConsumer {
 public:
  explicit GpuSink(GpuAssembly& assembly) : assembly_(assembly) {}
  void take(const Window& w) override {
    assembly_.wait(assembly_.launch(), 1'000'000'000);
    checked.push_back(assembly_.check(w, kBytes, {Fill::bytes, 11, 0}, 1'000'000'000));
    EXPECT_EQ(w.host, nullptr);
    for (const u32 slot : w.missing_slots) {
      const u8* const p = w.device + slot * kBytes;
      zeros += std::all_of(p, p + kBytes, [](u8 b) { return b == 0; }) ? 1 : 0;
    }
    missing += w.missing;
    w.give_back();
  }
  std::vector<CheckCounts> checked;
  u64 zeros = 0, missing = 0;

 private:
  GpuAssembly& assembly_;
};

TEST(GpuAssembly, GathersZeroesAndChecks) {
  const auto gpu = std::make_shared<ComputingGpu>();
  const auto gatherer = std::make_shared<GpuAssembly>(gpu, 3);
  GpuSink sink(*gatherer);
  Assembler a(on_gpu(gpu, gatherer), sink);
  std::vector<std::vector<u8>> packets;
  std::mt19937 random(5);
  for (u64 n = 0; n < 400; ++n) packets.push_back(sent_data(n));
  std::vector<u64> order;
  for (u64 n = 0; n < 400; ++n)
    if (random() % 6 != 0) order.push_back(n);
  for (std::size_t i = 0; i + 4 < order.size(); i += 4)
    std::shuffle(order.begin() + i, order.begin() + i + 4, random);
  for (const u64 n : order) EXPECT_NE(a.add(n, packets[n].data(), kBytes, 0), Placing::misplaced);
  a.finish(400);
  ASSERT_EQ(sink.checked.size(), 100U);
  u64 checked = 0;
  for (const CheckCounts& c : sink.checked) {
    EXPECT_EQ(c.wrong, 0U);
    checked += c.checked;
  }
  EXPECT_EQ(checked, a.counts().placed);
  EXPECT_GT(sink.missing, 0U);
  EXPECT_EQ(sink.zeros, sink.missing);
  EXPECT_EQ(gpu->copies, 0U);
}

TEST(GpuAssembly, AWrongByteIsFound) {
  const auto gpu = std::make_shared<ComputingGpu>();
  const auto gatherer = std::make_shared<GpuAssembly>(gpu, 64);
  GpuSink sink(*gatherer);
  Assembler a(on_gpu(gpu, gatherer), sink);
  std::vector<std::vector<u8>> packets;
  for (u64 n = 0; n < 4; ++n) packets.push_back(sent_data(n));
  packets[2][39] ^= 1;
  for (u64 n = 0; n < 4; ++n) a.add(n, packets[n].data(), kBytes, 0);
  ASSERT_EQ(sink.checked.size(), 1U);
  EXPECT_EQ(sink.checked[0].checked, 4U);
  EXPECT_EQ(sink.checked[0].wrong, 1U);
  EXPECT_EQ(sink.checked[0].slots[0], 2U);
}

/// The workload's blocks find free multiprocessors; small packets have a warp each.
TEST(GpuAssembly, LongPacketsTakeNoMoreWarpsThanPcieNeeds) {
  const auto gpu = std::make_shared<ComputingGpu>();
  GpuAssembly assembly(gpu, 1024);
  const auto warps = [&](u32 bytes, u32 offset = 0) {
    const std::vector<u8> from(offset + bytes, 7);
    std::vector<u8> to(offset + bytes, 7);
    std::memset(to.data() + offset, 0, bytes);
    for (u32 i = 0; i < 1024; ++i) assembly.add(from.data() + offset, to.data() + offset, bytes);
    assembly.wait(assembly.launch(), 1'000'000'000);
    EXPECT_EQ(to, from);
    return gpu->gathering_warps;
  };
  EXPECT_EQ(warps(16), 1024u);
  EXPECT_EQ(warps(992), 528u);
  EXPECT_EQ(warps(7968), 168u);
  EXPECT_EQ(warps(1 << 20), 128u);
  // These go in words of 4 bytes.
  EXPECT_EQ(warps(7968, 4), 1024u);
}

TEST(GpuAssembly, NothingIsDoneBeforeTheGpuSaysSo) {
  const auto gpu = std::make_shared<ComputingGpu>();
  GpuAssembly assembly(gpu, 8);
  const std::vector<u8> from(16, 7);
  std::vector<u8> to(16);
  assembly.add(from.data(), to.data(), 16);
  const u64 mark = assembly.launch();
  EXPECT_FALSE(assembly.done(mark));
  EXPECT_EQ(to, std::vector<u8>(16));
  ASSERT_TRUE(gpu->step(assembly.stream()));
  EXPECT_EQ(to, from);
  EXPECT_FALSE(assembly.done(mark));
  ASSERT_TRUE(gpu->step(assembly.stream()));
  EXPECT_TRUE(assembly.done(mark));
  EXPECT_EQ(assembly.launch(), mark) << "nothing new";
}

TEST(GpuAssembly, AStuckGpuIsAnErrorInTime) {
  const auto gpu = std::make_shared<ComputingGpu>();
  GpuAssembly assembly(gpu, 8);
  gpu->stuck = true;
  u8 a = 1, b = 0;
  assembly.add(&a, &b, 1);
  const u64 mark = assembly.launch();
  expect_says(error_of([&] { assembly.wait(mark, 1'000'000); }, ExitCode::data),
              "has not put packets together");
  gpu->stuck = false;
}

TEST(GpuAssembly, PlacesByHeaders) {
  const auto gpu = std::make_shared<ComputingGpu>();
  GpuAssembly assembly(gpu, 8);
  std::vector<std::array<u64, 6>> packets(5);
  std::vector<u64> addresses;
  for (u64 n = 0; n < 5; ++n) {
    Header h;
    h.data_bytes = 16;
    h.stream_sequence = stream_sequence(3, 100 + n);
    std::memcpy(packets[n].data(), &h, sizeof h);
    packets[n][4] = packets[n][5] = n + 1;
    addresses.push_back(reinterpret_cast<u64>(packets[n].data()));
  }
  std::array<u64, 8> window = {};
  u64 arrived = 0;
  const PlaceCounts c = assembly.place({addresses.data(), 5, &arrived, 100, 4, 16, 0, 3},
                                       reinterpret_cast<u8*>(window.data()), 1'000'000'000);
  EXPECT_EQ(c.placed, 4U);
  EXPECT_EQ(c.outside, 1U);
  EXPECT_EQ(arrived, 15U);
  EXPECT_EQ(window, (std::array<u64, 8>{1, 1, 2, 2, 3, 3, 4, 4}));
}

TEST(GpuAssembly, ASplitPacketIsPutTogether) {
  const auto gpu = std::make_shared<ComputingGpu>();
  const auto gatherer = std::make_shared<GpuAssembly>(gpu, 8);
  GpuSink sink(*gatherer);
  auto r = on_gpu(gpu, gatherer);
  AssemblySink windows({.windows = r}, sink);
  Burst burst(4);
  burst.split = true;
  std::vector<std::vector<u8>> heads, bodies;
  for (u64 n = 0; n < 4; ++n) {
    const auto d = sent_data(n);
    heads.emplace_back(kHeaderBytes + 16);
    std::copy_n(d.begin(), 16, heads.back().begin() + kHeaderBytes);
    bodies.emplace_back(d.begin() + 16, d.end());
  }
  std::array<u32, 4> which = {3, 1, 0, 2};
  std::array<u16, 4> flow = {};
  std::array<u64, 4> number = {3, 1, 0, 2};
  for (u32 i = 0; i < 4; ++i) {
    burst.data[i] = heads[i].data();
    burst.length[i] = kHeaderBytes + 16;
    burst.body[i] = bodies[i].data();
    burst.body_length[i] = kBytes - 16;
  }
  (void)windows.take(burst, which, flow, number);
  ASSERT_EQ(sink.checked.size(), 1U);
  EXPECT_EQ(sink.checked[0].checked, 4U);
  EXPECT_EQ(sink.checked[0].wrong, 0U);
}

TEST(AssemblySink, EachFlowHasWindowsOfItsOwn) {
  WindowSink sink;
  AssemblyRequest r;
  r.queue = 1, r.spreading = {.flows = 4, .queues = 2};  // flows 1 and 3
  r.windows.shape = {.packets = 2, .open = 2};
  r.windows.data_bytes = kBytes;
  AssemblySink windows(r, sink);
  EXPECT_EQ(windows.window_bytes(), 2U * kBytes);
  Burst burst(8);
  std::vector<std::vector<u8>> payloads;
  std::vector<u32> which;
  std::vector<u16> flow;
  std::vector<u64> number;
  for (u32 i = 0; i < 5; ++i) {
    payloads.emplace_back(kHeaderBytes + kBytes, static_cast<u8>(i + 1));
    burst.data[i] = payloads[i].data();
    burst.length[i] = kHeaderBytes + kBytes;
    which.push_back(i);
    flow.push_back(i % 2 == 0 ? 1 : 3);
    number.push_back(i / 2);
  }
  (void)windows.take(burst, which, flow, number);
  ASSERT_EQ(sink.seen.size(), 2U);
  EXPECT_EQ(sink.seen[0].bytes[0], 1);
  EXPECT_EQ(sink.seen[0].bytes[kBytes], 3);
  EXPECT_EQ(sink.seen[1].bytes[0], 2);
  const std::array<u64, 4> sent = {0, 4, 0, 2};
  windows.finish(sent);
  ASSERT_EQ(sink.seen.size(), 3U);
  EXPECT_EQ(sink.seen[2].missing, (std::vector<u32>{1}));
  EXPECT_EQ(windows.counts().placed, 5U);
  EXPECT_EQ(windows.counts().missing, 1U);
}

TEST(AssemblySink, ABurstWithBorrowedMessagesIsNotReleased) {
  WindowSink sink(4);
  AssemblyRequest r;
  r.ordered = true;
  r.windows.shape.packets = 1;
  r.windows.data_bytes = kBytes;
  AssemblySink windows(r, sink);
  Burst burst(1);
  std::vector<u8> payload(kHeaderBytes + kBytes, 9);
  burst.data[0] = payload.data();
  burst.length[0] = kHeaderBytes + kBytes;
  const std::array<u32, 1> which = {0};
  const std::array<u16, 1> flow = {0};
  const std::array<u64, 1> number = {0};
  (void)windows.take(burst, which, flow, number);
  EXPECT_EQ(sink.seen.size(), 1U);
  EXPECT_EQ(sink.seen[0].at, payload.data() + kHeaderBytes);
  EXPECT_EQ(sink.waits, 1U);
  EXPECT_TRUE(sink.kept.empty());
}

/// Reads windows in the memory of ComputingGpu, which is the host's.
class DeviceSink final : public WindowConsumer {
 public:
  explicit DeviceSink(u32 keep) : keep_(keep) {}
  void take(const Window& w) override {
    EXPECT_EQ(w.host, nullptr);
    seen.emplace_back(w.device, w.device + w.bytes);
    missing.emplace_back(w.missing_slots.begin(), w.missing_slots.end());
    indices.push_back(w.index);
    threads.insert(std::this_thread::get_id());
    kept.push_back(w);
    if (kept.size() > keep_) wait(0);
  }
  void wait(u64) override {
    if (kept.empty()) return;
    kept.front().give_back();
    kept.pop_front();
  }
  void finish() override {
    while (!kept.empty()) wait(0);
  }
  std::vector<std::vector<u8>> seen;
  std::vector<std::vector<u32>> missing;
  std::vector<u64> indices;
  std::set<std::thread::id> threads;
  std::deque<Window> kept;

 private:
  u32 keep_;
};

TEST(CopyStage, EveryWindowGoesOverWholeAndInOrder) {
  const auto gpu = std::make_shared<ComputingGpu>();
  DeviceSink sink(2);
  CopyStage stage(gpu, u64{4} * kBytes, 4, sink);
  auto r = on_gpu(gpu, nullptr);
  r.place = Place::pinned;
  Assembler a(r, stage);
  for (u64 n = 0; n < 2000; ++n) {
    if (n % 9 == 2) continue;
    const auto d = sent_data(n);
    a.add(n, d.data(), kBytes, 0);
    if (n % 5 == 0) a.poll(0);
  }
  a.finish(2000);
  ASSERT_EQ(sink.seen.size(), 500U);
  EXPECT_EQ(stage.copied(), 500U);
  EXPECT_EQ(gpu->copies, 2U + 2 * 500) << "one copy a window, and one that reports it";
  EXPECT_EQ(sink.threads, std::set<std::thread::id>{std::this_thread::get_id()});
  for (u64 w = 0; w < 500; ++w) {
    EXPECT_EQ(sink.indices[w], w);
    std::vector<u32> missing;
    for (u32 i = 0; i < 4; ++i) {
      const u64 n = w * 4 + i;
      if (n % 9 == 2) missing.push_back(i);
      const std::vector<u8> slot(sink.seen[w].begin() + i * kBytes, sink.seen[w].begin() + (i + 1) * kBytes);
      ASSERT_EQ(slot, n % 9 == 2 ? std::vector<u8>(kBytes) : sent_data(n)) << n;
    }
    ASSERT_EQ(sink.missing[w], missing);
  }
}

TEST(CopyStage, AFailedCopyReachesTheCaller) {
  const auto gpu = std::make_shared<ComputingGpu>();
  DeviceSink sink(0);
  CopyStage stage(gpu, u64{4} * kBytes, 4, sink);
  gpu->fail_copies = true;
  auto r = on_gpu(gpu, nullptr);
  r.place = Place::pinned;
  Assembler a(r, stage);
  const auto d = sent_data(0);
  for (u64 n = 0; n < 4; ++n) a.add(n, d.data(), kBytes, 0);
  EXPECT_THROW(a.finish(), std::runtime_error);
  EXPECT_TRUE(sink.seen.empty());
}

/// A consumer of windows that only polls learns of a GPU that has failed, and of one that does nothing any
/// more.
TEST(CopyStage, PollingTellsOfAGpuThatIsGone) {
  for (const bool fails : {true, false}) {
    const auto gpu = std::make_shared<ComputingGpu>();
    DeviceSink sink(0);
    CopyStage stage(gpu, u64{4} * kBytes, 4, sink, 2, 2, 1'000'000);
    gpu->fail_copies = fails;
    gpu->stuck = !fails;
    auto r = on_gpu(gpu, nullptr);
    r.place = Place::pinned;
    Assembler a(r, stage);
    const auto d = sent_data(0);
    for (u64 n = 0; n < 4; ++n) a.add(n, d.data(), kBytes, 0);
    std::string told;
    EXPECT_TRUE(doorbell::test::eventually([&] {
      try {
        stage.poll();
      } catch (const std::exception& e) {
        told = e.what();
      }
      return !told.empty();
    }));
    EXPECT_NE(told.find(fails ? "failed on purpose" : "the GPU has not copied it"), std::string::npos)
        << told;
    EXPECT_TRUE(sink.seen.empty());
  }
}

TEST(Assembler, GpuMemoryNeedsSomethingThatGathers) {
  const auto gpu = std::make_shared<ComputingGpu>();
  WindowSink sink;
  expect_says(error_of([&] { Assembler a(on_gpu(gpu, nullptr), sink); }),
              "a CPU cannot put packets together");
}

}  // namespace
}  // namespace doorbell::net
