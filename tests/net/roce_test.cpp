// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// RoCE streams over the model NIC of every vendor: order, contents and lengths, receivers that are late, two
// processes.

#include <doorbell/gpu.hpp>
#include <doorbell/net/packet.hpp>
#include <fmt/format.h>

#include <thread>

#include "errors.hpp"
#include "exchange/exchange.hpp"
#include "options/setting.hpp"
#include "rdma/model/nic.hpp"
#include "rdma/verbs/library.hpp"
#include "rma/names.hpp"
#include "roce_run.hpp"
#include "sanitized.hpp"

namespace doorbell::net {
namespace {

using test::error_of;
using test::eventually;
using test::expect_says;

class Roce : public testing::TestWithParam<rdma::Provider> {
 protected:
  [[nodiscard]] StreamRequest request() const { return small_request(std::string(rdma::name(GetParam()))); }

  void all_arrive(const StreamRequest& r, u64 count) {
    SCOPED_TRACE(fmt::format("{} messages of {} bytes", count, r.payload_bytes));
    RoceRun run(r, count);
    ASSERT_TRUE(run.run());
    for (u32 f = 0; f < r.flows; ++f) {
      EXPECT_EQ(run.receivers[f].got.messages, count);
      EXPECT_EQ(run.receivers[f].got.changed, 0u);
      EXPECT_EQ(run.stream->tx[f]->completed(), count);
      EXPECT_FALSE(run.stream->tx[f]->broken());
    }
    const auto facts = run.stream->facts();
    for (const char* key : {"broken_senders", "broken_receivers", "timed_out", "completions_duplicated",
                            "completions_skipped", "completions_unexpected"})
      EXPECT_EQ(facts.at(key), 0) << key;
    EXPECT_TRUE(facts.at("send_errors").empty()) << facts.dump();
    EXPECT_TRUE(facts.at("receive_errors").empty()) << facts.dump();
    EXPECT_EQ(facts.at("device_counters").at("sends"), r.flows * (count + 1));
  }
};

TEST_P(Roce, MessagesOfEverySizeArriveInOrderUnchanged) {
  const u64 part = test::kSanitized ? 4 : 1;
  for (const auto& [bytes, count] :
       {std::pair{32u, u64{1500}}, {64u, u64{1500}}, {4096u, 1200 / part}, {65536u, 800 / part}}) {
    StreamRequest r = request();
    r.payload_bytes = bytes;
    all_arrive(r, count);
  }
  StreamRequest r = request();
  r.payload_bytes = 8'000'000;
  all_arrive(r, test::kSanitized ? 4 : 40);  // more than there are receives
}

TEST_P(Roce, ShallowQueuesAndSmallBursts) {
  StreamRequest r = request();
  r.tx_depth = 2;
  r.rx_depth = 1;
  r.burst = 1;
  all_arrive(r, 100);
  r.tx_depth = 64;
  r.rx_depth = 700;
  r.window = 63;
  r.signal_every = 63;
  r.burst = 200;
  all_arrive(r, 1500);
  r.signal_every = 1;
  all_arrive(r, 1500);
}

TEST_P(Roce, EachFlowHasItsSequenceAndItsQueue) {
  StreamRequest r = request();
  r.flows = 5;
  r.rx_queues = 2;
  r.rx_depth = 24;
  all_arrive(r, 300);
}

TEST_P(Roce, EndsWithoutAnyMessage) {
  all_arrive(request(), 0);
}

TEST_P(Roce, TwoThreads) {
  constexpr u64 kCount = 2000;
  RoceRun run(request(), kCount);
  std::thread receiver;
  std::vector<u64> numbers;
  bool ended = false;
  RxQueue& rx = *run.stream->rx[0];
  receiver = std::thread([&] {
    Burst burst(16);
    ended = eventually([&] {
      if (rx.receive(burst) == 0) rx.wait(100'000);
      for (u32 i = 0; i < burst.count; ++i) {
        u64 n = 0;
        std::memcpy(&n, burst.data[i], sizeof n);
        numbers.push_back(n);
      }
      rx.release(burst);
      return rx.ended();
    });
  });
  EXPECT_TRUE(eventually([&] {
    run.stream->tx[0]->wait(1000);
    return run.send();
  }));
  receiver.join();
  EXPECT_TRUE(ended);
  ASSERT_EQ(numbers.size(), kCount);
  for (u64 n = 0; n < kCount; ++n) ASSERT_EQ(numbers[n], n);
}

TEST_P(Roce, AReceiverThatGivesBackLateIsWaitedFor) {
  constexpr u64 kCount = 60;
  StreamRequest r = request();
  r.rx_depth = 8;
  r.window = 16;
  RoceRun run(r, kCount);
  RxQueue& rx = *run.stream->rx[0];
  std::vector<Burst> held;
  // Nothing is given back until the sender has been told that its receiver is not ready.
  u64 got = 0;
  ASSERT_TRUE(eventually([&] {
    (void)run.send();
    Burst burst(3);
    got += rx.receive(burst);
    if (burst.count > 0) held.push_back(std::move(burst));
    return got >= r.rx_depth && run.fact("rnr_events") >= 2;
  }));
  EXPECT_EQ(got, r.rx_depth);
  EXPECT_LE(run.senders[0].acknowledged, got);
  u64 n = 0;
  for (Burst& b : held) {
    for (u32 i = 0; i < b.count; ++i, ++n) run.receivers[0].take(b.data[i], b.length[i], 0, run.senders[0]);
    rx.release(b);
  }
  ASSERT_TRUE(run.run());
  EXPECT_EQ(run.receivers[0].got.messages, kCount);
  EXPECT_EQ(run.receivers[0].got.changed, 0u);
  EXPECT_GE(run.fact("rnr_events"), 2u);
  EXPECT_EQ(run.fact("rnr_time_ns"), run.fact("rnr_events") * 640'000);
  EXPECT_EQ(rx.drops().sum(), 0u);
}

TEST_P(Roce, EveryNotReadyIsCounted) {
  StreamRequest r = request();
  r.device = "model:rnr=2";
  constexpr u64 kCount = 10;
  RoceRun run(r, kCount);
  ASSERT_TRUE(run.run());
  EXPECT_EQ(run.receivers[0].got.messages, kCount);
  EXPECT_EQ(run.fact("rnr_events"), 2 * (kCount + 1));  // and for the end
  EXPECT_EQ(run.fact("rnr_time_ns"), 2 * (kCount + 1) * 640'000);
}

TEST_P(Roce, AMessageTooLongBreaksBothEnds) {
  StreamRequest r = request();
  r.payload_bytes = 40;  // a slot has 64
  RoceRun run(r, 0);
  EXPECT_EQ(run.stream->tx[0]->send(0, 1, 64), 1u);
  Burst burst(4);
  EXPECT_TRUE(eventually([&] {
    (void)run.stream->tx[0]->completed();
    EXPECT_EQ(run.stream->rx[0]->receive(burst), 0u);
    return run.stream->tx[0]->broken() && run.stream->rx[0]->ended();
  }));
  EXPECT_EQ(run.stream->tx[0]->completed(), 0u);
  EXPECT_EQ(run.stream->tx[0]->send(1, 1, 32), 0u);
  EXPECT_TRUE(run.stream->tx[0]->finish());
  const auto facts = run.stream->facts();
  EXPECT_EQ(facts.at("broken_senders"), 1);
  EXPECT_EQ(facts.at("broken_receivers"), 1);
  EXPECT_EQ(facts.at("send_errors").at(rma::status_name(9)), 1) << facts.dump();
  EXPECT_EQ(facts.at("receive_errors").at(rma::status_name(1)), 1) << facts.dump();
}

INSTANTIATE_TEST_SUITE_P(Each, Roce, testing::ValuesIn(rdma::vendors()),
                         [](const auto& p) { return std::string(rdma::name(p.param)); });

/// A port at which nobody listens.
u16 free_port() {
  return exchange::Listener({"net", 0}, {"127.0.0.1", 0}).at().port;
}

TEST(RoceProcesses, TwoStreamsOfOneEndEachMeet) {
  // The two have one NIC, where two processes would each have one of a network.
  rdma::ModelConfig config;
  const auto nic = std::make_shared<rdma::ModelNic>(config, rdma::Provider::mlx5, "model");
  NoLink link;
  StreamRequest r = small_request();
  r.flows = 3;
  r.port = free_port();
  StreamRequest to = r;
  to.has_tx = false;
  std::unique_ptr<Stream> receiving;
  std::thread other([&] { receiving = open_roce(to, link, nic); });
  r.has_rx = false;
  const auto sending = open_roce(r, link, nic);
  other.join();
  ASSERT_NE(receiving, nullptr);
  ASSERT_EQ(sending->tx.size(), 3u);
  EXPECT_TRUE(sending->rx.empty());
  EXPECT_TRUE(receiving->tx.empty());
  std::vector<MessageSource> senders;
  for (u32 f = 0; f < 3; ++f) senders.emplace_back(*sending->tx[f], f, 200, r.payload_bytes);
  Burst burst(64);
  u64 got = 0;
  EXPECT_TRUE(eventually([&] {
    bool sent = true;
    for (MessageSource& s : senders) sent = s.step(64) && sent;
    got += receiving->rx[0]->receive(burst);
    receiving->rx[0]->release(burst);
    return sent && receiving->rx[0]->ended();
  }));
  EXPECT_EQ(got, 600u);
}

TEST(RoceProcesses, MessagesOfTwoLengthsAreTold) {
  rdma::ModelConfig config;
  const auto nic = std::make_shared<rdma::ModelNic>(config, rdma::Provider::bnxt, "model");
  NoLink link;
  StreamRequest r = small_request();
  r.port = free_port();
  StreamRequest to = r;
  to.has_tx = false;
  to.payload_bytes = 300;
  std::thread other(
      [&] { expect_says(error_of([&] { (void)open_roce(to, link, nic); }), "its messages have 256 bytes"); });
  r.has_rx = false;
  expect_says(error_of([&] { (void)open_roce(r, link, nic); }), "its messages have 300 bytes");
  other.join();
}

TEST(RoceRequests, AreChecked) {
  NoLink link;
  const auto said = [&](auto change) {
    StreamRequest r = small_request();
    change(r);
    return error_of([&] { (void)roce_stream().open(r, link); });
  };
  expect_says(said([](auto& r) { r.payload_bytes = 31; }), "payload: 31 is not in 32..2147483647");
  Setting::name_by_options();
  expect_says(said([](auto& r) { r.payload_bytes = 31; }), "--payload: 31 is");
  Setting::name_by_options(false);
  expect_says(said([](auto& r) { r.payload_bytes = 0x80000000; }), "payload");
  expect_says(said([](auto& r) { r.tx_depth = 1; }), "depth of send queues: 1 is not in 2..32768");
  expect_says(said([](auto& r) { r.rx_depth = 32769; }), "depth of receive queues: 32769 is not in 1..32768");
  expect_says(said([](auto& r) { r.window = 64; }), "window: 64 is not in 1..63");
  expect_says(said([](auto& r) { r.tx_depth = 8, r.window = 8; }), "window: 8 is not in 1..7");
  expect_says(said([](auto& r) { r.window = 8, r.signal_every = 9; }),
              "messages a completion: 9 is not in 1..8");
  expect_says(said([](auto& r) { r.timeout_s = 0; }), "timeout");
  expect_says(said([](auto& r) { r.flows = 0; }), "flows");
  expect_says(said([](auto& r) { r.rx_queues = 2; }), "1 flows cannot arrive at 2 queues");
  expect_says(said([](auto& r) { r.provider = "mellanox"; }), "give one of mlx5, bnxt, ionic, ernic, verbs");
  expect_says(said([](auto& r) { r.device = "model:colour=1"; }), "colour");
  expect_says(said([](auto& r) { r.split = true; }), "header-data split");
  expect_says(said([](auto& r) { r.has_rx = false; }), "a model is a device of one process");
}

TEST(RoceRequests, LargeMessagesHaveFewerBuffers) {
  StreamRequest r = small_request();
  RoceShape s = roce_shape(r);
  EXPECT_EQ(s.rx_depth, 512u);
  EXPECT_EQ(s.window, 32u);
  EXPECT_EQ(s.slots, kTemplates);
  r.payload_bytes = 8'000'000;
  s = roce_shape(r);
  EXPECT_EQ(s.rx_depth, 33u);
  EXPECT_EQ(s.window, 16u);
  EXPECT_EQ(s.slots, 33u);
  r.payload_bytes = 1u << 30;
  s = roce_shape(r);
  EXPECT_EQ(s.rx_depth, 2u);
  EXPECT_EQ(s.window, 1u);
  EXPECT_EQ(s.slots, 2u);
  r.payload_bytes = 8'000'000;
  r.rx_depth = 512;  // what is given is taken
  EXPECT_EQ(roce_shape(r).rx_depth, 512u);
}

TEST(RoceRequests, TheKindSaysWhatItIs) {
  const StreamKind& kind = roce_stream();
  EXPECT_EQ(kind.name, "roce");
  EXPECT_TRUE(kind.reliable);
  EXPECT_TRUE(kind.ordered);
  EXPECT_EQ(kind.overhead_bytes, 58u);
  EXPECT_TRUE(kind.status().usable);
  EXPECT_EQ(kind.max_payload(NoLink()), 0x7fffffffu);
  StreamRequest r = small_request();
  r.payload_bytes = 8192;
  r.device = "model:mtu=1024";
  RoceRun run(r, 1);
  const auto facts = run.stream->facts();
  EXPECT_EQ(facts.at("packets_per_message"), 8);
  EXPECT_EQ(facts.at("wire_bytes_per_message"), 8192 + 8 * 58);
  EXPECT_EQ(facts.at("device_kind"), "model");
}

TEST(RoceGpu, MessagesArriveInGpuMemory) {
  const auto gpus = gpu::enumerate();
  if (gpus.empty()) GTEST_SKIP() << "no GPU";
  for (const rdma::Provider p : rdma::vendors()) {
    StreamRequest r = small_request(std::string(rdma::name(p)));
    r.place = Place::gpu;
    r.gpu = gpu::open(gpus[0].index);
    for (const u32 bytes : {32u, 4096u, 1'000'000u}) {
      r.payload_bytes = bytes;
      // A sanitizer copies some 20 MB/s.
      RoceRun run(r, bytes <= 4096 ? 1500 : test::kSanitized ? 20 : 400);
      ASSERT_TRUE(run.run()) << r.provider << " " << bytes;
      EXPECT_EQ(run.receivers[0].got.messages, run.senders[0].sent);
      EXPECT_EQ(run.receivers[0].got.changed, 0u);
      EXPECT_FALSE(run.stream->tx[0]->broken());
    }
  }
}

TEST(RoceVerbs, AnyDeviceOfLibibverbs) {
  if (const BackendStatus s = rdma::verbs_status(); !s.usable)
    GTEST_SKIP() << "no verbs device: " << s.detail;
  StreamRequest r = small_request("verbs");
  r.device = "verbs";
  RoceRun run(r, 500);
  ASSERT_TRUE(run.run());
  EXPECT_EQ(run.receivers[0].got.messages, 500u);
  EXPECT_EQ(run.receivers[0].got.changed, 0u);
}

}  // namespace
}  // namespace doorbell::net
