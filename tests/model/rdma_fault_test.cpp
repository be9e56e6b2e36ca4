// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Faults of the NIC models in the results of `doorbell rdma`: each is found with its kind, and no other
// errors appear.

#include <gtest/gtest.h>

#include <string>

#include "rdma/bench.hpp"

namespace doorbell::rdma {
namespace {

using model::Fault;

BenchOptions usual(Provider provider, Fault fault, double probability) {
  BenchOptions o;
  o.provider = provider;
  o.sizes = {256};
  o.latency = false;
  o.iterations = 2000;
  o.batch = 4;
  o.signal_every = 1;
  o.timeout_s = 60;
  o.late_after_s = 50;
  o.faults.probability[static_cast<u32>(fault)] = probability;
  return o;
}

struct Outcome {
  BenchResult result;
  const report::Cell& cell() const { return result.cells.front(); }
  u64 injected(Fault f) const {
    return cell().extra.at("model").at("injected").at(std::string(name(f))).get<u64>();
  }
  u64 error(const char* kind) const { return cell().errors.at(kind); }
};

Outcome run(const BenchOptions& o) {
  return {run_bench(o, {})};
}

class Faults : public testing::TestWithParam<Provider> {};
INSTANTIATE_TEST_SUITE_P(Rdma, Faults,
                         testing::Values(Provider::mlx5, Provider::bnxt, Provider::ionic, Provider::ernic),
                         [](const auto& p) { return std::string(name(p.param)); });

TEST_P(Faults, CorruptPayloadsAreCounted) {
  for (const Op op : {Op::write, Op::read, Op::send}) {
    BenchOptions o = usual(GetParam(), Fault::corrupt, 0.02);
    o.op = op;
    const Outcome r = run(o);
    EXPECT_TRUE(r.result.failed);
    EXPECT_GT(r.injected(Fault::corrupt), 0u);
    EXPECT_EQ(r.cell().verify.corrupt, r.injected(Fault::corrupt)) << name(op);
    EXPECT_EQ(r.cell().verify.failed(), r.cell().verify.corrupt);
    EXPECT_EQ(r.error("completion"), 0u);
  }
}

TEST_P(Faults, AcknowledgedButNotDone) {
  for (const u32 bytes : {16u, 256u, 4096u}) {
    BenchOptions o = usual(GetParam(), Fault::stale, 0.02);
    o.sizes = {bytes};
    const Outcome r = run(o);
    EXPECT_TRUE(r.result.failed);
    EXPECT_GT(r.injected(Fault::stale), 0u);
    // The target was marked before the post: what was never written still has the mark.
    EXPECT_EQ(r.cell().verify.missing + r.cell().verify.stale, r.injected(Fault::stale)) << bytes;
  }
}

TEST_P(Faults, DataAtAnotherPlace) {
  BenchOptions o = usual(GetParam(), Fault::misplace, 0.01);
  o.sizes = {1024};
  const Outcome r = run(o);
  EXPECT_TRUE(r.result.failed);
  EXPECT_GT(r.injected(Fault::misplace), 0u);
  // Each leaves a hole, and may spoil a neighbour.
  EXPECT_GE(r.cell().verify.failed(), r.injected(Fault::misplace));
}

TEST_P(Faults, ErrorStatusStopsTheQueuePairAndTheNextRepeatRecovers) {
  BenchOptions o = usual(GetParam(), Fault::error, 0.01);
  o.repeats = 3;
  const Outcome r = run(o);
  EXPECT_TRUE(r.result.failed);
  EXPECT_GT(r.injected(Fault::error), 0u);
  EXPECT_EQ(r.cell().repeats.size(), 3u);
  const auto& statuses = r.cell().extra.at("rdma").at("completion_statuses");
  EXPECT_EQ(statuses.at("remote operation error").get<u64>(), r.injected(Fault::error)) << statuses.dump();
  // What was behind it came back flushed, and everything posted is accounted for.
  EXPECT_GT(r.error("completion"), 0u);
  EXPECT_EQ(r.error("identity"), 0u);
  EXPECT_EQ(r.error("timeout"), 0u);
}

TEST_P(Faults, TwoCompletionsForOne) {
  const Outcome r = run(usual(GetParam(), Fault::duplicate, 0.02));
  EXPECT_TRUE(r.result.failed);
  EXPECT_GT(r.injected(Fault::duplicate), 0u);
  EXPECT_EQ(r.cell().verify.duplicated, r.injected(Fault::duplicate));
}

TEST_P(Faults, LostCompletions) {
  BenchOptions o = usual(GetParam(), Fault::drop, 0.01);
  o.timeout_s = 1;
  const Outcome r = run(o);
  EXPECT_TRUE(r.result.failed);
  EXPECT_GT(r.injected(Fault::drop), 0u);
  // A later completion covers a lost one, but not unnoticed; one that nothing follows is a time-out.
  EXPECT_GE(r.error("skipped") + r.error("timeout"), r.injected(Fault::drop));
}

TEST_P(Faults, LateCompletions) {
  BenchOptions o = usual(GetParam(), Fault::delay, 0.005);
  o.iterations = 400;
  o.late_after_s = 0.05;
  o.device = "model:delay=0.1";
  const Outcome r = run(o);
  EXPECT_TRUE(r.result.failed);
  EXPECT_GT(r.injected(Fault::delay), 0u);
  EXPECT_GE(r.error("late"), r.injected(Fault::delay));
  EXPECT_EQ(r.error("timeout"), 0u);
}

TEST_P(Faults, HeldBackIsLegal) {
  BenchOptions o = usual(GetParam(), Fault::reorder, 0.02);
  o.queues = 3;
  const Outcome r = run(o);
  EXPECT_FALSE(r.result.failed);
  EXPECT_GT(r.injected(Fault::reorder), 0u);
}

TEST_P(Faults, TheDeviceGoesAway) {
  const Outcome r = run(usual(GetParam(), Fault::removal, 0.01));
  EXPECT_TRUE(r.result.failed);
  EXPECT_EQ(r.result.stop_reason, "removed");
  EXPECT_EQ(r.error("removal"), 1u);
  EXPECT_EQ(r.injected(Fault::removal), 1u);
  EXPECT_EQ(r.error("identity"), 0u);
}

}  // namespace
}  // namespace doorbell::rdma
