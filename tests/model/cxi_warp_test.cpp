// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The code that a GPU warp runs, by lanes that are threads, against the software Cassini: the loop of
// operations over a PutQueue.

#include <doorbell/rdma/op_loop.hpp>
#include <gtest/gtest.h>

#include <vector>

#include "cxi/rma_device.hpp"
#include "emulated_warp.hpp"
#include "rdma/session.hpp"
#include "system/clock.hpp"

namespace doorbell::cxi {
namespace {

struct Work {
  rdma::Op op = rdma::Op::write;
  u32 bytes = 64;
  u32 batch = 16;
  u32 window = 40;
  bool inlined = false;
  bool restricted = true;
};

template <u32 N>
void run_loop(const Work& w) {
  SCOPED_TRACE(testing::Message() << "lanes " << N << " op " << static_cast<u32>(w.op) << " bytes " << w.bytes
                                  << " batch " << w.batch << " window " << w.window
                                  << (w.inlined ? " in the command" : ""));
  const auto device = open_rma_device({.spec = "cxi-model0"});
  const u64 stride = rdma::slot_bytes(w.bytes);
  const Region near = device->allocate(Place::pageable, stride * w.window);
  const Region far = device->allocate(Place::pageable, stride * w.window);
  const auto local = device->register_memory(near, rdma::access::local_write);
  const auto remote = device->register_memory(far, rdma::access::all);
  const auto object =
      device->create_queue_pair({.sq_requests = w.window, .max_inline = w.inlined ? w.bytes : 0});

  rdma::OpPhase phase;
  phase.op = w.op;
  phase.verify = true;
  phase.inlined = w.inlined;
  phase.bytes = w.bytes;
  phase.batch = w.batch;
  phase.signal_every = w.batch;
  phase.window = w.window;
  phase.ns_per_tick_q24 = HostClock::ns_per_tick_q24();
  phase.timeout_ticks = HostClock::ticks(60);
  phase.late_ticks = HostClock::ticks(50);
  phase.check_ticks = HostClock::ticks(1e-4);
  rdma::OpQueue queue;
  queue.local = near.host();
  queue.remote = far.host();
  queue.local_iova = local->iova();
  queue.remote_iova = remote->iova();
  queue.lkey = local->lkey();
  queue.rkey = remote->rkey();
  queue.stride = stride;
  const u64 count = w.window == 1 ? 60 : 300;  // one at a time takes its time where lanes are threads
  queue.count = count;
  std::vector<u64> memory(rdma::OpScratch::bytes(w.window, histogram::kBuckets) / 8 + 1);
  const rdma::OpScratch scratch = rdma::carve_op_scratch(memory.data(), w.window, histogram::kBuckets);
  OpStats stats;
  rdma::OpState<PutQueueState> state = {put_state(*object, Initiator::cpu), {}, false};
  state.own.restricted = w.restricted;
  run_warp<N>([&](const auto& warp) {
    using Warp = std::decay_t<decltype(warp)>;
    rdma::OpLoop<Warp, HostClock, false, PutQueue<Warp>> loop(warp, phase, queue, state, scratch, &stats);
    while (loop.step(warp)) {
    }
    loop.finish(warp);
  });
  for (const auto& s : stats.statuses)
    if (s.count > 0) ADD_FAILURE() << s.count << " ended with code " << s.code - kStatusOfCode;
  EXPECT_EQ(stats.posted, count) << device->counters().dump();
  EXPECT_EQ(stats.succeeded, count);
  EXPECT_EQ(stats.checked, count);
  EXPECT_EQ(stats.failed + stats.timed_out + stats.late + stats.duplicated + stats.skipped + stats.protocol,
            0u);
  EXPECT_EQ(stats.corrupt + stats.misplaced + stats.stale + stats.missing, 0u);
}

TEST(CxiWarp, Puts) {
  run_loop<8>({.bytes = 0});
  run_loop<8>({.bytes = 600, .batch = 7});
  run_loop<32>({.bytes = 64, .batch = 33});
  run_loop<32>({.bytes = 64, .batch = 1, .window = 1});
}

TEST(CxiWarp, Gets) {
  run_loop<8>({.op = rdma::Op::read, .bytes = 33});
  run_loop<32>({.op = rdma::Op::read, .bytes = 2049, .batch = 20});
}

TEST(CxiWarp, Unrestricted) {
  run_loop<8>({.bytes = 600, .batch = 7, .restricted = false});
  run_loop<32>({.op = rdma::Op::read, .bytes = 64, .batch = 33, .restricted = false});
  run_loop<32>({.bytes = 64, .batch = 1, .window = 1, .restricted = false});
}

TEST(CxiWarp, DataInTheCommand) {
  run_loop<8>({.bytes = 17, .batch = 5, .inlined = true});
  run_loop<32>({.bytes = 224, .batch = 16, .inlined = true});
  run_loop<32>({.bytes = 8, .batch = 1, .window = 1, .inlined = true});
}

}  // namespace
}  // namespace doorbell::cxi
