// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Raw frames over DPDK's devices without hardware. One thread is both ends: DPDK's libraries are not compiled
// for the sanitizers.

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "errors.hpp"
#include "eventually.hpp"
#include "net/bench_run.hpp"
#include "net/dpdk/engine.hpp"
#include "net/dpdk/loader.hpp"
#include "net/flow/relay.hpp"
#include "net/links/namespaces.hpp"
#include "raw_packets.hpp"
#include "system/child.hpp"
#include "system/descriptor.hpp"

namespace doorbell::net {
namespace {

using test::error_of;
using test::eventually;
using test::expect_says;
using test_packets::Checker;
using test_packets::expect_all_arrive;
using test_packets::Sender;

std::unique_ptr<Link> link_of(const std::string& spec) {
  return open_link({.spec = spec});
}

class Dpdk : public ::testing::Test {
 protected:
  void SetUp() override {
    const BackendStatus status = dpdk_engine().status();
    if (!status.usable) GTEST_SKIP() << "DPDK cannot be used here: " << status.detail;
  }
  std::unique_ptr<Stream> open(const StreamRequest& request) { return dpdk_engine().open(request, *link_); }
  std::unique_ptr<Link> link_;
};

class DpdkRing : public Dpdk {
 protected:
  DpdkRing() { link_ = link_of("ring"); }
};

TEST_F(DpdkRing, EveryPacketArrivesOnceAndUnchanged) {
  for (const u32 bytes : {32u, 33u, 1000u, 8000u, 8972u}) {
    SCOPED_TRACE(bytes);
    const auto stream = open({.payload_bytes = bytes});
    expect_all_arrive(*stream, 3000, bytes);
  }
}

TEST_F(DpdkRing, SlotsAreUsedMoreOftenThanTheirReturnsAreCounted) {
  // The count of a slot's returns wraps at 256.
  const auto stream = open({.payload_bytes = 32});
  expect_all_arrive(*stream, 257 * kTemplates, 32);
}

TEST_F(DpdkRing, ManyFlowsToFewQueues) {
  const auto stream = open({.payload_bytes = 256, .flows = 5, .rx_queues = 2});
  ASSERT_EQ(stream->tx.size(), 5u);
  ASSERT_EQ(stream->rx.size(), 2u);
  expect_all_arrive(*stream, 1500, 256);
}

TEST_F(DpdkRing, EachEncapsulationArrives) {
  test_packets::expect_each_encapsulation_arrives(
      {.flows = 5, .rx_queues = 2}, [this](const StreamRequest& r) { return open(r); }, 1000);
}

TEST_F(DpdkRing, StreamsFollowEachOther) {
  // EAL is started once, and devices come and go.
  for (int i = 0; i < 5; ++i) {
    const auto stream = open({.payload_bytes = 128});
    expect_all_arrive(*stream, 500, 128);
  }
}

TEST_F(DpdkRing, AFullRingAcceptsNothingAndLosesNothing) {
  const auto stream = open({.payload_bytes = 64});
  Sender sender(*stream->tx[0], 0);
  while (sender.send(64, 64) > 0) continue;
  EXPECT_GT(sender.sent(), 900u);
  EXPECT_FALSE(stream->tx[0]->finish()) << "all of it is still in the ring";
  EXPECT_EQ(stream->tx[0]->completed(), 0u);
  Checker checker(*stream->rx[0], 1);
  while (checker.received() < sender.sent() && checker.receive(64) > 0) continue;
  EXPECT_EQ(checker.received(), sender.sent());
  EXPECT_EQ(checker.wrong(), 0u);
  EXPECT_TRUE(stream->tx[0]->finish());
  EXPECT_GT(sender.send(64, 64), 0u) << "there is room again";
}

TEST_F(DpdkRing, FactsSayWhatWasSetUp) {
  const auto stream = open({.payload_bytes = 64});
  const nlohmann::ordered_json f = stream->facts();
  EXPECT_EQ(f.at("driver"), "ring");
  EXPECT_EQ(f.at("tx").at("driver"), "net_ring");
  expect_says(f.at("dpdk"), "DPDK 2");
  expect_says(f.at("copies"), "pointers");
}

TEST_F(DpdkRing, HeaderDataSplitIsRefusedWhereNoDriverOffersIt) {
  expect_says(error_of([&] { (void)open({.split = true}); }), "DPDK's ring driver does not offer it");
}

/// A relay lies around each receive queue then.
TEST_F(Dpdk, FaultsAreFound) {
  for (const char* link : {"ring", "memif"})
    for (const model::Fault fault : relay_faults()) {
      SCOPED_TRACE(fmt::format("{} {}", link, model::name(fault)));
      BenchOptions o = options_of("raw", 1000, 1000);
      o.engine = "dpdk";
      o.link = link;
      o.timeout_s = 60;
      o.faults.probability[static_cast<u32>(fault)] = 0.05;
      const measure::BenchResult r = run_bench(o, {});
      const auto& cell = r.cell();
      EXPECT_GT(cell.extra.at("model").at("injected").at(std::string(model::name(fault))), 0u);
      EXPECT_EQ(cell.extra.at("drops").at("unexplained"), 0u);
      EXPECT_GT(cell.extra.at("stream").at("rx_buffers_each_queue"), 0u);
      const bool harmless = fault == model::Fault::delay || fault == model::Fault::reorder;
      EXPECT_EQ(r.failed, !harmless) << cell.extra.dump(1);
    }
}

TEST_F(Dpdk, NullTakesEverythingAndItsOwnPacketsAreNoneOfOurs) {
  link_ = link_of("null");
  const auto stream = open({.payload_bytes = 1000});
  Sender sender(*stream->tx[0], 0);
  ASSERT_TRUE(eventually([&] { return sender.send(64, 1000), sender.sent() >= 5000; }));
  EXPECT_TRUE(stream->tx[0]->finish());
  Checker checker(*stream->rx[0], 1);
  EXPECT_EQ(checker.receive(1000), 0u);
  EXPECT_GT(stream->rx[0]->unmatched(), 0u);
  EXPECT_EQ(stream->rx[0]->drops().relay, sender.sent());
}

// --- memif: both ends in one process, or one in each of two -------------------------------------------

constexpr const char* kSocketVariable = "DOORBELL_TEST_MEMIF_SOCKET";
constexpr const char* kLifeVariable = "DOORBELL_TEST_MEMIF_LIFE";
constexpr u32 kMemifFlows = 3, kMemifPackets = 4000, kMemifBytes = 8000;

class DpdkMemif : public Dpdk {
 protected:
  static StreamRequest request(bool sends) {
    return {.payload_bytes = kMemifBytes,
            .flows = kMemifFlows,
            .rx_queues = 2,
            .engine = sends ? "dpdk" : "dpdk:buffer=2048",
            .has_tx = sends,
            .has_rx = !sends};
  }
};

TEST_F(DpdkMemif, BothEndsInOneProcess) {
  const std::filesystem::path socket =
      std::filesystem::temp_directory_path() / ("doorbell-memif-both-" + std::to_string(getpid()));
  link_ = link_of("memif:socket=" + socket.string());
  for (const u32 bytes : {32u, 1000u, 8000u}) {
    SCOPED_TRACE(bytes);
    const auto stream = open({.payload_bytes = bytes, .flows = 3, .rx_queues = 2});
    expect_all_arrive(*stream, 3000, bytes);
    // Nobody else may have it meanwhile.
    expect_says(error_of([&] { (void)open({.payload_bytes = bytes, .has_tx = false}); }),
                "another process uses it");
  }
  EXPECT_FALSE(std::filesystem::exists(socket));
}

/// DPDK's driver hears of the sender's end in a thread of its own, while the receiver ends too.
TEST_F(DpdkMemif, BothEndsComeAndGo) {
  const std::filesystem::path socket =
      std::filesystem::temp_directory_path() / ("doorbell-memif-again-" + std::to_string(getpid()));
  link_ = link_of("memif:socket=" + socket.string());
  for (u32 i = 0; i < 20; ++i) {
    const auto stream = open({.payload_bytes = 1000});
    EXPECT_EQ(stream->tx.size(), 1u);
    EXPECT_FALSE(stream->tx[0]->broken());
  }
}

/// The work of the other process, which lives as long as the test holds the other end of a pipe.
TEST_F(DpdkMemif, DISABLED_SendingProcess) {
  const char* const socket = std::getenv(kSocketVariable);
  ASSERT_NE(socket, nullptr);
  link_ = link_of(std::string("memif:socket=") + socket);
  const auto stream = open(request(true));
  std::vector<Sender> senders;
  for (u16 f = 0; f < kMemifFlows; ++f) senders.emplace_back(*stream->tx[f], f);
  ASSERT_TRUE(eventually([&] {
    bool done = true;
    for (Sender& s : senders) {
      s.send(static_cast<u32>(std::min<u64>(32, kMemifPackets - s.sent())), kMemifBytes);
      done = done && s.sent() == kMemifPackets;
    }
    return done;
  }));
  // Packets lie in memory that ends with this process.
  pollfd life = {.fd = std::atoi(std::getenv(kLifeVariable)), .events = 0, .revents = 0};
  EXPECT_EQ(poll(&life, 1, static_cast<int>(test::kWaitLimitS * 1000)), 1);
}

/// Sends in a process of its own, which comes first and waits for the socket.
class OtherProcess {
 public:
  explicit OtherProcess(const std::string& socket) {
    int life[2];
    EXPECT_EQ(pipe2(life, O_CLOEXEC), 0);
    theirs_ = Descriptor(life[1]), ours_ = Descriptor(life[0]);
    setenv(kSocketVariable, socket.c_str(), 1);
    setenv(kLifeVariable, std::to_string(theirs_.get()).c_str(), 1);
    sender.emplace(std::vector<std::string>{std::filesystem::read_symlink("/proc/self/exe").string(),
                                            "--gtest_filter=DpdkMemif.DISABLED_SendingProcess",
                                            "--gtest_also_run_disabled_tests", "--gtest_output="},
                   std::array{theirs_.get()});
  }
  void end() {
    ours_.reset();
    EXPECT_TRUE(sender->wait(test::kWaitLimitS));
    EXPECT_EQ(sender->exit_code(), 0) << sender->output() << sender->errors();
  }
  std::optional<Child> sender;

