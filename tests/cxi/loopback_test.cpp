// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The loopback on the model: what it posts, what it waits for and how long, and what it finds in the data.
#include <chrono>
#include <csignal>
#include <optional>
#include <thread>

#include "cxi/loopback_cell.hpp"
#include "rig.hpp"

namespace doorbell::cxi {
namespace {

struct Outcome {
  LoopbackResult result;
  nlohmann::ordered_json counters;
  StopReason reason;
};

Outcome loopback(const LoopbackOptions& o, const model::FaultRates& faults = {},
                 const std::string& spec = "cxi-model0", const measure::StopFlag* stop = nullptr) {
  const auto device = open_device({.spec = tested(spec), .use = {.gpu_memory = false, .faults = faults}});
  const auto endpoint = device->open(1);
  Outcome out;
  out.result = run_loopback(*device, *endpoint, o, stop);
  out.counters = device->counters();
  out.reason = stop_reason(out.result);
  return out;
}

LoopbackOptions small() {
  LoopbackOptions o;
  o.iterations = 3;
  o.puts = 50;
  o.bytes = 1000;
  o.timeout_s = 60;
  return o;
}

TEST(CxiLoopback, DoesWhatItIsTold) {
  LoopbackOptions o = small();
  o.repeats = 2;
  o.warmup = 4;
  o.steady = true;
  const Outcome r = loopback(o);
  EXPECT_FALSE(r.result.failed());
  EXPECT_EQ(r.reason, StopReason::done);
  ASSERT_EQ(r.result.repeats.size(), 2u);
  for (const LoopbackPart& p : r.result.repeats) {
    EXPECT_EQ(p.iterations, 3u);
    EXPECT_GT(p.elapsed_ns, 0u);
  }
  ASSERT_TRUE(r.result.steady);
  EXPECT_EQ(r.result.steady->iterations, 3u);
  // 4 + 2 * 3 + 3 iterations of 50, then 50 single puts, each with an event.
  EXPECT_EQ(r.result.submitted, 13u * 50 + 50);
  EXPECT_EQ(r.counters["puts"], 700u);
  EXPECT_EQ(r.counters["triggered_operations"], 13u + 50);
  EXPECT_EQ(r.result.verify.checked, 51u);
  EXPECT_EQ(r.result.verify.checked_bytes, 51u * 1000);
}

TEST(CxiLoopback, TheMostPutsOfAnIteration) {
  EXPECT_EQ(kMaxLoopbackPuts, 16382u);
  LoopbackOptions o = small();
  o.puts = kMaxLoopbackPuts;
  o.bytes = 8;
  o.steady = true;
  const Outcome r = loopback(o);
  EXPECT_FALSE(r.result.failed());
  EXPECT_EQ(r.result.verify.checked, 1025u);
}

TEST(CxiLoopback, OneDoorbellForAllPutsOfAnIteration) {
  LoopbackOptions o = small();
  o.verify = false;
  o.warmup = 0;
  const Outcome r = loopback(o);
  EXPECT_EQ(r.result.submitted, 150u);
  EXPECT_EQ(r.result.verify.checked, 0u);
  // For each iteration: the event's, the puts', and that of what was taken from the event queue.
  EXPECT_EQ(r.result.doorbells, 3u * 3);
}

TEST(CxiLoopback, LargePutsAreNotRepeatedForTheCheck) {
  LoopbackOptions o = small();
  o.puts = 2;
  o.bytes = (64 << 20) + 1;
  o.iterations = 1;
  o.warmup = 0;
  const Outcome r = loopback(o);
  EXPECT_FALSE(r.result.failed());
  EXPECT_EQ(r.result.verify.checked, 1u);
  EXPECT_EQ(r.result.submitted, 2u);
}

TEST(CxiLoopback, EachSizeOfPayloadIsChecked) {
  for (const u32 bytes : {1u, 15u, 16u, 63u, 64u, 511u, 512u, 513u, 4095u, 4097u, 1u << 20}) {
    LoopbackOptions o = small();
    o.bytes = bytes;
    o.puts = 4;
    EXPECT_FALSE(loopback(o).result.failed()) << bytes;
    const Outcome r = loopback(o, only(model::Fault::corrupt));
    EXPECT_EQ(r.result.verify.failed(), 5u) << bytes;
    EXPECT_EQ(r.reason, StopReason::done);
    EXPECT_FALSE(r.result.failure) << bytes;
  }
}

TEST(CxiLoopback, ALostAcknowledgementIsBoundedAndCounted) {
  LoopbackOptions o = small();
  o.timeout_s = 0.3;
  const u64 begin = wall_ns();
  const Outcome r = loopback(o, only(model::Fault::drop));
  EXPECT_LT(static_cast<double>(wall_ns() - begin) * 1e-9, 10);
  ASSERT_TRUE(r.result.failure);
  EXPECT_EQ(r.result.failure->kind, LoopbackFailure::Kind::timeout);
  EXPECT_EQ(r.result.failure->expected, EventType::triggered_op);
  EXPECT_TRUE(r.result.failure->counts.valid);
  EXPECT_EQ(r.result.failure->counts.success, 0u);
  EXPECT_EQ(r.result.failure->threshold, 50u);
  EXPECT_EQ(r.result.lost, 50u);
  EXPECT_EQ(r.result.verify.checked, 0u);
  EXPECT_EQ(r.reason, StopReason::timeout);
}

/// It is time without progress that counts, not time.
TEST(CxiLoopback, SlowIsNotLost) {
  LoopbackOptions o = small();
  o.puts = 40;
  o.iterations = 1;
  o.warmup = 0;
  o.verify = false;
  Outcome r;
  test::with_longer_times([&](double scale) {
    o.timeout_s = 0.25 * scale;
    r = loopback(o, {}, "cxi-model0:window=1,latency=" + std::to_string(20 * static_cast<u32>(scale)) + "ms");
    return !r.result.failed();
  });
  EXPECT_FALSE(r.result.failed());
  EXPECT_GT(static_cast<double>(r.result.repeats.at(0).elapsed_ns), 2 * o.timeout_s * 1e9);
}

TEST(CxiLoopback, EveryRefusalIsCounted) {
  const Outcome r = loopback(small(), only(model::Fault::error));
  ASSERT_TRUE(r.result.failure);
  EXPECT_EQ(r.result.failure->kind, LoopbackFailure::Kind::unexpected_event);
  EXPECT_EQ(r.result.failure->got, EventType::ack);
  EXPECT_EQ(r.result.refused, 50u);
  EXPECT_EQ(r.result.statuses, (std::map<std::string, u64>{{"UNDELIVERABLE", 50}}));
  EXPECT_EQ(r.result.lost, 0u);
  EXPECT_EQ(r.reason, StopReason::broken);
}

TEST(CxiLoopback, StopsBetweenIterations) {
  LoopbackOptions o = small();
  o.iterations = ~u64{0};
  std::optional<measure::StopFlag> stop;
  Outcome r;
  // A busy machine under a sanitizer may still be setting up when the first stop comes.
  for (auto after = std::chrono::milliseconds(50);
       r.result.repeats.empty() && after < std::chrono::minutes(1); after *= 2) {
    stop.emplace();
    std::thread later([&] {
      std::this_thread::sleep_for(after);
      stop->request(SIGINT);
    });
    r = loopback(o, {}, "cxi-model0", &*stop);
    later.join();
  }
  EXPECT_TRUE(r.result.interrupted);
  EXPECT_FALSE(r.result.failed());
  EXPECT_EQ(r.reason, StopReason::requested);
  ASSERT_EQ(r.result.repeats.size(), 1u);
  EXPECT_EQ(r.result.submitted, (1 + r.result.repeats[0].iterations) * o.puts);
  EXPECT_EQ(r.result.verify.checked, 1u);

  const Outcome none = loopback(o, {}, "cxi-model0", &*stop);
  EXPECT_TRUE(none.result.repeats.empty());
  EXPECT_EQ(none.result.submitted, 0u);
  EXPECT_EQ(none.result.verify.checked, 0u);
}

TEST(CxiLoopback, ADurationEndsWithAnIteration) {
  LoopbackOptions o = small();
  o.iterations = 1;
  Outcome r;
  test::with_longer_times([&](double scale) {
    o.duration_us = 50'000 * static_cast<u64>(scale);
    r = loopback(o);
    return r.result.repeats.at(0).iterations > 1;
  });
  EXPECT_GE(r.result.repeats.at(0).elapsed_ns, o.duration_us * 1000);
  EXPECT_GT(r.result.repeats.at(0).iterations, 1u);
}

}  // namespace
}  // namespace doorbell::cxi
