// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A Cassini as other programs open and use it: the public headers only.

#include <doorbell/cxi.hpp>
#include <gtest/gtest.h>

#include <cstring>

#include "errors.hpp"
#include "system/clock.hpp"

namespace doorbell::cxi {
namespace {

using test::error_of;
using test::expect_says;

constexpr OneLane lane;
constexpr u32 kBytes = 8192;
/// Longer than any machine pauses.
constexpr u64 kTimeoutNs = 60'000'000'000;

/// The status of one operation; rma::Status::response_timeout without an answer.
rma::Status run(PutQueue<OneLane>& queue, const rma::WorkRequest& request) {
  queue.post(lane, 1, [&](u32) { return request; });
  (void)queue.ring(lane);
  const u64 end = wall_ns() + kTimeoutNs;
  while (wall_ns() < end)
    if (const auto done = queue.poll(lane); done.count > 0) return done.mine.status;
  return rma::Status::response_timeout;
}

TEST(OpenCassini, PutsAndGetsThroughAPutQueue) {
  for (const bool restricted : {true, false}) {
    SCOPED_TRACE(restricted);
    const auto nic = open_cassini();
    EXPECT_EQ(nic->name(), "cxi-model0");
    EXPECT_EQ(nic->kind(), "model");
    const auto endpoint = nic->open();
    const Region near = nic->allocate(Place::pageable, kBytes), far = nic->allocate(Place::pageable, kBytes);
    const auto here = endpoint->map(near, Access::read_write), there = endpoint->map(far, Access::read_write);
    PortalsTable table(*endpoint);
    const auto exposed = table.expose(*there);
    PutQueueObject object(*endpoint, {.requests = 4, .restricted = restricted});
    // The second queue is a new one: the first one's counts are not its own.
    for (u8 round = 1; round < 3; ++round) {
      PutQueue<OneLane> queue(object.start(Initiator::cpu, endpoint->address()));
      std::memset(near.host(), round, kBytes);
      const rma::WorkRequest put{
          .bytes = kBytes, .local = here->iova(), .lkey = here->lac(), .rkey = exposed->offset()};
      EXPECT_EQ(run(queue, put), rma::Status::ok);
      EXPECT_EQ(std::memcmp(near.host(), far.host(), kBytes), 0);
      std::memset(near.host(), 0, kBytes);
      rma::WorkRequest get = put;
      get.op = rma::Op::read;
      EXPECT_EQ(run(queue, get), rma::Status::ok);
      EXPECT_EQ(near.host()[kBytes - 1], round);
    }
  }
}

TEST(OpenCassini, APutWithoutAnEntryIsRefused) {
  const auto nic = open_cassini({.device = "cxi-model3"});
  const auto endpoint = nic->open();
  const Region near = nic->allocate(Place::pageable, kBytes);
  const auto here = endpoint->map(near, Access::read);
  PutQueueObject object(*endpoint, {.requests = 4});
  PutQueue<OneLane> queue(object.start(Initiator::cpu, endpoint->address()));
  const rma::WorkRequest put{.bytes = 64, .local = here->iova(), .lkey = here->lac(), .rkey = 5};
  EXPECT_GT(static_cast<u32>(run(queue, put)), kStatusOfCode);
}

TEST(OpenCassini, CommandAndEventQueuesOfAProgramsOwn) {
  const auto nic = open_cassini();
  const auto endpoint = nic->open();
  const auto events = endpoint->create_event_queue(4096, Place::pageable);
  const auto counter = endpoint->create_counter(/*writeback*/ true, Place::pageable);
  const auto commands = endpoint->create_command_queue(
      {.kind = CommandQueueKind::triggered, .slots = 64, .events = events.get()});
  const Counter count(counter->memory(Initiator::cpu));
  EventQueue<OneLane> arrived(initial_state(*events, Initiator::cpu));
  CommandQueue<OneLane> queue(initial_state(*commands, Initiator::cpu));
  ASSERT_TRUE(queue.post(lane, CounterCommand::trig_event(count.index(), /*threshold*/ 2, arrived.index())));
  ASSERT_TRUE(queue.post(lane, CounterCommand::increment(count.index(), 2)));
  (void)queue.ring(lane);
  const u64 end = wall_ns() + kTimeoutNs;
  auto event = arrived.poll(lane);
  while (event.bytes == 0 && wall_ns() < end) event = arrived.poll(lane);
  EXPECT_EQ(event.type, EventType::triggered_op);
}

TEST(OpenCassini, NamesAreAsOnTheCommandLine) {
  EXPECT_EQ(open_cassini({.device = "model:latency=1us"})->name(), "cxi-model0:latency=1us");
  expect_says(error_of([] { (void)open_cassini({.device = "cxi-model0:pace=1"}); }), "pace");
  expect_says(error_of([] { (void)open_cassini({.device = "sofa"}); }, ExitCode::absent), "cxi-model0");
  expect_says(error_of([] { (void)open_cassini({.initiator = Initiator::gpu}); }), "names none");
  expect_says(error_of([] { (void)open_cassini({.gpu_memory = true}); }), "names none");
}

}  // namespace
}  // namespace doorbell::cxi
