// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Times by the two ends: when packets were sent and were due, how long they were on their way, and
// what threads cost.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "memory_queues.hpp"
#include "model/faults.hpp"
#include "net/flow/ends.hpp"
#include "net/flow/relay.hpp"
#include "system/clock.hpp"

namespace doorbell::net {
namespace {

constexpr u32 kPayload = 200;

Header header_of(const std::vector<u8>& packet) {
  Header h;
  std::memcpy(&h, packet.data(), kHeaderBytes);
  return h;
}

/// Takes packets and lets them go when it is flushed, as a socket's last record may need.
class PartlyTx final : public TxQueue {
 public:
  explicit PartlyTx(std::shared_ptr<MemoryWire> wire) : to_(std::move(wire), kPayload) {}
  [[nodiscard]] TxSlots slots() const override { return to_.slots(); }
  u32 send(u64 first, u32 count, u32 bytes) override {
    if (kept_ > 0) ++late_rests, (void)flush();
    kept_ = count;
    first_ = first;
    bytes_ = bytes;
    return count;
  }
  [[nodiscard]] u64 completed() override { return first_; }
  void wait(u64) override {}
  [[nodiscard]] bool flush() override {
    flushed_ns = wall_ns();
    if (kept_ > 0) kept_ -= to_.send(first_, kept_, bytes_);
    return true;
  }
  u32 late_rests = 0;  ///< that were there when the next packet came
  u64 flushed_ns = 0;

