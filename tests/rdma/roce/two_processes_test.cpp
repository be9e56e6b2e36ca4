// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Carriers of two processes: order under load, a peer that is stopped, one that dies, and one of another
// user.
#include <sys/prctl.h>
#include <sys/wait.h>

#include <csignal>
#include <functional>

#include "carrier_rig.hpp"

namespace doorbell::roce {
namespace {

using doorbell::test::eventually;

/// A process that runs `body` and ends with its result; killed with this object.
class Process {
 public:
  explicit Process(const std::function<int()>& body) : pid_(fork()) {
    if (pid_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    _exit(body());
  }
  ~Process() { end(); }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void signal(int number) const { kill(pid_, number); }
  void end() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  /// Its exit code.
  int wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  pid_t pid_;
};

std::vector<u8> numbered(u64 number, std::size_t bytes) {
  std::vector<u8> p = test::packet(number, bytes);
  std::memcpy(p.data() + 12, &number, sizeof number);
  return p;
}
u64 number_of(const Arrival& a) {
  u64 number = 0;
  std::memcpy(&number, a.bytes.data() + 12, sizeof number);
  return number;
}

class RoceTwoProcesses : public ::testing::TestWithParam<CarrierKind> {
 protected:
  static CarrierOptions options(Endpoint self) {
    CarrierOptions o;
    o.self = self;
    o.kind = GetParam();
    return o;
  }
  static constexpr std::size_t kByRing = 32, kByUdp = 48;  // bytes of an answer

  /// Sends the numbers of packets back, `most` of them.
  int echo(u64 most) const {
    const auto carrier = make_carrier(options(far_));
    Path& back = carrier->path(near_);
    u64 done = 0;
    const u64 end = wall_ns() + static_cast<u64>(doorbell::test::kWaitLimitS * 1e9);
    while (done < most && wall_ns() < end) {
      for (const Arrival& a : carrier->receive()) {
        while (!test::put(back, numbered(number_of(a), back.lossless() ? kByRing : kByUdp))) {
        }
        ++done;
      }
      carrier->flush();
    }
    return done == most ? 0 : 1;
  }
  /// A packet there and back, sent again until it comes, as over a wire that loses. The answer's bytes; 0:
  /// none came.
  std::size_t answer(Carrier& carrier, u64 number) const {
    Path& path = carrier.path(far_);
    u64 next = 0;
    std::size_t bytes = 0;
    static_cast<void>(eventually([&] {
      if (wall_ns() >= next) {
        static_cast<void>(test::put(path, numbered(number, 64)));
        carrier.flush();
        next = wall_ns() + 20'000'000;
      }
      for (const Arrival& a : carrier.receive())
        if (number_of(a) == number) bytes = a.bytes.size();
      return bytes != 0;
    }));
    return bytes;
  }
  /// Where there are rings, both ways have theirs: UDP may carry the first packets, and be late.
  bool meets(Carrier& carrier, u64 number = 0) const {
    return eventually([&] {
      const std::size_t bytes = answer(carrier, number);
      return GetParam() == CarrierKind::udp ? bytes != 0 : bytes == kByRing && carrier.path(far_).lossless();
    });
  }