 private:
  Descriptor theirs_, ours_;
};

TEST_F(DpdkMemif, EveryPacketOfAnotherProcessArrivesOnceAndUnchanged) {
  const std::filesystem::path socket =
      std::filesystem::temp_directory_path() / ("doorbell-memif-" + std::to_string(getpid()));
  link_ = link_of("memif:socket=" + socket.string());
  OtherProcess other(socket);
  {
    const auto stream = open(request(false));
    ASSERT_TRUE(stream->tx.empty());
    std::vector<Checker> checkers;
    for (auto& q : stream->rx) checkers.emplace_back(*q, kMemifFlows);
    const auto all = [&] {
      u64 received = 0;
      for (Checker& c : checkers) c.receive(kMemifBytes), received += c.received();
      return received >= u64{kMemifFlows} * kMemifPackets || other.sender->ended();
    };
    EXPECT_TRUE(eventually(all));
    for (u32 f = 0; f < kMemifFlows; ++f) {
      const std::vector<u32>& seen = checkers[f % 2].of_flow(f);
      EXPECT_EQ(std::ranges::count(seen, 1u), kMemifPackets) << "flow " << f;
      EXPECT_EQ(seen.size(), kMemifPackets);
    }
    for (Checker& c : checkers) {
      EXPECT_EQ(c.wrong(), 0u);
      EXPECT_EQ(c.out_of_order(), 0u);
      EXPECT_EQ(c.queue().drops().sum(), 0u);
      EXPECT_EQ(c.queue().unmatched(), 0u);
      EXPECT_FALSE(c.queue().ended());
    }
    // Each frame came in four buffers.
    EXPECT_EQ(stream->facts().at("frames_joined"), u64{kMemifFlows} * kMemifPackets);
    other.end();
    EXPECT_TRUE(eventually([&] { return stream->rx[0]->ended(); }));
  }
  std::filesystem::remove(socket);
}

/// Frames that come in parts are put together in buffers of this program. Who keeps all of them loses the
/// next.
TEST_F(DpdkMemif, FramesWithoutABufferToJoinThemInAreCounted) {
  const std::filesystem::path socket =
      std::filesystem::temp_directory_path() / ("doorbell-memif-kept-" + std::to_string(getpid()));
  link_ = link_of("memif:socket=" + socket.string());
  OtherProcess other(socket);
  {
    const auto stream = open(request(false));
    RxQueue& queue = *stream->rx[0];
    std::deque<Burst> kept;
    u64 received = 0, third = 0;
    const auto all = [&] {
      Burst burst(32);
      received += queue.receive(burst);
      if (burst.count > 0) kept.push_back(std::move(burst));
      // The third flow's go on.
      Burst others(32);
      third += stream->rx[1]->receive(others);
      stream->rx[1]->release(others);
      const bool of_two = received + queue.drops().application >= 2 * kMemifPackets;
      return (of_two && third >= kMemifPackets) || other.sender->ended();
    };
    EXPECT_TRUE(eventually(all));
    const Drops d = queue.drops();
    EXPECT_GT(d.application, 0u);
    EXPECT_EQ(d.application + received, 2 * kMemifPackets) << "two flows";
    EXPECT_EQ(d.sum(), d.application);
    EXPECT_EQ(queue.unmatched(), 0u);
    for (Burst& b : kept) queue.release(b);
    other.end();
  }
  std::filesystem::remove(socket);
}

// --- interfaces of the kernel -------------------------------------------------------------------------

class DpdkInterfaces : public Dpdk {
 protected:
  void open_link_or_skip(const std::string& spec) {
    for (const LinkKind& kind : link_kinds()) {
      if (kind.name != spec.substr(0, spec.find(':'))) continue;
      const BackendStatus status = kind.status();
      if (!status.usable) GTEST_SKIP() << spec << " cannot be made here: " << status.detail;
    }
    try {
      // Refused when a test before this one has started DPDK's threads.
      enter_user_namespace_if_needed();
    } catch (const Error& e) {
      GTEST_SKIP() << e.what();
    }
    link_ = link_of(spec);
  }

