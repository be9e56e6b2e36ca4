// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The parts of a process that a run needs: signals, CPU time, memory.
#include <doorbell/error.hpp>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

#include "measure/cpu_time.hpp"
#include "measure/stop.hpp"
#include "system/available_memory.hpp"
#include "system/child.hpp"
#include "system/clock.hpp"
#include "system/mapping_guard.hpp"
#include "system/run_identity.hpp"

namespace doorbell {
namespace {

using measure::StopFlag;
constexpr u64 kS = 1'000'000'000;

TEST(Stop, TheFirstSignalAsks) {
  StopFlag f;
  EXPECT_FALSE(f.requested());
  EXPECT_TRUE(f.request(SIGTERM, 5 * kS));
  EXPECT_TRUE(f.requested());
  EXPECT_EQ(f.signal(), SIGTERM);
}

TEST(Stop, AFurtherOneCountsOnlyLater) {
  StopFlag f;
  EXPECT_TRUE(f.request(SIGINT, 5 * kS));
  EXPECT_TRUE(f.request(SIGINT, 5 * kS));
  EXPECT_TRUE(f.request(SIGINT, 6 * kS - 1));
  EXPECT_FALSE(f.gave_up());
  EXPECT_TRUE(f.request(SIGINT, 6 * kS));
  EXPECT_TRUE(f.gave_up());
  EXPECT_TRUE(f.request(SIGINT, 7 * kS - 1));
  EXPECT_FALSE(f.request(SIGINT, 7 * kS)) << "the third ends the process";
  EXPECT_EQ(f.signal(), SIGINT);
}

TEST(Stop, AnotherKindIsTheSameRequest) {
  StopFlag f;
  EXPECT_TRUE(f.request(SIGINT, 5 * kS));
  EXPECT_TRUE(f.request(SIGTERM, 60 * kS));  // as a supervisor does that waits before it insists
  EXPECT_TRUE(f.request(SIGTERM, 60 * kS));  // to the process, and to its group
  EXPECT_EQ(f.signal(), SIGINT);
  EXPECT_FALSE(f.gave_up());
  EXPECT_TRUE(f.request(SIGTERM, 61 * kS));
  EXPECT_TRUE(f.gave_up());
  EXPECT_FALSE(f.request(SIGINT, 62 * kS));
}

TEST(Stop, InstalledItTakesHangUpsToo) {
  StopFlag f;
  f.install();
  (void)std::raise(SIGHUP);
  EXPECT_EQ(f.signal(), SIGHUP);
  f.uninstall();
}

TEST(Stop, AnIgnoredHangUpStaysIgnored) {
  const auto old = std::signal(SIGHUP, SIG_IGN);
  {
    StopFlag f;
    f.install();
    (void)std::raise(SIGHUP);
    EXPECT_FALSE(f.requested());
  }
  (void)std::signal(SIGHUP, old);
}

rusage used(long user_us, long system_us) {
  rusage r{};
  r.ru_utime.tv_usec = user_us;
  r.ru_stime.tv_usec = system_us;
  return r;
}

TEST(CpuTime, IsByTheClockAndDividedByTheKernel) {
  const auto c = measure::split_cpu_time("t", 2'000'000, used(100, 50), used(1300, 450));
  EXPECT_EQ(c.name, "t");
  EXPECT_DOUBLE_EQ(c.user_s, 2e-3 * 0.75);
  EXPECT_DOUBLE_EQ(c.system_s, 2e-3 * 0.25);
  // Shorter than a tick: it is not lost.
  const auto none = measure::split_cpu_time("t", 5'000, used(0, 0), used(0, 0));
  EXPECT_DOUBLE_EQ(none.user_s, 5e-6);
  EXPECT_EQ(none.system_s, 0);
}

TEST(CpuTime, CountsWhatIsFarBelowATick) {
  const measure::CpuTime t;
  const u64 begin = thread_cpu_ns();
  while (thread_cpu_ns() - begin < 50'000) {
  }
  const auto c = t.spent("t");
  EXPECT_GE(c.user_s + c.system_s, 50e-6);
}

/// A run without an end is one of 1e15 s: it must not come out as no time at all.
TEST(Clock, ATimeBeyondItsRangeNeverComes) {
  EXPECT_EQ(ticks_of(2, 0.5), 4'000'000'000u);
  EXPECT_EQ(ticks_of(0, 0.5), 0u);
  for (const double seconds : {1e10, 1e11, 1e15, 1e300})
    for (const double ns : {0.25, 0.5, 1.0}) EXPECT_GE(ticks_of(seconds, ns), u64{1} << 62) << seconds;
  EXPECT_GE(HostClock::ticks(1e15), u64{1} << 62);
}

class Machine : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "doorbell-memory-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void put(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  std::filesystem::path root_;
};

TEST_F(Machine, HasWhatItsKernelSays) {
  EXPECT_FALSE(available_memory(root_));
  put("proc/meminfo", "MemTotal: 8000 kB\nMemFree: 100 kB\nMemAvailable:    2000 kB\n");
  EXPECT_EQ(available_memory(root_), u64{2000} * 1024);
}

TEST_F(Machine, HasWhatTheTightestGroupLeaves) {
  put("proc/meminfo", "MemAvailable: 2000 kB\n");
  put("proc/self/cgroup", "0::/a/b\n");
  put("sys/fs/cgroup/a/b/memory.max", "max\n");
  put("sys/fs/cgroup/a/b/memory.current", "5000\n");
  EXPECT_EQ(available_memory(root_), u64{2000} * 1024);
  put("sys/fs/cgroup/a/memory.max", "100000\n");
  put("sys/fs/cgroup/a/memory.current", "40000\n");
  EXPECT_EQ(available_memory(root_), u64{60000});
  put("sys/fs/cgroup/a/b/memory.max", "4000\n");
  EXPECT_EQ(available_memory(root_), u64{0});
}

TEST(Memory, MoreThanThereIsIsRefusedWithItsSum) {
  EXPECT_NO_THROW(require_memory(1 << 20, "--x", "a lot"));
  try {
    require_memory(u64{1} << 60, "--x", "64 queues x 18 PB");
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("--x"), std::string::npos);
    EXPECT_NE(std::string(e.what()).find("64 queues x 18 PB"), std::string::npos);
    EXPECT_EQ(e.code(), ExitCode::usage);
  }
}

/// Whether the process of this pidfd ends, which makes it readable.
bool ends(int pidfd) {
  pollfd end = {.fd = pidfd, .events = POLLIN, .revents = 0};
  return poll(&end, 1, 30'000) == 1;
}

TEST(ChildProcess, EndsWithTheProcessThatStartedIt) {
  int ends_of_pipe[2];
  ASSERT_EQ(pipe(ends_of_pipe), 0);
  const pid_t parent = fork();
  ASSERT_GE(parent, 0);
  if (parent == 0) {
    const Child sleeps({"sleep", "1000"});
    const pid_t pid = sleeps.pid();
    (void)!write(ends_of_pipe[1], &pid, sizeof pid);
    for (;;) pause();
  }
  pid_t child = 0;
  ASSERT_EQ(read(ends_of_pipe[0], &child, sizeof child), static_cast<ssize_t>(sizeof child));
  const int pidfd = static_cast<int>(syscall(SYS_pidfd_open, child, 0));
  ASSERT_GE(pidfd, 0);
  ASSERT_EQ(kill(parent, SIGKILL), 0);
  EXPECT_EQ(waitpid(parent, nullptr, 0), parent);
  EXPECT_TRUE(ends(pidfd));
  close(pidfd);
  close(ends_of_pipe[0]);
  close(ends_of_pipe[1]);
}

TEST(ChildProcess, SaysWhyItCannotBeStarted) {
  try {
    const Child none({"no-such-program-of-any-kind"});
    FAIL();
  } catch (const std::system_error& e) {
    EXPECT_EQ(e.code().value(), ENOENT);
  }
}

TEST(ChildProcess, PrintsAndEnds) {
  Child child({"sh", "-c", "echo out; echo err >&2; exit 3"});
  ASSERT_TRUE(child.wait(30));
  EXPECT_EQ(child.output(), "out\n");
  EXPECT_EQ(child.errors(), "err\n");
  EXPECT_EQ(child.exit_code(), 3);
}

TEST(MappingGuards, TakesWhatTheFileNoLongerHas) {
  const int fd = memfd_create("guarded", 0);
  constexpr std::size_t kBytes = 20480;
  ASSERT_EQ(ftruncate(fd, kBytes), 0);
  void* const p = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ASSERT_NE(p, MAP_FAILED);
  auto* const bytes = static_cast<volatile unsigned char*>(p);
  bytes[0] = 1;
  bytes[8192] = 2;
  const MappingGuard other(static_cast<unsigned char*>(p) + 12288, 4096);
  {
    const MappingGuard guard(p, 12288);
    EXPECT_FALSE(guard.lost());
    ASSERT_EQ(ftruncate(fd, 4096), 0);
    EXPECT_EQ(bytes[0], 1);
    EXPECT_FALSE(guard.lost());
    EXPECT_EQ(bytes[8192], 0);
    EXPECT_TRUE(guard.lost());
    bytes[4096] = 3;
    EXPECT_EQ(bytes[4096], 3);
    EXPECT_FALSE(other.lost());
  }
  EXPECT_DEATH(bytes[16384] = 4, "") << "what nobody guards ends the process, as without a handler";
  munmap(p, kBytes);
  close(fd);
}

/// Neither a clock nor a process makes two runs alike.
TEST(RunIdentity, NoTwoRunsHaveASequenceInCommon) {
  constexpr u64 kRun = u64{1} << 20;
  std::vector<u64> first;
  for (int i = 0; i < 100; ++i) first.push_back(first_sequence());
  std::ranges::sort(first);
  EXPECT_GT(first.front(), 0u);
  EXPECT_LT(first.back(), u64{1} << 63);
  for (std::size_t i = 1; i < first.size(); ++i) EXPECT_GT(first[i] - first[i - 1], kRun) << i;
}

}  // namespace
}  // namespace doorbell
