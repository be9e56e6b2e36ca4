// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// RoCE streams over a NIC that injects faults: each is counted or breaks the connection, and none makes an
// end wait for ever.

#include "rma/names.hpp"
#include "roce_run.hpp"

namespace doorbell::net {
namespace {

using model::Fault;
using test::eventually;

class RoceFaults : public testing::TestWithParam<rdma::Provider> {
 protected:
  [[nodiscard]] StreamRequest request() const { return small_request(std::string(rdma::name(GetParam()))); }
  static constexpr u64 kCount = 400;
};

TEST_P(RoceFaults, CompletionsThatAreMissingAreCounted) {
  // The seed spares the last completion, without which the connection would count as broken.
  RoceRun run(request(), kCount, only(Fault::drop, 0.1));
  ASSERT_TRUE(run.run());
  EXPECT_EQ(run.receivers[0].got.messages, kCount);
  EXPECT_EQ(run.receivers[0].got.changed, 0u);
  EXPECT_GT(run.injected(Fault::drop), 0u);
  EXPECT_EQ(run.fact("completions_skipped"), run.injected(Fault::drop));
  EXPECT_FALSE(run.stream->tx[0]->broken());
}

TEST_P(RoceFaults, NoCompletionAtAllBreaksTheConnection) {
  StreamRequest r = request();
  r.timeout_s = 0.1;
  RoceRun run(r, kCount, only(Fault::drop));
  ASSERT_TRUE(run.run());
  EXPECT_TRUE(run.stream->tx[0]->broken());
  EXPECT_EQ(run.stream->tx[0]->completed(), 0u);
  EXPECT_EQ(run.senders[0].sent, run.fact("window"));
  EXPECT_LE(run.receivers[0].got.messages, run.senders[0].sent);
  EXPECT_EQ(run.fact("timed_out"), 1u);
  EXPECT_EQ(run.fact("broken_senders"), 1u);
  EXPECT_EQ(run.fact("broken_receivers"), 1u);
}

TEST_P(RoceFaults, ChangedBytesReachTheReceiver) {
  RoceRun run(request(), kCount, only(Fault::corrupt, 0.05));
  ASSERT_TRUE(run.run());
  EXPECT_EQ(run.receivers[0].got.messages, kCount);
  EXPECT_GT(run.injected(Fault::corrupt), 0u);
  EXPECT_EQ(run.receivers[0].got.changed, run.injected(Fault::corrupt));
}

TEST_P(RoceFaults, MessagesThatWereNotWrittenReachTheReceiver) {
  RoceRun run(request(), kCount, only(Fault::stale, 0.05));
  ASSERT_TRUE(run.run());
  EXPECT_EQ(run.receivers[0].got.messages, kCount);
  EXPECT_GT(run.injected(Fault::stale), 0u);
  EXPECT_EQ(run.receivers[0].got.changed, run.injected(Fault::stale));
}

TEST_P(RoceFaults, MessagesInOtherBuffersReachTheReceiver) {
  RoceRun run(request(), kCount, only(Fault::misplace, 0.05));
  ASSERT_TRUE(run.run());
  EXPECT_EQ(run.receivers[0].got.messages, kCount);
  EXPECT_GT(run.injected(Fault::misplace), 0u);
  EXPECT_GE(run.receivers[0].got.changed, run.injected(Fault::misplace));
}

TEST_P(RoceFaults, CompletionsThatComeTwiceAreCounted) {
  RoceRun run(request(), kCount, only(Fault::duplicate, 0.1));
  ASSERT_TRUE(run.run());
  EXPECT_EQ(run.receivers[0].got.messages, kCount);
  EXPECT_EQ(run.receivers[0].got.changed, 0u);
  EXPECT_GT(run.injected(Fault::duplicate), 0u);
  EXPECT_TRUE(eventually([&] {
    (void)run.stream->tx[0]->completed();
    return run.fact("completions_duplicated") == run.injected(Fault::duplicate);
  })) << run.fact("completions_duplicated")
      << " of " << run.injected(Fault::duplicate);
}

TEST_P(RoceFaults, AnErrorBreaksBothEnds) {
  RoceRun run(request(), kCount, only(Fault::error, 0.02));
  ASSERT_TRUE(run.run());
  EXPECT_TRUE(run.stream->tx[0]->broken());
  EXPECT_LT(run.receivers[0].got.messages, kCount);
  EXPECT_EQ(run.receivers[0].got.messages, run.stream->tx[0]->completed());
  EXPECT_EQ(run.receivers[0].got.changed, 0u);
  EXPECT_EQ(run.injected(Fault::error), 1u);
  const auto facts = run.stream->facts();
  EXPECT_EQ(facts.at("broken_senders"), 1);
  EXPECT_EQ(facts.at("broken_receivers"), 1);
  EXPECT_EQ(facts.at("send_errors").at(rma::status_name(static_cast<u16>(rma::Status::remote_operation))), 1);
  EXPECT_GE(facts.at("receive_errors").at(rma::status_name(static_cast<u16>(rma::Status::flushed))), 1);
}

TEST_P(RoceFaults, ADeviceThatGoesAwayBreaksBothEnds) {
  RoceRun run(request(), kCount, only(Fault::removal, 0.02));
  ASSERT_TRUE(run.run());
  EXPECT_TRUE(run.stream->tx[0]->broken());
  EXPECT_LT(run.receivers[0].got.messages, kCount);
  EXPECT_EQ(run.receivers[0].got.changed, 0u);
  EXPECT_TRUE(run.stream->facts().at("removed").get<bool>());
}

TEST_P(RoceFaults, LateCompletionsLoseNothing) {
  for (const Fault f : {Fault::delay, Fault::reorder}) {
    StreamRequest r = request();
    r.device = "model:delay=0.002";
    RoceRun run(r, 300, only(f, 0.05));
    ASSERT_TRUE(run.run());
    EXPECT_EQ(run.receivers[0].got.messages, 300u);
    EXPECT_EQ(run.receivers[0].got.changed, 0u);
    EXPECT_GT(run.injected(f), 0u);
    EXPECT_FALSE(run.stream->tx[0]->broken());
  }
}

TEST_P(RoceFaults, LostPacketsAreSentAgain) {
  StreamRequest r = request();
  r.payload_bytes = 65536;
  r.device = "model:loss=0.02,mtu=1024";
  RoceRun run(r, 20);
  ASSERT_TRUE(run.run());
  EXPECT_EQ(run.receivers[0].got.messages, 20u);
  EXPECT_EQ(run.receivers[0].got.changed, 0u);
  EXPECT_GT(run.stream->facts().at("device_counters").at("retransmissions").get<u64>(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Each, RoceFaults, testing::ValuesIn(rdma::vendors()),
                         [](const auto& p) { return std::string(rdma::name(p.param)); });

}  // namespace
}  // namespace doorbell::net