  /// The kernel sends frames of its own over interfaces, so some are unmatched.
  void expect_all_arrive_among_others(Stream& stream, u32 flows, u32 packets, u32 bytes,
                                      bool aligned = true) {
    std::vector<Sender> senders;
    for (u16 f = 0; f < flows; ++f) senders.emplace_back(*stream.tx[f], f);
    Checker checker(*stream.rx[0], flows);
    if (!aligned) checker.accept_unaligned();
    EXPECT_TRUE(eventually([&] {
      for (Sender& s : senders)
        if (s.sent() < packets && s.sent() < checker.of_flow(s.flow()).size() + 32)
          s.send(static_cast<u32>(std::min<u64>(16, packets - s.sent())), bytes);
      checker.receive(bytes);
      return checker.received() >= u64{packets} * flows;
    }));
    EXPECT_EQ(checker.wrong(), 0u);
    EXPECT_EQ(stream.rx[0]->drops().sum(), 0u);
    for (Sender& s : senders) {
      EXPECT_EQ(std::ranges::count(checker.of_flow(s.flow()), 1u), packets);
      EXPECT_TRUE(eventually([&] { return s.queue().finish(); }));
      EXPECT_EQ(s.queue().completed(), packets);
    }
  }
};

TEST_F(DpdkInterfaces, VethByAfPacket) {
  open_link_or_skip("veth");
  if (IsSkipped()) return;
  for (const u32 bytes : {32u, 1000u, 8972u}) {
    SCOPED_TRACE(bytes);
    const auto stream = open({.payload_bytes = bytes, .flows = 2});
    expect_all_arrive_among_others(*stream, 2, 1000, bytes);
  }
}

TEST_F(DpdkInterfaces, WhatARingOfTheKernelDropsIsCounted) {
  open_link_or_skip("veth");
  if (IsSkipped()) return;
  const auto stream = open({.payload_bytes = 1000});
  Sender sender(*stream->tx[0], 0);
  // More than the receiver's ring holds, which nobody empties meanwhile.
  constexpr u32 kPackets = 20'000;
  ASSERT_TRUE(eventually([&] {
    sender.send(static_cast<u32>(std::min<u64>(64, kPackets - sender.sent())), 1000);
    return sender.sent() == kPackets;
  }));
  ASSERT_TRUE(eventually([&] { return stream->tx[0]->finish(); }));
  Checker checker(*stream->rx[0], 1);
  const auto lost = [&] {
    while (checker.receive(1000) > 0) continue;
    return kPackets - checker.received();
  };
  EXPECT_TRUE(eventually([&] { return stream->rx[0]->drops().ring >= lost(); }));
  EXPECT_GT(lost(), 0u);
  EXPECT_EQ(checker.wrong(), 0u);
  // The kernel's own frames may be among the dropped.
  EXPECT_LE(stream->rx[0]->drops().ring, lost() + 50);
}

TEST_F(DpdkInterfaces, VethByAfXdp) {
  open_link_or_skip("veth:mtu=3000");
  if (IsSkipped()) return;
  std::unique_ptr<Stream> stream;
  try {
    stream = open({.payload_bytes = 1000, .engine = "dpdk:af_xdp"});
  } catch (const Error& e) {
    GTEST_SKIP() << "AF_XDP cannot be used here: " << e.what();
  }
  expect_all_arrive_among_others(*stream, 1, 1000, 1000, false);
}

TEST_F(DpdkInterfaces, Tap) {
  if (access("/dev/net/tun", R_OK | W_OK) != 0 || geteuid() != 0)
    GTEST_SKIP() << "a tap needs /dev/net/tun and root";
  link_ = link_of("tap");
  const auto stream = open({.payload_bytes = 1400});
  expect_all_arrive_among_others(*stream, 1, 1000, 1400);
}

// --- the program's threads and signals ----------------------------------------------------------------

std::vector<int> handled_signals() {
  std::vector<int> handled;
  for (int s = 1; s < SIGRTMIN; ++s) {
    struct sigaction action {};
    if (sigaction(s, nullptr, &action) == 0 && action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN)
      handled.push_back(s);
  }
  return handled;
}

volatile sig_atomic_t signal_thread = 0;

TEST_F(DpdkRing, LeavesSignalsAndProcessorsToTheProgram) {
  cpu_set_t before, after;
  CPU_ZERO(&before);
  CPU_ZERO(&after);
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  const auto stream = open({.payload_bytes = 64});
  expect_all_arrive(*stream, 100, 64);
  ASSERT_EQ(sched_getaffinity(0, sizeof after, &after), 0);
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
  EXPECT_EQ(handled_signals(), std::vector<int>{});
  // DPDK's threads block what the terminal sends: only this one is left for it.
  struct sigaction action {
  }, old{};
  action.sa_handler = [](int) { signal_thread = gettid(); };
  ASSERT_EQ(sigaction(SIGINT, &action, &old), 0);
  for (int i = 0; i < 50; ++i) {
    signal_thread = 0;
    ASSERT_EQ(kill(getpid(), SIGINT), 0);
    ASSERT_TRUE(eventually([] { return signal_thread != 0; }));
    EXPECT_EQ(signal_thread, gettid());
  }
  ASSERT_EQ(sigaction(SIGINT, &old, nullptr), 0);
  u32 others = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    if (task.path().filename() == std::to_string(gettid())) continue;
    ++others;
    std::ifstream file(task.path() / "status");
    const std::string status{std::istreambuf_iterator<char>(file), {}};
    const std::string blocked = status.substr(status.find("SigBlk:") + 7);
    EXPECT_TRUE(std::stoull(blocked, nullptr, 16) >> (SIGINT - 1) & 1) << status;
  }
  EXPECT_GT(others, 0u) << "DPDK has no threads here: the test looks in the wrong place";
}

}  // namespace
}  // namespace doorbell::net
