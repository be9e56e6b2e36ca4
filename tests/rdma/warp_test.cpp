// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The code that a GPU warp runs, with threads as lanes, on the NIC models: queue pairs, the loop of
// operations, and the library's calls (put, get, send, atomics).

#include <doorbell/error.hpp>
#include <doorbell/rdma/remote_operations.hpp>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "emulated_warp.hpp"
#include "formats.hpp"
#include "measure/check_memory.hpp"
#include "rdma/backends.hpp"
#include "rdma/nic_port.hpp"
#include "rma/op_loop.hpp"
#include "rma/session.hpp"
#include "system/clock.hpp"

namespace doorbell::rdma {
namespace {

std::unique_ptr<NicDevice> open_one(Provider provider) {
  return open_device({.spec = "model", .provider = provider, .use = {.queues = 2}});
}

template <class Format>
class Warps : public testing::Test {};
TYPED_TEST_SUITE(Warps, Formats);

template <u32 N, class Format>
void run_loop(Op op, u32 bytes, Ends ends, u32 batch, u32 signal_every, bool inlined, u32 window = 40,
              u64 count = 100) {
  SCOPED_TRACE(testing::Message() << Format::kName << " lanes " << N << " op " << static_cast<u32>(op)
                                  << " bytes " << bytes << " batch " << batch << (inlined ? " inlined" : ""));
  const auto device = open_one(provider_of<Format>());
  SessionShape shape;
  shape.ends = ends;
  shape.window = window;
  shape.bytes = bytes;
  shape.max_inline = inlined ? bytes : 0;
  NicPort port(*device);
  Session session(port, nullptr, shape);
  OpPhase phase;
  phase.op = op;
  phase.verify = true;
  phase.inlined = inlined;
  phase.bytes = bytes;
  phase.batch = batch;
  phase.window = window;
  phase.signal_every = signal_every;
  phase.ns_per_tick_q24 = HostClock::ns_per_tick_q24();
  phase.timeout_ticks = HostClock::ticks(60);
  phase.late_ticks = HostClock::ticks(50);
  phase.check_ticks = HostClock::ticks(1e-4);
  OpQueue queue = session.queues().front();
  queue.count = count;
  measure::CheckMemory checks(window, 0);
  queue.checks = checks.next_phase(bytes);
  const auto state = direct_states(port.queues().ends(), Initiator::cpu).front();
  std::vector<u64> memory(OpScratch::bytes(window, histogram::kBuckets) / 8 + 1);
  const OpScratch scratch = carve_op_scratch(memory.data(), window, histogram::kBuckets);
  OpStats stats;
  collective<N>([&](const auto& warp) {
    using Warp = std::decay_t<decltype(warp)>;
    OpLoop<Warp, HostClock, false, QueuePair<Warp, Format>> loop(warp, phase, queue, state, scratch, &stats);
    while (loop.step(warp)) {
    }
    loop.finish(warp);
  });
  EXPECT_EQ(stats.posted, count);
  EXPECT_EQ(stats.succeeded, count);
  EXPECT_EQ(stats.failed + stats.timed_out + stats.late + stats.duplicated + stats.skipped + stats.protocol,
            0u);
  EXPECT_EQ(stats.corrupt + stats.misplaced + stats.stale + stats.missing, 0u);
  EXPECT_GE(stats.checked, count);
}

TYPED_TEST(Warps, TheLoopOfOperations) {
  for (const Op op : {Op::write, Op::write_imm, Op::read, Op::send, Op::fetch_add, Op::compare_swap})
    for (const u32 bytes : {0u, 1u, 33u, 600u}) {
      if (is_atomic(op) && bytes != 1) continue;
      run_loop<8, TypeParam>(op, is_atomic(op) ? kAtomicBytes : bytes, Ends::self, 16, 16, false);
    }
  run_loop<32, TypeParam>(Op::write, 64, Ends::pair, 32, 5, false);
  run_loop<32, TypeParam>(Op::write_imm, 64, Ends::pair, 33, 1, false);
  run_loop<32, TypeParam>(Op::fetch_add, kAtomicBytes, Ends::self, 20, 20, false);
  if (TypeParam::kMaxInline > 0) {
    run_loop<8, TypeParam>(Op::write, 29, Ends::self, 7, 7, true);
    run_loop<32, TypeParam>(Op::send, 17, Ends::pair, 11, 11, true);
  }
}

/// More of them than a completion queue has entries: a warp loads a single entry before it knows that it is
/// there.
TYPED_TEST(Warps, SingleOperations) {
  run_loop<8, TypeParam>(Op::write, 64, Ends::self, 1, 1, false, 1, 400);
  run_loop<8, TypeParam>(Op::send, 33, Ends::pair, 1, 1, false, 1, 300);
}

/// Two buffers that a queue pair, connected to itself, may use.
template <class Format>
struct Rig {
  std::unique_ptr<NicDevice> device = open_one(provider_of<Format>());
  NicPort port{*device};
  Session session{port, nullptr, shape()};
  static SessionShape shape() {
    SessionShape s;
    s.window = 64;
    s.bytes = 4096;
    return s;
  }
  OpQueue q = session.queues().front();
  QueuePairState state = direct_states(port.queues().ends(), Initiator::cpu).front().own;
  u64 timeout = HostClock::ticks(60);

