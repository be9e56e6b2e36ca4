// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Faults of the wire: as many as asked for, the same ones for the same seed, and each one seen by the
// receiver as what it is.
#include "rdma/roce/faults.hpp"

#include <doorbell/error.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "carrier_rig.hpp"

namespace doorbell::roce {
namespace {

using doorbell::test::eventually;
using test::packet;
using test::Received;

std::string refusal(const std::string& text) {
  try {
    static_cast<void>(parse_faults(text));
  } catch (const Error& e) {
    return e.what();
  }
  return {};
}

TEST(RoceWireFaults, AreReadFromText) {
  EXPECT_FALSE(parse_faults("").wire.any());
  EXPECT_FALSE(parse_faults("drop=0").wire.any());
  const auto [f, completions] = parse_faults("drop=0.01,reorder=2e-2,delay=0.125:1.5ms,corrupt=0.5");
  EXPECT_FALSE(completions.any());
  EXPECT_EQ(f.of(WireFault::drop), 0.01);
  EXPECT_EQ(f.of(WireFault::reorder), 0.02);
  EXPECT_EQ(f.of(WireFault::delay), 0.125);
  EXPECT_EQ(f.of(WireFault::corrupt), 0.5);
  EXPECT_EQ(f.of(WireFault::duplicate), 0);
  EXPECT_EQ(f.delay_ns, 1'500'000U);
  EXPECT_EQ(parse_faults("delay=1").wire.delay_ns, 500'000U);
  EXPECT_TRUE(parse_faults("drop=1").wire.any());
  const auto [none, early] = parse_faults("early=0.25:2ms,error=0.5");
  EXPECT_FALSE(none.any());
  EXPECT_EQ(early.probability, (std::array{0.5, 0.25}));
  EXPECT_EQ(early.early_ns, 2'000'000U);
  EXPECT_EQ(refusal("drop=0.5,corrupt=0.25,duplicate=0.25"), "");
}

TEST(RoceWireFaults, NameWhatIsWrong) {
  const std::pair<const char*, const char*> all[] = {
      {"lose=0.1",
       "fault 'lose=0.1': there is no such fault; there are drop, corrupt, duplicate, reorder, delay, error and "
       "early"},
      {"drop", "fault 'drop': it has no probability"},
      {"drop=", "fault 'drop=': '' is no number"},
      {"drop=x", "fault 'drop=x': 'x' is no number"},
      {"drop=nan", "fault 'drop=nan': 'nan' is no number"},
      {"drop=inf", "fault 'drop=inf': 'inf' is no number"},
      {"drop=-0.1", "fault 'drop=-0.1': a probability is 0 to 1"},
      {"drop=1.1", "fault 'drop=1.1': a probability is 0 to 1"},
      {"drop=1%", "fault 'drop=1%': '%' has no meaning behind a probability"},
      {"drop=0.1:5us", "fault 'drop=0.1:5us': ':5us' has no meaning behind a probability"},
      {"drop=0.1,drop=0.2", "fault 'drop=0.2': this fault was given before"},
      {"delay=0.1:5", "fault 'delay=0.1:5': a time has one of the units ns, us, ms and s"},
      {"delay=0.1:us", "fault 'delay=0.1:us': 'us' is no number"},
      {"delay=0.1:11s", "fault 'delay=0.1:11s': its time is 0 to 10 seconds"},
      {"delay=0.1:-1s", "fault 'delay=0.1:-1s': its time is 0 to 10 seconds"},
      {"drop=0.1,", "fault '': nothing follows the last comma"},
      {",drop=0.1",
       "fault '': there is no such fault; there are drop, corrupt, duplicate, reorder, delay, "
       "error and early"},
      {"error=0.1:5us", "fault 'error=0.1:5us': ':5us' has no meaning behind a probability"},
      {"error=0.6,early=0.6", "faults of completions: their probabilities have a sum above 1"},
      {"drop=0.6,corrupt=0.6", "faults of packets: their probabilities have a sum above 1"},
  };
  for (const auto& [text, why] : all) EXPECT_EQ(refusal(text), why);
}

TEST(RoceWireFaults, AreDrawnAsOftenAsAskedAndFollowFromTheSeed) {
  const WireFaults faults =
      parse_faults("drop=0.01,corrupt=0.02,duplicate=0.03,reorder=0.04,delay=0.05").wire;
  const Endpoint a{.address = 1, .port = 2}, b{.address = 3, .port = 4};
  constexpr u64 kDraws = 200'000;
  std::array<double, kWireFaults> counts{};
  u64 same_other_seed = 0, same_other_way = 0, all = 0;
  for (u64 i = 0; i < kDraws; ++i) {
    const WireDraw d = draw_wire_fault(faults, 5, a, b, i);
    const WireDraw again = draw_wire_fault(faults, 5, a, b, i);
    ASSERT_TRUE(d.fault == again.fault && d.kind == again.kind && d.random == again.random);
    if (!d.fault) continue;
    ++all;
    ++counts[static_cast<std::size_t>(d.kind)];
    if (draw_wire_fault(faults, 6, a, b, i).fault) ++same_other_seed;
    if (draw_wire_fault(faults, 5, b, a, i).fault) ++same_other_way;
  }
  for (std::size_t i = 0; i < kWireFaults; ++i) {
    const double expected = faults.probability[i] * kDraws;
    EXPECT_NEAR(counts[i], expected, 5 * std::sqrt(expected)) << kWireFaultNames[i];
  }
  // Of independent draws 15 % agree.
  for (const u64 same : {same_other_seed, same_other_way})
    EXPECT_NEAR(static_cast<double>(same), 0.15 * static_cast<double>(all), 400);
}

struct Sent {
  u64 packets = 0;
  std::vector<u64> arrived;  ///< numbers, in order
  CarrierCounters sender, receiver;
  std::vector<std::string> log;
};

class RoceFaultyCarrier : public ::testing::TestWithParam<CarrierKind> {
 protected:
  static constexpr u64 kPackets = 20'000;

  void SetUp() override {
    log_ = std::filesystem::temp_directory_path() / ("roce-faults-" + std::to_string(getpid()) + ".log");
    std::filesystem::remove(log_);
  }
  void TearDown() override { std::filesystem::remove(log_); }

  /// Numbered packets from one carrier to another; the same addresses in each call, since draws follow from
  /// them.
  Sent send(const std::string& faults, u64 seed = 1, u64 packets = kPackets) {
    std::filesystem::remove(log_);
    CarrierOptions o;
    o.kind = GetParam();
    o.self = to_;
    const auto to = make_carrier(o);
    o.self = from_;
    o.faults = faults;
    o.seed = seed;
    o.fault_log = log_;
    const auto from = make_carrier(o);
    Path& path = from->path(to_);
    Sent result;
    result.packets = packets;
    const auto take = [&] {
      const auto arrivals = to->receive();
      for (const Arrival& a : arrivals) {
        u64 number = 0;
        std::memcpy(&number, a.bytes.data() + 16, sizeof number);
        result.arrived.push_back(number);
        const std::vector<u8> whole(a.bytes.begin(), a.bytes.end());
        EXPECT_EQ(whole, numbered(number));
      }
      return !arrivals.empty();
    };
    for (u64 i = 0; i < packets;) {
      for (int k = 0; k < 20 && i < packets && test::put(path, numbered(i)); ++k) ++i;
      from->flush();
      take();
    }
    EXPECT_TRUE(eventually([&] {
      from->flush();
      const bool came = take();
      const CarrierCounters c = to->counters();
      return !came && from->next_due_ns() == ~u64{0} &&
             c.packets_received + c.bad_icrc == from->counters().packets_sent;
    }));
    result.sender = from->counters();
    result.receiver = to->counters();
    std::ifstream file(log_);
    for (std::string line; std::getline(file, line);) result.log.push_back(line);
    return result;
  }
  static u64 of(const Sent& s, WireFault f) { return s.sender.faults[static_cast<std::size_t>(f)]; }
  static std::vector<u8> numbered(u64 number) {
    std::vector<u8> p = packet(number, 32 + number % 50 * 4);
    std::memcpy(p.data() + 16, &number, sizeof number);
    return p;
  }
  static void expect_about(u64 count, double expected) {
    EXPECT_NEAR(static_cast<double>(count), expected, 5 * std::sqrt(expected));
  }

  std::string log_;
  const Endpoint from_ = test::fresh_endpoint(), to_ = test::fresh_endpoint();
};

INSTANTIATE_TEST_SUITE_P(All, RoceFaultyCarrier, ::testing::Values(CarrierKind::ring, CarrierKind::udp),
                         [](const auto& kind) { return std::string(test::name_of(kind.param)); });

TEST_P(RoceFaultyCarrier, WhatIsDroppedDoesNotArrive) {
  const Sent s = send("drop=0.05");
  expect_about(of(s, WireFault::drop), 0.05 * kPackets);
  EXPECT_EQ(s.arrived.size(), kPackets - of(s, WireFault::drop));
  EXPECT_TRUE(std::ranges::is_sorted(s.arrived));
  EXPECT_EQ(s.log.size(), of(s, WireFault::drop));
  EXPECT_NE(s.log.at(0).find(" s drop to " + name_of(to_) + " packet "), std::string::npos) << s.log.at(0);
}

TEST_P(RoceFaultyCarrier, WhatIsCorruptIsFoundByTheIcrc) {
  const Sent s = send("corrupt=0.05");
  expect_about(of(s, WireFault::corrupt), 0.05 * kPackets);
  EXPECT_EQ(s.receiver.bad_icrc, of(s, WireFault::corrupt));
  EXPECT_EQ(s.arrived.size(), kPackets - of(s, WireFault::corrupt));
}

TEST_P(RoceFaultyCarrier, DuplicatesArriveTwice) {
  const Sent s = send("duplicate=0.05");
  expect_about(of(s, WireFault::duplicate), 0.05 * kPackets);
  EXPECT_EQ(s.arrived.size(), kPackets + of(s, WireFault::duplicate));
  EXPECT_TRUE(std::ranges::is_sorted(s.arrived));
  EXPECT_EQ(std::set<u64>(s.arrived.begin(), s.arrived.end()).size(), kPackets);
}

TEST_P(RoceFaultyCarrier, ReorderedPacketsComeBehindUpToFourOthers) {
  const Sent s = send("reorder=0.05");
  expect_about(of(s, WireFault::reorder), 0.05 * kPackets);
  ASSERT_EQ(s.arrived.size(), kPackets);
  u64 behind = 0;
  for (std::size_t i = 1; i < s.arrived.size(); ++i)
    if (s.arrived[i] < s.arrived[i - 1]) ++behind;
  // Two that are held back at a time may come in order again.
  EXPECT_GE(behind, of(s, WireFault::reorder) * 8 / 10);
  EXPECT_LE(behind, of(s, WireFault::reorder));
  EXPECT_EQ(std::set<u64>(s.arrived.begin(), s.arrived.end()).size(), kPackets);
}

TEST_P(RoceFaultyCarrier, DelayedPacketsComeLateAndWithoutOthers) {
  CarrierOptions o;
  o.kind = GetParam();
  o.self = to_;
  const auto to = make_carrier(o);
  o.self = from_;
  o.faults = "delay=1:30ms";
  const auto from = make_carrier(o);
  const u64 begun = wall_ns();
  ASSERT_TRUE(test::put(from->path(to_), numbered(7)));
  from->flush();
  EXPECT_GE(from->next_due_ns(), begun + 30'000'000);
  EXPECT_NE(from->next_due_ns(), ~u64{0});
  Received got;
  EXPECT_TRUE(eventually([&] {
    if (wall_ns() >= from->next_due_ns()) from->flush();
    return got.take(*to);
  }));
  EXPECT_GE(wall_ns(), begun + 30'000'000);
  EXPECT_EQ(from->next_due_ns(), ~u64{0});
}

TEST_P(RoceFaultyCarrier, TheSameSeedHasTheSameFaults) {
  const std::string all = "drop=0.01,corrupt=0.01,duplicate=0.01,reorder=0.01,delay=0.01:100us";
  const auto without_times = [](const Sent& s) {
    std::set<std::string> lines;
    for (const std::string& line : s.log) lines.insert(line.substr(line.find(" s ")));
    return lines;
  };
  const Sent a = send(all, 3), b = send(all, 3), c = send(all, 4);
  EXPECT_EQ(without_times(a), without_times(b));
  EXPECT_NE(without_times(a), without_times(c));
  u64 faults = 0;
  for (const u64 n : a.sender.faults) faults += n;
  EXPECT_EQ(a.log.size(), faults);
  EXPECT_EQ(a.arrived.size(),
            kPackets + of(a, WireFault::duplicate) - of(a, WireFault::drop) - of(a, WireFault::corrupt));
}

TEST_P(RoceFaultyCarrier, ALogThatCannotBeWrittenIsRefused) {
  CarrierOptions o;
  o.kind = GetParam();
  o.self = from_;
  o.faults = "drop=0.1";
  o.fault_log = "/nonexistent/log";
  EXPECT_THROW(static_cast<void>(make_carrier(o)), Error);
}

}  // namespace
}  // namespace doorbell::roce
