// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Faults of the NIC models in the results of `doorbell rdma`: each is found with its kind, and no other
// errors appear.

#include <gtest/gtest.h>

#include "formats.hpp"
#include "model/faults.hpp"
#include "rdma/bench.hpp"

namespace doorbell::rdma {
namespace {

using model::Fault;

BenchOptions usual(Provider provider, Fault fault, double probability) {
  BenchOptions o;
  o.device = tested();
  o.provider = provider;
  o.sizes = {256};
  o.latency = false;
  o.iterations = 2000;
  o.batch = 4;
  o.signal_every = 1;
  o.faults = only(fault, probability);
  return never_late(o);
}

class Faults : public testing::TestWithParam<Provider> {};
INSTANTIATE_TEST_SUITE_P(Rdma, Faults, testing::ValuesIn(vendors()), provider_name);

TEST_P(Faults, CorruptPayloadsAreCounted) {
  for (const Op op : {Op::write, Op::read, Op::send}) {
    BenchOptions o = usual(GetParam(), Fault::corrupt, 0.02);
    o.op = op;
    const BenchResult r = run_bench(o, {});
    EXPECT_TRUE(r.failed);
    EXPECT_GT(injected(r, Fault::corrupt), 0u);
    EXPECT_EQ(r.cell().verify.corrupt, injected(r, Fault::corrupt)) << name(op);
    EXPECT_EQ(r.cell().verify.failed(), r.cell().verify.corrupt);
    EXPECT_EQ(errors(r, "completion"), 0u);
  }
}

TEST_P(Faults, AcknowledgedButNotDone) {
  for (const auto& [bytes, check_threads] :
       {std::pair(16u, 0u), {256u, 0u}, {4096u, 0u}, {16u, 2u}, {256u, 1u}, {100'000u, 3u}}) {
    BenchOptions o = usual(GetParam(), Fault::stale, 0.02);
    o.sizes = {bytes};
    o.check_threads = check_threads;
    if (bytes > 4096) o.iterations = 300;
    const BenchResult r = run_bench(o, {});
    EXPECT_TRUE(r.failed);
    EXPECT_GT(injected(r, Fault::stale), 0u);
    // The target was marked before the post: what was never written still has the mark.
    EXPECT_EQ(r.cell().verify.missing + r.cell().verify.stale, injected(r, Fault::stale)) << bytes;
  }
}

TEST_P(Faults, DataAtAnotherPlace) {
  BenchOptions o = usual(GetParam(), Fault::misplace, 0.01);
  o.sizes = {1024};
  const BenchResult r = run_bench(o, {});
  EXPECT_TRUE(r.failed);
  EXPECT_GT(injected(r, Fault::misplace), 0u);
  // Each leaves a hole, and may spoil a neighbour.
  EXPECT_GE(r.cell().verify.failed(), injected(r, Fault::misplace));
}

TEST_P(Faults, ErrorStatusStopsTheQueuePairAndTheNextRepeatRecovers) {
  BenchOptions o = usual(GetParam(), Fault::error, 0.01);
  o.repeats = 3;
  const BenchResult r = run_bench(o, {});
  EXPECT_TRUE(r.failed);
  EXPECT_GT(injected(r, Fault::error), 0u);
  EXPECT_EQ(r.cell().repeats.size(), 3u);
  const auto& statuses = r.cell().extra.at("rdma").at("completion_statuses");
  EXPECT_EQ(statuses.at("remote operation error").get<u64>(), injected(r, Fault::error)) << statuses.dump();
  // Requests behind the failed one came back flushed, and everything posted is accounted for.
  EXPECT_GT(errors(r, "completion"), 0u);
  EXPECT_EQ(errors(r, "identity"), 0u);
  EXPECT_EQ(errors(r, "timeout"), 0u);
}

/// Queue pairs that have not failed have completions of the repeat before, which are none of the next one's.
TEST_P(Faults, AfterAnErrorEveryQueuePairBeginsAgain) {
  BenchOptions o = usual(GetParam(), Fault::error, 0.002);
  o.queues = 3;
  o.repeats = 4;
  o.iterations = 300;
  const BenchResult r = run_bench(o, {});
  EXPECT_GT(injected(r, Fault::error), 0u);
  EXPECT_EQ(r.cell().verify.failed(), 0u);
  for (const char* kind : {"timeout", "protocol", "identity", "skipped"})
    EXPECT_EQ(errors(r, kind), 0u) << kind;
}

TEST_P(Faults, TwoCompletionsForOne) {
  const BenchResult r = run_bench(usual(GetParam(), Fault::duplicate, 0.02), {});
  EXPECT_TRUE(r.failed);
  EXPECT_GT(injected(r, Fault::duplicate), 0u);
  EXPECT_EQ(r.cell().verify.duplicated, injected(r, Fault::duplicate));
}

TEST_P(Faults, LostCompletions) {
  BenchOptions o = usual(GetParam(), Fault::drop, 0.01);
  o.timeout_s = 1;
  const BenchResult r = run_bench(o, {});
  EXPECT_TRUE(r.failed);
  EXPECT_GT(injected(r, Fault::drop), 0u);
  // A later completion covers a lost one, but not unnoticed; one that nothing follows is a time-out.
  EXPECT_GE(errors(r, "skipped") + errors(r, "timeout"), injected(r, Fault::drop));
}

TEST_P(Faults, LateCompletions) {
  BenchOptions o = usual(GetParam(), Fault::delay, 0.005);
  o.iterations = 400;
  o.late_after_s = 0.05;
  o.device = tested("model:delay=0.1");
  const BenchResult r = run_bench(o, {});
  EXPECT_TRUE(r.failed);
  EXPECT_GT(injected(r, Fault::delay), 0u);
  EXPECT_GE(errors(r, "late"), injected(r, Fault::delay));
  EXPECT_EQ(errors(r, "timeout"), 0u);
}

TEST_P(Faults, HeldBackIsLegal) {
  BenchOptions o = usual(GetParam(), Fault::reorder, 0.02);
  o.queues = 3;
  const BenchResult r = run_bench(o, {});
  EXPECT_FALSE(r.failed);
  EXPECT_GT(injected(r, Fault::reorder), 0u);
}

TEST_P(Faults, TheDeviceGoesAway) {
  const BenchResult r = run_bench(usual(GetParam(), Fault::removal, 0.01), {});
  EXPECT_TRUE(r.failed);
  EXPECT_EQ(r.stop_reason, StopReason::removed);
  EXPECT_EQ(errors(r, "removal"), 1u);
  EXPECT_EQ(injected(r, Fault::removal), 1u);
  EXPECT_EQ(errors(r, "identity"), 0u);
}

}  // namespace
}  // namespace doorbell::rdma