  template <class Warp>
  using Library = RemoteOperations<Warp, Format, HostClock>;
  LocalAddress local(u64 offset) const { return {q.local_iova + offset, q.lkey}; }
  RemoteAddress remote(u64 offset) const { return {q.remote_iova + offset, q.rkey}; }
};

template <u32 N, class Format>
void check_library() {
  Rig<Format> rig;
  for (u32 i = 0; i < 4096; ++i) rig.q.local[i] = static_cast<u8>(i * 7);
  u64 counter = 100;
  std::memcpy(rig.q.remote + 8192, &counter, sizeof counter);
  u32 received_imm = 0;
  u32 received_bytes = ~0u;
  collective<N>([&](const auto& warp) {
    using Warp = std::decay_t<decltype(warp)>;
    using Queue = QueuePair<Warp, Format>;
    typename Rig<Format>::template Library<Warp> rma(Queue(rig.state), rig.timeout);
    EXPECT_EQ(rma.put(warp, rig.remote(0), rig.local(0), 4096), Status::ok);
    // Each lane its own 16 bytes, in the opposite order; every third lane has nothing to put.
    const u32 lane = warp.lane();
    const bool wanted = lane % 3 != 2;
    const Ticket t =
        rma.put_nbi_lanes(warp, wanted, rig.remote(4096 + 16 * lane), rig.local(16 * (N - 1 - lane)), 16);
    EXPECT_EQ(rma.wait(warp, t), Status::ok);
    rma.get_nbi(warp, rig.local(4096), rig.remote(0), 777);
    rma.atomic_fetch_add(warp, rig.local(8192), rig.remote(8192), 5);
    rma.atomic_compare_swap(warp, rig.local(8256), rig.remote(8192), 105, 42);
    rma.atomic_compare_swap(warp, rig.local(8320), rig.remote(8192), 105, 43);
    EXPECT_EQ(rma.quiet(warp), Status::ok);
    EXPECT_TRUE(rma.post_recv(warp, {}, 0));
    rma.put_nbi_imm(warp, rig.remote(16384), rig.local(0), 100, 0xabcd1234);
    const auto r = rma.wait_recv(warp);
    EXPECT_EQ(r.status, Status::ok);
    EXPECT_TRUE(r.with_imm);
    EXPECT_TRUE(rma.post_recv(warp, {rig.q.remote_iova + 20480, rig.q.receive_lkey}, 64));
    rma.send(warp, rig.local(64), 64);
    const auto s = rma.wait_recv(warp);
    EXPECT_EQ(s.bytes, 64u);
    EXPECT_EQ(rma.quiet(warp), Status::ok);
    if (lane == 0) {
      received_imm = r.imm;
      received_bytes = r.bytes;
    }
  });
  EXPECT_EQ(received_imm, 0xabcd1234u);
  EXPECT_EQ(received_bytes, 100u);
  const u8* from = rig.q.local;
  const u8* to = rig.q.remote;
  EXPECT_EQ(std::memcmp(from, to, 4096), 0);
  for (u32 lane = 0; lane < N; ++lane) {
    const bool same = std::memcmp(to + 4096 + 16 * lane, from + 16 * (N - 1 - lane), 16) == 0;
    EXPECT_EQ(same, lane % 3 != 2) << lane;
  }
  EXPECT_EQ(std::memcmp(from + 4096, to, 777), 0);
  EXPECT_EQ(std::memcmp(from, to + 16384, 100), 0);
  EXPECT_EQ(std::memcmp(from + 64, to + 20480, 64), 0);
  u64 old[3];
  for (u32 i = 0; i < 3; ++i) std::memcpy(&old[i], from + 8192 + 64 * i, 8);
  EXPECT_EQ(old[0], 100u);
  EXPECT_EQ(old[1], 105u);
  EXPECT_EQ(old[2], 42u);
  std::memcpy(&counter, to + 8192, 8);
  EXPECT_EQ(counter, 42u);
}

TYPED_TEST(Warps, TheCallsOfTheLibrary) {
  check_library<1, TypeParam>();
  check_library<32, TypeParam>();
}

TYPED_TEST(Warps, AFailedPutIsAStatusAndNotAHang) {
  Rig<TypeParam> rig;
  collective<32>([&](const auto& warp) {
    using Warp = std::decay_t<decltype(warp)>;
    using Queue = QueuePair<Warp, TypeParam>;
    typename Rig<TypeParam>::template Library<Warp> rma(Queue(rig.state), rig.timeout);
    EXPECT_EQ(rma.put(warp, {rig.q.remote_iova, rig.q.rkey + 0x1000}, rig.local(0), 64),
              Status::remote_access);
    // The queue pair takes no more, and says so at once.
    EXPECT_EQ(rma.put(warp, rig.remote(0), rig.local(0), 64), Status::remote_access);
    EXPECT_EQ(rma.quiet(warp), Status::remote_access);
  });
}

TYPED_TEST(Warps, AWaitHasADeadline) {
  Rig<TypeParam> rig;
  collective<32>([&](const auto& warp) {
    using Warp = std::decay_t<decltype(warp)>;
    using Queue = QueuePair<Warp, TypeParam>;
    typename Rig<TypeParam>::template Library<Warp> rma(Queue(rig.state), HostClock::ticks(0.05));
    EXPECT_EQ(rma.wait_recv(warp).status, Status::response_timeout);
  });
}

}  // namespace
}  // namespace doorbell::rdma
