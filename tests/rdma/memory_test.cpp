// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The memory that a run announces beforehand, compared with what its session takes.

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "cxi/port.hpp"
#include "formats.hpp"
#include "rdma/backends.hpp"
#include "rdma/nic_port.hpp"
#include "rma/cell_setup.hpp"

namespace doorbell::rdma {
namespace {

/// Bytes taken: by buffers, and by rings without the device's own records and registers.
struct Taken {
  u64 buffers = 0;
  u64 rings = 0;
};

/// A NIC that counts.
class CountingNic final : public NicDevice {
 public:
  CountingNic(std::unique_ptr<NicDevice> inner, Taken* taken) : inner_(std::move(inner)), taken_(*taken) {}
  [[nodiscard]] std::string kind() const override { return inner_->kind(); }
  [[nodiscard]] std::string name() const override { return inner_->name(); }
  [[nodiscard]] Provider provider() const override { return inner_->provider(); }
  [[nodiscard]] NicLimits limits() const override { return inner_->limits(); }
  [[nodiscard]] Region allocate(Place place, u64 bytes) override {
    taken_.buffers += bytes;
    return inner_->allocate(place, bytes);
  }
  [[nodiscard]] std::unique_ptr<MemoryRegion> register_memory(const Region& region, u32 access) override {
    return inner_->register_memory(region, access);
  }
  [[nodiscard]] std::unique_ptr<QueuePairObject> create_queue_pair(const QueuePairShape& shape) override {
    auto made = inner_->create_queue_pair(shape);
    taken_.rings += bytes_of(made->memory(Initiator::cpu));
    return made;
  }
  [[nodiscard]] u64 queue_pair_bytes(const QueuePairShape& shape) const override {
    return inner_->queue_pair_bytes(shape);
  }

 private:
  /// From the first ring to the end of the last, and what the initiator keeps.
  [[nodiscard]] u64 bytes_of(const QueuePairMemory& m) const {
    const Word16* const end = m.recv_cq + u64{m.recv_cq_entries} * shape_of(inner_->provider()).cqe_parts;
    return static_cast<u64>(end - m.sq) * sizeof(Word16) + u64{m.track_entries} * sizeof(Word16);
  }

  std::unique_ptr<NicDevice> inner_;
  Taken& taken_;
};

/// A Cassini that counts.
class CountingCassini final : public Port {
 public:
  CountingCassini(const PortRequest& request, Taken* taken) : inner_(request, true), taken_(*taken) {}
  [[nodiscard]] std::string kind() const override { return inner_.kind(); }
  [[nodiscard]] std::string name() const override { return inner_.name(); }
  [[nodiscard]] Limits limits() const override { return inner_.limits(); }
  [[nodiscard]] Region allocate(Place place, u64 bytes) override {
    taken_.buffers += bytes;
    return inner_.allocate(place, bytes);
  }
  [[nodiscard]] std::unique_ptr<RegisteredMemory> register_memory(const Region& region,
                                                                  Reach reach) override {
    return inner_.register_memory(region, reach);
  }
  [[nodiscard]] std::unique_ptr<QueueSet> create_queues(u32 count, Ends, const QueueShape& shape) override {
    auto made = inner_.create_put_queues(count, shape);
    for (const cxi::PutQueueState& s : made->start(Initiator::cpu))
      taken_.rings += u64{s.commands.memory.slots} * cxi::kSlotBytes + s.events.memory.bytes;
    return made;
  }
  [[nodiscard]] u64 queue_bytes(Ends ends, const QueueShape& shape) const override {
    return inner_.queue_bytes(ends, shape);
  }
  [[nodiscard]] measure::StatusName status_names() const override { return inner_.status_names(); }

