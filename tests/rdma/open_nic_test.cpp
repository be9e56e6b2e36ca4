// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A NIC as other programs open and use it: the public headers only, over every vendor's queues.

#include <doorbell/rdma.hpp>
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "errors.hpp"

namespace doorbell::rdma {
namespace {

using test::error_of;
using test::expect_says;

constexpr OneLane lane;
constexpr u32 kBytes = 8192;
/// Longer than any machine pauses.
constexpr u64 kTimeoutNs = 60'000'000'000;

/// Memory of a NIC, registered for all operations.
struct Buffer {
  Buffer(Nic& nic, u8 fill)
      : region(nic.allocate(Place::pageable, kBytes)), memory(nic.register_memory(region, access::all)) {
    std::memset(region.host(), fill, kBytes);
  }
  [[nodiscard]] LocalAddress local() const { return {memory->iova(), memory->lkey()}; }
  [[nodiscard]] RemoteAddress remote() const { return {memory->iova(), memory->rkey()}; }
  Region region;
  std::unique_ptr<MemoryRegion> memory;
};

class OpenNic : public testing::TestWithParam<const char*> {};

TEST_P(OpenNic, PutsThroughConnectedQueuePairsAndThroughOneToItself) {
  const auto nic = open_nic({.device = "model", .provider = GetParam(), .queue_pairs = 2});
  EXPECT_EQ(nic->provider_name(), GetParam());
  EXPECT_EQ(nic->kind(), "model");
  const Buffer from(*nic, 0x5a), to(*nic, 0), back(*nic, 0);
  const auto one = nic->create_queue_pair({}), other = nic->create_queue_pair({}),
             own = nic->create_queue_pair({});
  connect(*one, *other);
  connect(*own, *own);
  EXPECT_EQ(one->state(), QpState::rts);
  EXPECT_EQ(other->state(), QpState::rts);
  EXPECT_EQ(own->state(), QpState::rts);
  const auto put = [&](QueuePairObject& object, const Buffer& target, const Buffer& source) {
    return with_format(nic->provider_name(), [&]<class Format>(Format) {
      const QueuePairState state = initial_state(object.memory(Initiator::cpu));
      const QueuePair<OneLane, Format> queue(state);
      RemoteOperations<OneLane, Format, NsClock> remote(queue, kTimeoutNs);
      return remote.put(lane, target.remote(), source.local(), kBytes);
    });
  };
  EXPECT_EQ(put(*one, to, from), Status::ok);
  EXPECT_EQ(std::memcmp(to.region.host(), from.region.host(), kBytes), 0);
  EXPECT_EQ(put(*own, back, to), Status::ok);
  EXPECT_EQ(std::memcmp(back.region.host(), from.region.host(), kBytes), 0);
  // The other end sends as well.
  std::memset(from.region.host(), 0x33, kBytes);
  EXPECT_EQ(put(*other, back, from), Status::ok);
  EXPECT_EQ(std::memcmp(back.region.host(), from.region.host(), kBytes), 0);
}

TEST_P(OpenNic, RefusesWhatTheKeyDoesNotAllow) {
  const auto nic = open_nic({.device = "model", .provider = GetParam()});
  const Buffer from(*nic, 1);
  const Region region = nic->allocate(Place::pageable, kBytes);
  const auto mine = nic->register_memory(region, access::local_write);
  const auto pair = nic->create_queue_pair({});
  connect(*pair, *pair);
  const Status status = with_format(nic->provider_name(), [&]<class Format>(Format) {
    const QueuePairState state = initial_state(pair->memory(Initiator::cpu));
    const QueuePair<OneLane, Format> queue(state);
    RemoteOperations<OneLane, Format, NsClock> remote(queue, kTimeoutNs);
    return remote.put(lane, {mine->iova(), mine->rkey()}, from.local(), 64);
  });
  EXPECT_EQ(status, Status::remote_access);
  EXPECT_EQ(region.host()[0], 0);
}

INSTANTIATE_TEST_SUITE_P(Vendors, OpenNic, testing::Values("mlx5", "bnxt", "ionic", "ernic"));

TEST(OpenNicErrors, NamesAreAsOnTheCommandLine) {
  EXPECT_EQ(open_nic()->name(), "model");
  EXPECT_EQ(open_nic({.device = "model:mtu=1024"})->limits().active_mtu, 1024u);
  expect_says(error_of([] { (void)open_nic({.device = "model", .provider = "acme"}); }), "one of mlx5, bnxt");
  expect_says(error_of([] { (void)open_nic({.device = "model:pace=1"}); }), "pace");
  expect_says(error_of([] { (void)open_nic({.device = "model", .provider = "verbs"}); }), "no libibverbs");
  expect_says(error_of([] { (void)open_nic({.initiator = Initiator::gpu}); }), "names none");
  expect_says(error_of([] { (void)open_nic({.gpu_memory = true}); }), "names none");
}

TEST(OpenNicErrors, OnlyVendorsHaveAFormat) {
  for (const std::string name : {"verbs", "", "mlx"})
    expect_says(error_of([&] { with_format(name, [](auto) {}); }), "no format");
}

}  // namespace
}  // namespace doorbell::rdma