  const Endpoint near_ = test::fresh_endpoint(), far_ = test::fresh_endpoint();
};

INSTANTIATE_TEST_SUITE_P(All, RoceTwoProcesses,
                         ::testing::Values(CarrierKind::automatic, CarrierKind::ring, CarrierKind::udp),
                         [](const auto& kind) { return std::string(test::name_of(kind.param)); });

TEST_P(RoceTwoProcesses, ARingLosesNothingAndKeepsTheOrder) {
  constexpr u64 kPackets = 4'000;
  constexpr u64 kAhead = 64;  // as an engine has a window where packets can be lost
  Process far([&] { return echo(~u64{0}); });
  const auto carrier = make_carrier(options(near_));
  // The first ones are for nobody until the other process is there.
  Path& path = carrier->path(far_);
  ASSERT_TRUE(meets(*carrier));
  while (!carrier->receive().empty()) {
  }
  u64 sent = 1, next = 1, echoes = 0;
  EXPECT_TRUE(eventually([&] {
    for (int i = 0; i < 20 && sent < kPackets && sent - next < kAhead; ++i) {
      if (!test::put(path, numbered(sent, 64 + sent % 64 * 64))) break;
      ++sent;
    }
    carrier->flush();
    for (const Arrival& a : carrier->receive()) {
      const u64 n = number_of(a);
      if (n == 0) continue;  // one that was sent again
      EXPECT_EQ(n, next);
      next = n + 1;
      ++echoes;
    }
    return echoes == kPackets - 1 || ::testing::Test::HasFailure();
  })) << echoes;
  EXPECT_EQ(path.lossless(), GetParam() != CarrierKind::udp);
}

TEST_P(RoceTwoProcesses, APeerThatDiesAndComesAgainIsReached) {
  const auto carrier = make_carrier(options(near_));
  for (u64 life = 1; life <= 5; ++life) {
    Process far([&] { return echo(~u64{0}); });
    ASSERT_TRUE(meets(*carrier, life)) << life;
    far.end();
    // While it is away nothing is held up.
    for (u64 i = 0; i < 2000; ++i)
      ASSERT_TRUE(eventually([&] {
        static_cast<void>(carrier->receive());
        const bool put = test::put(carrier->path(far_), numbered(1000 + i, 1024));
        carrier->flush();
        return put;
      }));
  }
  EXPECT_GE(carrier->counters().rings_opened, GetParam() == CarrierKind::udp ? 0U : 5U);
}

/// A stopped process is slow, not dead: over a ring nothing is lost.
TEST_P(RoceTwoProcesses, AStoppedPeerGoesOnLater) {
  if (GetParam() == CarrierKind::udp) GTEST_SKIP() << "UDP loses packets for a stopped process";
  const auto carrier = make_carrier(options(near_));
  Process far([&] { return echo(~u64{0}); });
  ASSERT_TRUE(meets(*carrier));
  while (!carrier->receive().empty()) {
  }
  far.signal(SIGSTOP);
  Path& path = carrier->path(far_);
  u64 sent = 1;
  while (test::put(path, numbered(sent, 4096))) ++sent;
  carrier->flush();
  for (int i = 0; i < 1000; ++i) {
    static_cast<void>(carrier->receive());
    EXPECT_FALSE(test::put(path, numbered(sent, 4096)));
    carrier->flush();
  }
  far.signal(SIGCONT);
  u64 next = 1;
  EXPECT_TRUE(eventually([&] {
    for (const Arrival& a : carrier->receive()) {
      if (number_of(a) == 0) continue;
      EXPECT_EQ(number_of(a), next++);
    }
    return next == sent;
  })) << next;
}

/// Its packets come, as they would from another machine; its ring is not taken.
TEST_P(RoceTwoProcesses, AnotherUserHasNoRing) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const auto carrier = make_carrier(options(near_));
  Process far([&] {
    if (setgid(65534) != 0 || setuid(65534) != 0) return 1;
    const auto other = make_carrier(options(far_));
    Path& path = other->path(near_);
    static_cast<void>(test::put(path, numbered(1, 64)));
    other->flush();
    const CarrierCounters c = other->counters();
    return c.rings_opened == 0 && !path.lossless() && c.unsent == (GetParam() == CarrierKind::ring ? 1U : 0U)
               ? 0
               : 2;
  });
  EXPECT_EQ(far.wait(), 0);
  test::Received got;
  if (GetParam() != CarrierKind::ring) EXPECT_TRUE(got.wait_for(*carrier, 1));
  else
    for (int i = 0; i < 200; ++i) got.take(*carrier);
  EXPECT_EQ(carrier->counters().rings_accepted, 0U);
}

}  // namespace
}  // namespace doorbell::roce
