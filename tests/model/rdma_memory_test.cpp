// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// What a run says beforehand that it needs of memory, against what its session takes.

#include <gtest/gtest.h>

#include <algorithm>

#include "cxi/rma_device.hpp"
#include "rdma/plan.hpp"

namespace doorbell::rdma {
namespace {

/// A device that counts what is allocated and created on it.
class Counting final : public Device {
 public:
  explicit Counting(std::unique_ptr<Device> inner) : inner_(std::move(inner)) {}
  [[nodiscard]] std::string kind() const override { return inner_->kind(); }
  [[nodiscard]] std::string name() const override { return inner_->name(); }
  [[nodiscard]] Provider provider() const override { return inner_->provider(); }
  [[nodiscard]] Limits limits() const override { return inner_->limits(); }
  [[nodiscard]] Region allocate(Place place, u64 bytes) override {
    buffers += bytes;
    return inner_->allocate(place, bytes);
  }
  [[nodiscard]] std::unique_ptr<MemoryRegion> register_memory(const Region& region, u32 access) override {
    return inner_->register_memory(region, access);
  }
  [[nodiscard]] std::unique_ptr<QueuePairObject> create_queue_pair(const QueuePairShape& shape) override {
    auto made = inner_->create_queue_pair(shape);
    rings += provider() == Provider::cxi ? bytes_of(cxi::put_state(*made, Initiator::cpu))
                                         : bytes_of(made->memory(Initiator::cpu));
    return made;
  }
  [[nodiscard]] u64 queue_pair_bytes(const QueuePairShape& shape) const override {
    return inner_->queue_pair_bytes(shape);
  }

  u64 buffers = 0;
  u64 rings = 0;  ///< without the device's own records and registers

 private:
  /// From the first ring to the end of the last, and what the initiator keeps.
  [[nodiscard]] u64 bytes_of(const QueuePairMemory& m) const {
    constexpr u32 kCqeParts[] = {4, 2, 2, 4};  // mlx5, bnxt, ionic, ernic
    const Word16* const end =
        m.recv_cq + u64{m.recv_cq_entries} * kCqeParts[static_cast<u32>(inner_->provider())];
    return static_cast<u64>(end - m.sq) * sizeof(Word16) + u64{m.track_entries} * sizeof(Word16);
  }
  [[nodiscard]] static u64 bytes_of(const cxi::PutQueueState& s) {
    return u64{s.commands.memory.slots} * cxi::kSlotBytes + s.events.memory.bytes;
  }

  std::unique_ptr<Device> inner_;
};

std::unique_ptr<Device> open_one(Provider p, u32 queue_pairs) {
  if (p == Provider::cxi)
    return cxi::open_rma_device({.spec = "cxi-model0", .provider = p, .use = {.queues = queue_pairs}});
  return open_device({.spec = "model", .provider = p, .use = {.queues = queue_pairs}});
}

class MemoryNeeded : public testing::TestWithParam<Provider> {};
INSTANTIATE_TEST_SUITE_P(Rdma, MemoryNeeded,
                         testing::Values(Provider::mlx5, Provider::bnxt, Provider::ionic, Provider::ernic,
                                         Provider::cxi),
                         [](const auto& p) { return std::string(name(p.param)); });

void expect_needed(Provider provider, const SessionShape& shape) {
  Counting device(open_one(provider, 2 * shape.queue_pairs));
  const Session session(device, nullptr, shape);
  const u64 queue_pairs = u64{shape.queue_pairs} * (shape.ends == Ends::pair ? 2 : 1);
  const u64 taken =
      device.buffers + device.rings + shape.queue_pairs * OpScratch::bytes(shape.window, histogram::kBuckets);
  const u64 needed = memory_needed(shape, device);
  EXPECT_GE(needed, taken);
  // Pages of records and registers, rings that end within a page, an OpStats.
  EXPECT_LE(needed, taken + queue_pairs * 9 * 4096);
}

TEST_P(MemoryNeeded, IsWhatASessionTakes) {
  SessionShape shape;
  for (const u32 bytes : {0u, 1000u, 65536u})
    for (const u32 window : {1u, 64u, 1000u}) {
      SCOPED_TRACE(testing::Message() << bytes << " bytes, window " << window);
      shape.bytes = bytes;
      shape.window = window;
      shape.one_offset = false;
      shape.queue_pairs = 1;
      expect_needed(GetParam(), shape);
      shape.queue_pairs = 3;
      shape.one_offset = true;
      expect_needed(GetParam(), shape);
    }
}

TEST_P(MemoryNeeded, OfEveryEndThatIsHere) {
  if (GetParam() == Provider::cxi) return;  // every put comes back to its own endpoint
  SessionShape shape;
  shape.bytes = 5000;
  shape.window = 32;
  for (const Ends ends : {Ends::self, Ends::pair, Ends::remote})
    for (const Role role : {Role::initiator, Role::responder})
      for (const u32 landing : {0u, 64u}) {
        SCOPED_TRACE(testing::Message() << "ends " << static_cast<u32>(ends) << ", role "
                                        << static_cast<u32>(role) << ", landing " << landing);
        if (ends != Ends::remote && role == Role::responder) continue;
        shape.ends = ends;
        shape.role = role;
        shape.landing = landing;
        expect_needed(GetParam(), shape);
      }
}

TEST(MemoryNeededOfACell, HasTheBuffersThatCopyingIsMeasuredWith) {
  BenchOptions o;
  o.sizes = {1 << 20};
  const auto device = open_one(Provider::mlx5, 1);
  const CellPlan rate = plan_cell(o, Part::rate, 1 << 20), latency = plan_cell(o, Part::latency, 1 << 20);
  ASSERT_TRUE(measures_ceiling(rate, *device));
  EXPECT_EQ(memory_needed(rate, *device),
            memory_needed(rate.shape, *device) + u64{2} * rate.window * rate.bytes);
  EXPECT_FALSE(measures_ceiling(latency, *device));
  EXPECT_EQ(memory_needed(latency, *device), memory_needed(latency.shape, *device));
}

TEST(MemoryNeededOfACell, LeavesOutWhatLiesInAGpu) {
  const auto device = open_one(Provider::mlx5, 1);
  SessionShape shape;
  shape.bytes = 1 << 20;
  shape.window = 64;
  shape.local_memory = shape.remote_memory = shape.queue_memory = Place::gpu;
  EXPECT_LT(memory_needed(shape, *device), 1u << 20);
}

}  // namespace
}  // namespace doorbell::rdma