 private:
  MemoryTx to_;
  u64 first_ = 0;
  u32 kept_ = 0, bytes_ = 0;
};

struct Sending {
  explicit Sending(double packets_per_s = 0) {
    auto queue = std::make_unique<PartlyTx>(wire);
    tx = queue.get();
    queues.push_back(std::move(queue));
    SendingOptions o;
    o.sender.payload_bytes = kPayload;
    o.packets_per_s = packets_per_s;
    end = std::make_unique<SendingEnd>(o, queues);
  }
  std::shared_ptr<MemoryWire> wire = std::make_shared<MemoryWire>();
  std::vector<std::unique_ptr<TxQueue>> queues;
  PartlyTx* tx = nullptr;
  std::unique_ptr<SendingEnd> end;
};

TEST(NetFigures, TheRestOfAPacedPacketDoesNotWaitForTheNextOne) {
  Sending s(3);
  const SendPhase p = s.end->run(0, 3, {});
  EXPECT_EQ(p.sent, 3u);
  EXPECT_EQ(s.tx->late_rests, 0u);
  EXPECT_EQ(s.wire->packets.size(), 3u);
}

TEST(NetFigures, FewPacedPacketsTakeAGapEach) {
  Sending s(20);
  const SendPhase p = s.end->run(0, 3, {});
  EXPECT_GE(p.elapsed_s, 3 / 20.0 - 1e-6) << "not two gaps";
  // By time, the packet of a longer gap takes the whole time.
  Sending one(0.5);
  const SendPhase timed = one.end->run(0.05, 0, {});
  EXPECT_EQ(timed.sent, 1u);
  EXPECT_GE(timed.elapsed_s, 0.05 - 1e-6);
}

TEST(NetFigures, NoneOfANumberOfPacketsIsSkipped) {
  Sending s(1e9);  // more than anybody reaches
  const SendPhase p = s.end->run(0, 20'000, {});
  EXPECT_EQ(p.sent + p.skipped, 20'000u);
}

TEST(NetFigures, TheTimeOfSendingEndsWithTheLastPacket) {
  Sending s;
  const SendPhase p = s.end->run(0, 10, {});
  EXPECT_GT(p.elapsed_s, 0);
  EXPECT_LE(static_cast<double>(p.begin_ns) + p.elapsed_s * 1e9, static_cast<double>(s.tx->flushed_ns) + 1e3);
}

/// A long gap does not keep a run from ending.
TEST(NetFigures, ASenderThatWaitsForItsNextPacketCanBeStopped) {
  Sending s(0.001);
  u32 looks = 0;
  const SendPhase p = s.end->run(0, 2, [&] { return ++looks > 1; });
  EXPECT_EQ(p.sent, 1u);
  EXPECT_LT(p.elapsed_s, 500) << "the next packet was due after 1000 s";
}

TEST(NetFigures, PacedPacketsHaveTheTimeAtWhichTheyWereDue) {
  auto wire = std::make_shared<MemoryWire>();
  MemoryTx queue(wire, kPayload);
  SenderOptions o;
  o.payload_bytes = kPayload;
  Sender s(o, queue);
  constexpr u64 kBegin = 5'000'000, kGap = 1'000'000;
  s.pace(1e3, kBegin);
  // Held up until five gaps later.
  EXPECT_EQ(s.step(100, kBegin + 5 * kGap + 10), 6u);
  for (u64 i = 0; i < 6; ++i) {
    const Header h = header_of(wire->packets[i]);
    EXPECT_TRUE(h.has(kIntendedTime));
    const DueTime t = DueTime::of(h.tx_time_ns, kBegin + 100 * kGap);
    EXPECT_EQ(t.due_ns, kBegin + i * kGap);
    EXPECT_GE(t.left_ns, kBegin + 5 * kGap + 10);
    EXPECT_LE(t.left_ns, kBegin + 5 * kGap + 10 + 16384);
  }
  Sender unpaced(o, queue);
  EXPECT_EQ(unpaced.step(1, 77), 1u);
  EXPECT_FALSE(header_of(wire->packets.back()).has(kIntendedTime));
  EXPECT_EQ(header_of(wire->packets.back()).tx_time_ns, 77u);
}

TEST(NetFigures, ADueTimeIsReadAtAnyTimeAfterwards) {
  for (const u64 due : {u64{1}, (u64{1} << 44) - 5, u64{1} << 44, (u64{1} << 57) + 12345})
    for (const u64 lag : {u64{0}, u64{1}, u64{16384}, u64{1'500'000'000}, u64{16'000'000'000}})
      for (const u64 way : {u64{0}, u64{5'000'000'000}}) {
        const DueTime t = DueTime::of(DueTime{due, due + lag}.word(), due + lag + way);
        EXPECT_EQ(t.due_ns, due);
        EXPECT_GE(t.left_ns, due + lag);
        EXPECT_LT(t.left_ns, due + lag + 16384);
      }
}

/// A sender that was held up makes no packet late, and its latency is what it was.
TEST(NetFigures, LatencyIsFromWhenAPacketWasDueAndLatenessFromWhenItLeft) {
  auto wire = std::make_shared<MemoryWire>();
  MemoryTx tx(wire, kPayload);
  SenderOptions so;
  so.payload_bytes = kPayload;
  Sender s(so, tx);
  TimedRx rx(wire);
  ReceiverOptions ro;
  ro.late_ns = 1'000'000'000;
  Receiver r(ro, rx, nullptr);
  s.pace(1, 1'000'000'000);
  EXPECT_EQ(s.step(10, 3'500'000'000), 3u);  // due after 1, 2 and 3 s
  rx.now_ns = 3'600'000'000;
  EXPECT_EQ(r.step(), 3u);
  EXPECT_EQ(r.counts().late, 0u);
  EXPECT_EQ(r.latency().max(), 2'600'000'000u);
  EXPECT_EQ(r.latency().min(), 600'000'000u);
  EXPECT_EQ(s.step(10, 4'000'000'000), 1u);
  rx.now_ns = 5'100'000'000;
  EXPECT_EQ(r.step(), 1u);
  EXPECT_EQ(r.counts().late, 1u);
}

/// Packets that are stamped in the moment in which they are taken.
class StampingRx final : public RxQueue {
 public:
  StampingRx() : bytes_(packet(0, 0, 0, 40)) {}
  u32 receive(Burst& b) override {
    Header h = header_of(bytes_);
    h.tx_time_ns = stamped_ns = wall_ns();
    std::memcpy(bytes_.data(), &h, sizeof h);
    b.data[0] = bytes_.data();
    b.length[0] = static_cast<u32>(bytes_.size());
    return b.count = 1;
  }
  void release(Burst& b) override { b.count = 0; }
  void wait(u64) override {}
  [[nodiscard]] Drops drops() override { return {}; }
  u64 stamped_ns = 0;

 private:
  std::vector<u8> bytes_;
};

TEST(NetFigures, ARelayReceivesNothingBeforeItWasSent) {
  auto queue = std::make_unique<StampingRx>();
  const StampingRx& stamps = *queue;
  Relay relay({.rates = only(model::Fault::misplace, 0.5)}, std::move(queue), 32, 80);
  Burst b(32);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_GT(relay.receive(b), 0u);
    ASSERT_GE(b.rx_time_ns, stamps.stamped_ns);
    relay.release(b);
  }
}

/// A wire that shows nothing until it is opened.
class ShutRx final : public RxQueue {
 public:
  explicit ShutRx(std::shared_ptr<MemoryWire> wire) : from_(std::move(wire)) {}
  u32 receive(Burst& b) override { return open ? from_.receive(b) : b.count = 0; }
  void release(Burst& b) override { from_.release(b); }
  void wait(u64 limit_ns) override { from_.wait(limit_ns); }
  [[nodiscard]] Drops drops() override { return {}; }
  std::atomic<bool> open{false};

 private:
  MemoryRx from_;
};

struct Receiving {
  explicit Receiving(double settle_s = 0.1) {
    auto queue = std::make_unique<ShutRx>(wire);
    rx = queue.get();
    queues.push_back(std::move(queue));
    ReceivingOptions o;
    o.reliable = false;
    o.settle_s = settle_s;
    end = std::make_unique<LocalReceivingEnd>(o, queues);
  }
  void add(u64 first, u64 count) {
    const std::scoped_lock lock(wire->mutex);
    for (u64 n = first; n < first + count; ++n) {
      auto p = packet(0, 0, n, 40);
      Header h = header_of(p);
      h.tx_time_ns = wall_ns();
      h.header_crc32c = crc32c(&h, kHeaderBytes - 4);
      std::memcpy(p.data(), &h, sizeof h);
      wire->packets.push_back(p);
    }
  }
  std::shared_ptr<MemoryWire> wire = std::make_shared<MemoryWire>();
  std::vector<std::unique_ptr<RxQueue>> queues;
  ShutRx* rx = nullptr;
  std::unique_ptr<LocalReceivingEnd> end;
};

TEST(NetFigures, WhatAnEarlierPhaseSentIsNoneOfThisPhases) {
  Receiving r;
  r.end->begin();
  r.add(0, 50);
  EXPECT_EQ(r.end->end({50}).counts.unique, 0u);
  r.rx->open = true;
  r.end->begin();
  r.add(50, 30);
  const ReceivePhase p = r.end->end({80});
  EXPECT_EQ(p.counts.unique, 80u);
  EXPECT_EQ(p.counts.earlier, 50u);
  EXPECT_EQ(p.counts.earlier_bytes, 50u * 72);
  EXPECT_EQ(p.latency.count(), 30u);
  EXPECT_LE(static_cast<double>(p.latency.max().value_or(0)), p.elapsed_s * 1e9);
  const ReceiveTotals t = r.end->finish({80});
  EXPECT_EQ(t.counts.unique, 80u);
  EXPECT_EQ(t.lost, 0u);
}

TEST(NetFigures, WaitingForTheRestIsNoPartOfAThreadsCost) {
  constexpr double kSettleS = 0.2;
  Receiving r(kSettleS);
  r.rx->open = true;
  const u64 begin = wall_ns();
  r.end->begin();
  r.add(0, 10);
  const ReceivePhase p = r.end->end({12});
  const double all_s = static_cast<double>(wall_ns() - begin) * 1e-9;
  EXPECT_EQ(p.counts.unique, 10u);
  ASSERT_EQ(p.threads.size(), 1u);
  EXPECT_LE(p.threads[0].elapsed_s, all_s - kSettleS);
  EXPECT_LE(p.threads[0].cost.user_s + p.threads[0].cost.system_s, p.threads[0].elapsed_s + 1e-4);
}

/// A good header, and fewer bytes than the stream's packets have: it fits into no window.
TEST(NetFigures, APacketOfAnotherLengthIsInNoWindow) {
  auto wire = std::make_shared<MemoryWire>();
  std::vector<std::unique_ptr<RxQueue>> queues;
  queues.push_back(std::make_unique<MemoryRx>(wire));
  ReceivingOptions o;
  o.reliable = false;
  o.settle_s = 0.05;
  WindowWorkRequest w;
  w.payload_bytes = 72;
  w.options.on = true;
  w.options.packets = 4;
  o.windows = std::make_shared<WindowWork>(w);
  LocalReceivingEnd end(o, queues);
  end.begin();
  for (u64 n = 0; n < 3; ++n) {
    const std::scoped_lock lock(wire->mutex);
    wire->packets.push_back(packet(0, 0, n, n == 1 ? 39 : 40));
  }
  EXPECT_EQ(end.end({3}).counts.unique, 3u);
  const ReceiveTotals t = end.finish({3});
  EXPECT_EQ(t.windows.at("wrong_length"), 1u);
  EXPECT_EQ(t.windows.at("missing"), 1u);
  EXPECT_EQ(t.in_windows, 2u) << "which the accounts do not let pass";
}

TEST(NetFigures, AReceiverThatDidNotRunSaysSo) {
  auto wire = std::make_shared<MemoryWire>();
  TimedRx queue(wire);
  ReceiverOptions o;
  o.late_ns = 1'000'000'000;
  Receiver r(o, queue, nullptr);
  u64 number = 0;
  const auto receive = [&](double now_s, double sent_s) {
    auto p = packet(0, 0, number++, 40);
    Header h = header_of(p);
    h.tx_time_ns = static_cast<u64>(sent_s * 1e9);
    h.header_crc32c = crc32c(&h, kHeaderBytes - 4);
    std::memcpy(p.data(), &h, sizeof h);
    wire->packets.push_back(p);
    queue.now_ns = static_cast<u64>(now_s * 1e9);
    if (now_s != 13) r.idle(queue.now_ns - 10'000'000);
    (void)r.step();
  };
  r.begin_phase({0});
  receive(10, 9.9);
  receive(13, 11);  // it waited for two seconds, in which the thread did not run
  EXPECT_EQ(r.counts().late, 1u);
  EXPECT_EQ(r.counts().held, 1u);
  receive(13.1, 10.5);  // and for 0.1 s more
  EXPECT_EQ(r.counts().held, 2u);
  receive(13.2, 9.9);  // longer than the thread was away
  EXPECT_EQ(r.counts().late, 3u);
  EXPECT_EQ(r.counts().held, 3u);
  receive(13.3, 9);
  EXPECT_EQ(r.counts().late, 4u);
  EXPECT_EQ(r.counts().held, 3u) << "1.3 s of its way were not the thread's";
  receive(13.4, 13.5);
  EXPECT_EQ(r.counts().late, 4u);
  EXPECT_EQ(r.latency().count(), 5u) << "a time that has not come is no latency";
}

TEST(NetFigures, AReceiverThatIsTooSlowSaysSo) {
  auto wire = std::make_shared<MemoryWire>();
  TimedRx queue(wire);
  ReceiverOptions o;
  o.late_ns = 1'000'000'000;
  Receiver r(o, queue, nullptr);
  r.begin_phase({0});
  constexpr u64 kStep = 100'000'000, kBegin = 50 * kStep;
  r.idle(kBegin);
  const auto receive = [&](u64 number, u64 sent, u64 now) {
    auto p = packet(0, 0, number, 40);
    Header h = header_of(p);
    h.tx_time_ns = sent;
    h.header_crc32c = crc32c(&h, kHeaderBytes - 4);
    std::memcpy(p.data(), &h, sizeof h);
    wire->packets.push_back(p);
    queue.now_ns = now;
    (void)r.step();
  };
  // All sent at once, and a tenth of a second of work each.
  for (u64 n = 0; n < 15; ++n) receive(n, kBegin + 1, kBegin + 1 + (n + 1) * kStep);
  EXPECT_EQ(r.counts().late, 5u);
  EXPECT_EQ(r.counts().held, 5u);
  r.idle(kBegin + 16 * kStep);
  receive(15, kBegin + 1, kBegin + 17 * kStep);
  EXPECT_EQ(r.counts().late, 6u);
  EXPECT_EQ(r.counts().held, 5u) << "it had nothing to do, and the packet was on its way";
}

}  // namespace
}  // namespace doorbell::net
