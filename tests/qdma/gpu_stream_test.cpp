// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Streaming between card and GPU, with host memory in the GPU's place.
#include <doorbell/error.hpp>
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <set>
#include <thread>

#include "idle_gpu.hpp"
#include "qdma/bench/gpu_side.hpp"
#include "qdma/bench/jobs.hpp"
#include "qdma/flow/gpu_stream.hpp"

namespace doorbell::qdma {

namespace {

/// A GPU whose memory is the host's. It notes what is registered and refuses copies of other host memory.
class HostGpu : public IdleGpu {
 public:
  [[nodiscard]] void* register_host(void* p, u64, bool) override {
    registered.insert(p);
    return p;
  }
  void unregister_host(void* p) noexcept override { registered.erase(p); }
  void copy(void* to, const void* from, u64 bytes) override {
    EXPECT_TRUE(registered.contains(to) || registered.contains(const_cast<void*>(from)));
    if (++copies == fail_at) throw Error("copy", "the GPU has gone");
    std::memcpy(to, from, bytes);
  }
  void copy(std::span<const gpu::Copy> batch) override {
    for (const gpu::Copy& c : batch) copy(c.to, c.from, c.bytes);
  }

  std::set<void*> registered;
  u32 copies = 0, fail_at = 0;
};

class GpuStreaming : public testing::Test {
 protected:
  Card card = Card::open("model");
  TransferDescriptor both = card.both_channels();
  std::shared_ptr<HostGpu> gpu = std::make_shared<HostGpu>();
};

TEST_F(GpuStreaming, BytesComeBackAsTheyWent) {
  GpuStream stream(both, gpu, {.chunk_bytes = 64 << 10, .buffers = 3});
  EXPECT_EQ(gpu->registered.size(), 3u);
  for (const u64 n : {u64{1}, u64{64} << 10, (u64{64} << 10) + 1, (u64{5} << 20) + 4095}) {
    std::vector<u8> out(n), in(n + 1, 0xa5);
    for (u64 i = 0; i < n; ++i) out[i] = static_cast<u8>(i * 2654435761u >> 9);
    const TransferResult w = stream.gpu_to_card(out.data(), kDdrBase + 7, n);
    EXPECT_EQ(w.error, 0);
    EXPECT_EQ(w.bytes, n);
    const TransferResult r = stream.card_to_gpu(kDdrBase + 7, in.data(), n, 60);
    EXPECT_EQ(r.error, 0);
    EXPECT_EQ(r.bytes, n);
    EXPECT_EQ(std::memcmp(in.data(), out.data(), n), 0);
    EXPECT_EQ(in[n], 0xa5);
  }
  EXPECT_EQ(stream.card_to_gpu(kDdrBase, nullptr, 0).bytes, 0u);
}

/// A job whose bytes lie in GPU memory: checked there as well as one whose bytes lie in a host buffer.
TEST_F(GpuStreaming, JobsMoveAndCheckGpuMemory) {
  Buffer image = card.create_buffer(256 << 10);
  GpuSide side(card, {}, image, gpu, 64 << 10);
  CardPlace place{.name = "DDR0",
                  .memory = card_memory("ddr"),
                  .address = card_memory("ddr").base,
                  .buffer = &image,
                  .sequence = 0,
                  .gpu = &side};
  const auto run = [&](Direction direction) {
    return run_jobs(std::vector<Job>{{.place = &place, .direction = direction, .descriptor = nullptr}}, {});
  };
  fill(place, 1, 7);
  EXPECT_EQ(run(Direction::host_to_card).total.sum.succeeded, 1u);
  OpStats stats;
  poison(place);
  EXPECT_NE(check(place, 1, stats), pattern::Verdict::ok) << "nothing has come back yet";
  EXPECT_EQ(run(Direction::card_to_host).total.sum.succeeded, 1u);
  EXPECT_EQ(check(place, 1, stats), pattern::Verdict::ok);
  EXPECT_EQ(stats.checked, 2u);
  // The same by plain transfers of the host's buffer: the data is on the card.
  place.gpu = nullptr;
  poison(place);
  ChannelDescriptor plain(card, {});
  (void)run_jobs(
      std::vector<Job>{{.place = &place, .direction = Direction::card_to_host, .descriptor = &plain}}, {});
  EXPECT_EQ(check(place, 1, stats), pattern::Verdict::ok);
}

/// A batch has a price whatever it holds, as starting and awaiting one has: for small buffers it is no
/// ceiling of what threads with copies of their own reach.
TEST_F(GpuStreaming, TheCopyEnginesRateIsMeasuredAsTheWorkIs) {
  class DearBatches : public IdleGpu {
   public:
    void copy(void* to, const void* from, u64 bytes) override { std::memcpy(to, from, bytes); }
    void copy(std::span<const gpu::Copy> batch) override {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      for (const gpu::Copy& c : batch) copy(c.to, c.from, c.bytes);
    }
  };
  const auto dear = std::make_shared<DearBatches>();
  std::vector<Buffer> images;
  std::vector<std::unique_ptr<GpuSide>> sides;
  for (u32 i = 0; i < 2; ++i) images.push_back(card.create_buffer(64 << 10));
  for (Buffer& image : images)
    sides.push_back(std::make_unique<GpuSide>(card, CardUse{}, image, dear, 16 << 10));
  for (const Direction d : {Direction::card_to_host, Direction::host_to_card})
    EXPECT_GT(copy_engine_rate(*dear, sides, d), 2 * (128 << 10) / 0.05);
}

TEST_F(GpuStreaming, RegistrationEndsWithTheStream) {
  { const GpuStream stream(both, gpu); }
  EXPECT_TRUE(gpu->registered.empty());
}

TEST_F(GpuStreaming, AnErrorEndsTheStreamAndTheNextOneWorks) {
  GpuStream stream(both, gpu, {.chunk_bytes = 64 << 10, .buffers = 2});
  std::vector<u8> memory(1 << 20);
  // The stream runs over the end of DDR: the chunks before it arrive.
  const TransferResult r = stream.gpu_to_card(memory.data(), kDdrBase + kDdrBytes - (512 << 10), 512 << 10);
  EXPECT_EQ(r.error, 0);
  EXPECT_THROW(
      static_cast<void>(stream.gpu_to_card(memory.data(), kDdrBase + kDdrBytes - (512 << 10), memory.size())),
      CardError);
  gpu->fail_at = gpu->copies + 3;
  EXPECT_THROW(static_cast<void>(stream.card_to_gpu(kDdrBase, memory.data(), memory.size())), Error);
  EXPECT_EQ(stream.card_to_gpu(kDdrBase, memory.data(), memory.size()).bytes, memory.size());
}

TEST_F(GpuStreaming, ADeadlineIsOfTheWholeStream) {
  Card slow = Card::open("model:bandwidth=1000000");
  TransferDescriptor d = slow.both_channels();
  GpuStream stream(d, gpu, {.chunk_bytes = 1 << 20, .buffers = 2});
  std::vector<u8> memory(64 << 20);
  EXPECT_EQ(stream.card_to_gpu(kDdrBase, memory.data(), memory.size(), 0.2).error, ETIMEDOUT);
}

TEST_F(GpuStreaming, WhatNoStreamCanBeIsRefused) {
  EXPECT_THROW(GpuStream(both, gpu, {.chunk_bytes = 1000}), Error);
  EXPECT_THROW(GpuStream(both, gpu, {.buffers = 1}), Error);
}

}  // namespace

}  // namespace doorbell::qdma