 private:
  cxi::CassiniPort inner_;
  Taken& taken_;
};

/// Whose queues: a provider's, or a Cassini's.
struct Whose {
  std::optional<Provider> provider;
};

std::vector<Whose> everybody() {
  std::vector<Whose> all = {Whose{}};
  for (const Provider p : vendors()) all.push_back({p});
  return all;
}

std::unique_ptr<Port> open_one(const Whose& whose, u32 queues, Taken* taken) {
  if (!whose.provider)
    return std::make_unique<CountingCassini>(PortRequest{.spec = "cxi-model0", .use = {.queues = queues}},
                                             taken);
  return std::make_unique<NicPort>(std::make_unique<CountingNic>(
      open_device({.spec = "model", .provider = *whose.provider, .use = {.queues = queues}}), taken));
}

class MemoryNeeded : public testing::TestWithParam<Whose> {};
INSTANTIATE_TEST_SUITE_P(Ports, MemoryNeeded, testing::ValuesIn(everybody()), [](const auto& p) {
  return p.param.provider ? std::string(name(*p.param.provider)) : "cxi";
});

void expect_needed(const Whose& whose, const SessionShape& shape) {
  Taken taken;
  const auto port = open_one(whose, 2 * shape.queues, &taken);
  const Session session(*port, nullptr, shape);
  const u64 queue_pairs = u64{shape.queues} * (shape.ends == Ends::pair ? 2 : 1);
  const u64 least =
      taken.buffers + taken.rings + shape.queues * OpScratch::bytes(shape.window, histogram::kBuckets);
  const u64 needed = memory_needed(shape, *port);
  EXPECT_GE(needed, least);
  // Pages of records and registers, rings that end within a page, an OpStats.
  EXPECT_LE(needed, least + queue_pairs * 9 * 4096);
}

TEST_P(MemoryNeeded, IsWhatASessionTakes) {
  SessionShape shape;
  for (const u32 bytes : {0u, 1000u, 65536u})
    for (const u32 window : {1u, 64u, 1000u}) {
      SCOPED_TRACE(testing::Message() << bytes << " bytes, window " << window);
      shape.bytes = bytes;
      shape.window = window;
      shape.one_offset = false;
      shape.queues = 1;
      expect_needed(GetParam(), shape);
      shape.queues = 3;
      shape.one_offset = true;
      expect_needed(GetParam(), shape);
    }
}

TEST_P(MemoryNeeded, OfEveryEndThatIsHere) {
  if (!GetParam().provider) GTEST_SKIP() << "every put of a Cassini comes back to its own endpoint";
  SessionShape shape;
  shape.bytes = 5000;
  shape.window = 32;
  for (const Ends ends : {Ends::self, Ends::pair, Ends::remote})
    for (const Role role : {Role::initiator, Role::responder})
      for (const u32 target_slots : {0u, 64u}) {
        SCOPED_TRACE(testing::Message() << "ends " << static_cast<u32>(ends) << ", role "
                                        << static_cast<u32>(role) << ", slots " << target_slots);
        if (ends != Ends::remote && role == Role::responder) continue;
        shape.ends = ends;
        shape.role = role;
        shape.target_slots = target_slots;
        expect_needed(GetParam(), shape);
      }
}

TEST(MemoryNeededOfACell, HasTheBuffersThatCopyingIsMeasuredWith) {
  BenchOptions o;
  o.sizes = {1 << 20};
  Taken taken;
  const auto port = open_one({Provider::mlx5}, 1, &taken);
  const CellSetup rate = set_up_cell(o, Part::rate, 1 << 20),
                  latency = set_up_cell(o, Part::latency, 1 << 20);
  ASSERT_TRUE(measures_ceiling(rate, *port));
  EXPECT_EQ(memory_needed(rate, *port), memory_needed(rate.shape, *port) + u64{2} * rate.window * rate.bytes);
  EXPECT_FALSE(measures_ceiling(latency, *port));
  EXPECT_EQ(memory_needed(latency, *port), memory_needed(latency.shape, *port));
}

TEST(MemoryNeededOfACell, LeavesOutWhatLiesInAGpuButNotItsMirror) {
  Taken taken;
  const auto port = open_one({Provider::mlx5}, 1, &taken);
  SessionShape shape;
  shape.bytes = 1 << 20;
  shape.window = 64;
  shape.local_memory = shape.remote_memory = shape.queue_memory = Place::gpu;
  shape.initiator = Initiator::gpu;
  EXPECT_LT(memory_needed(shape, *port), 1u << 20);
  shape.initiator = Initiator::cpu;
  EXPECT_GT(memory_needed(shape, *port), u64{2} * 64 << 20);
}

}  // namespace
}  // namespace doorbell::rdma
