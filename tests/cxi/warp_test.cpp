// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The code that a GPU warp runs, with threads as lanes, on the software Cassini: the loop of operations over
// a PutQueue.

#include <gtest/gtest.h>

#include <vector>

#include "cxi/port.hpp"
#include "emulated_warp.hpp"
#include "measure/check_memory.hpp"
#include "rma/op_loop.hpp"
#include "rma/session.hpp"
#include "system/clock.hpp"

namespace doorbell::cxi {
namespace {

struct Work {
  rma::Op op = rma::Op::write;
  u32 bytes = 64;
  u32 batch = 16;
  u32 window = 40;
  bool inlined = false;
  bool restricted = true;
  const char* device = "cxi-model0";
};

template <u32 N>
void run_loop(const Work& w) {
  SCOPED_TRACE(testing::Message() << "lanes " << N << " op " << static_cast<u32>(w.op) << " bytes " << w.bytes
                                  << " batch " << w.batch << " window " << w.window
                                  << (w.inlined ? " in the command " : " ") << w.device);
  CassiniPort port({.spec = w.device}, w.restricted);
  const u64 stride = rma::slot_bytes(w.bytes);
  const Region near = port.allocate(Place::pageable, stride * w.window);
  const Region far = port.allocate(Place::pageable, stride * w.window);
  const auto local = port.register_memory(near, rma::Reach::own);
  const auto remote = port.register_memory(far, rma::Reach::others);
  const auto queues =
      port.create_put_queues(1, {.requests = w.window, .max_inline = w.inlined ? w.bytes : 0});

  rma::OpPhase phase;
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
  rma::OpQueue queue;
  queue.local = near.host();
  queue.remote = far.host();
  queue.local_iova = local->iova();
  queue.remote_iova = remote->iova();
  queue.lkey = local->lkey();
  queue.rkey = remote->rkey();
  queue.stride = stride;
  const u64 count = w.window == 1 ? 60 : 300;  // one at a time takes its time where lanes are threads
  queue.count = count;
  measure::CheckMemory checks(w.window, 0);
  queue.checks = checks.next_phase(w.bytes);
  std::vector<u64> memory(rma::OpScratch::bytes(w.window, histogram::kBuckets) / 8 + 1);
  const rma::OpScratch scratch = rma::carve_op_scratch(memory.data(), w.window, histogram::kBuckets);
  OpStats stats;
  rma::OpState<PutQueueState> state = {queues->start(Initiator::cpu).front(), {}, false};
  run_warp<N>([&](const auto& warp) {
    using Warp = std::decay_t<decltype(warp)>;
    rma::OpLoop<Warp, HostClock, false, PutQueue<Warp>> loop(warp, phase, queue, state, scratch, &stats);
    while (loop.step(warp)) {
    }
    loop.finish(warp);
  });
  for (const auto& s : stats.statuses)
    if (s.count > 0) ADD_FAILURE() << s.count << " ended with code " << s.code - kStatusOfCode;
  EXPECT_EQ(stats.posted, count) << port.counters().dump();
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
  run_loop<8>({.op = rma::Op::read, .bytes = 33});
  run_loop<32>({.op = rma::Op::read, .bytes = 2049, .batch = 20});
}

TEST(CxiWarp, Unrestricted) {
  run_loop<8>({.bytes = 600, .batch = 7, .restricted = false});
  run_loop<32>({.op = rma::Op::read, .bytes = 64, .batch = 33, .restricted = false});
  run_loop<32>({.bytes = 64, .batch = 1, .window = 1, .restricted = false});
}

TEST(CxiWarp, DataInTheCommand) {
  run_loop<8>({.bytes = 17, .batch = 5, .inlined = true});
  run_loop<32>({.bytes = 224, .batch = 16, .inlined = true});
  run_loop<32>({.bytes = 8, .batch = 1, .window = 1, .inlined = true});
}

TEST(CxiWarp, CountsOnRequest) {
  constexpr const char* kAsked = "cxi-model0:write-back=on-request";
  run_loop<8>({.bytes = 600, .batch = 7, .device = kAsked});
  run_loop<32>({.op = rma::Op::read, .bytes = 64, .batch = 33, .restricted = false, .device = kAsked});
  run_loop<32>({.bytes = 8, .batch = 1, .window = 1, .inlined = true, .device = kAsked});
}

}  // namespace
}  // namespace doorbell::cxi
