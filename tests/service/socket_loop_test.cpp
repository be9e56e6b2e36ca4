// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The loop of a server, with a protocol that answers each message with itself.
#include "service/socket_loop.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <fstream>
#include <future>
#include <memory>
#include <new>
#include <string>
#include <thread>

#include "errors.hpp"
#include "eventually.hpp"
#include "sanitized.hpp"
#include "service/lingering_file.hpp"
#include "system/open_files.hpp"
#include "system/passed_files.hpp"

namespace doorbell::service {
namespace {

class Echo final : public Protocol {
 public:
  explicit Echo(SocketLoop& loop) : loop_(loop) {}
  SocketId next_socket() override { return next_++; }
  int connect(SocketId, Peer) override {
    ++connected;
    return 0;
  }
  std::vector<u8> refusal(int) override { return {}; }
  void message(SocketId id, Message m) override {
    if (m.lost) ++lost;
    std::vector<u8> back(m.bytes.begin(), m.bytes.end());
    if (back.empty()) back.push_back('0');
    if (back[0] == 'e') loop_.finish(id);
    else if (back[0] == 'p') loop_.pause(id);
    loop_.send(id, std::move(back), {});
  }
  void closed(SocketId) override { ++closed_count; }
  void refused(std::string_view) override {}

  std::atomic<int> connected{0}, closed_count{0}, lost{0};

 private:
  SocketLoop& loop_;
  SocketId next_ = 1;
};

struct SocketLoopTest : testing::Test {
  SocketLoop loop{{.clients = {.longest = 512, .most_unsent = 2}, .workers = 2}};
  Echo echo{loop};
  std::thread thread;

  void SetUp() override {
    loop.serve(echo);
    thread = std::thread([this] { loop.run(); });
  }
  void TearDown() override {
    if (!thread.joinable()) return;
    loop.stop();
    thread.join();
  }
  Descriptor client() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    loop.post([this, ours = std::make_shared<Descriptor>(ends[0])] { loop.take_client(std::move(*ours)); });
    return Descriptor(ends[1]);
  }
  static bool send(const Descriptor& to, const std::string& text, std::span<const int> files = {}) {
    iovec part{const_cast<char*>(text.data()), text.size()};
    FileSpace room;
    msghdr m{};
    m.msg_iov = &part;
    m.msg_iovlen = 1;
    pass_files(m, files, room.bytes);
    return sendmsg(to.get(), &m, MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
  }
  /// The next message; empty at the end, or if there is none in time.
  static std::string next(const Descriptor& from) {
    pollfd p{from.get(), POLLIN, 0};
    if (poll(&p, 1, static_cast<int>(test::kWaitLimitS * 1000)) != 1) return "";
    std::array<char, 600> space;
    const ssize_t n = recv(from.get(), space.data(), space.size(), 0);
    return n <= 0 ? "" : std::string(space.data(), static_cast<std::size_t>(n));
  }
};

TEST_F(SocketLoopTest, AnswersAndNoticesWhoGoes) {
  Descriptor a = client();
  const Descriptor b = client();
  EXPECT_TRUE(send(a, "hello"));
  EXPECT_TRUE(send(b, "there"));
  EXPECT_EQ(next(a), "hello");
  EXPECT_EQ(next(b), "there");
  a.reset();
  EXPECT_TRUE(test::eventually([&] { return echo.closed_count == 1; }));
  EXPECT_TRUE(send(b, "end"));
  EXPECT_EQ(next(b), "end");  // what waits is sent before the socket is closed
  EXPECT_EQ(next(b), "");
  EXPECT_TRUE(test::eventually([&] { return echo.closed_count == 2; }));
}

TEST_F(SocketLoopTest, WhoIsPausedAndGoesIsNoticed) {
  Descriptor a = client();
  EXPECT_TRUE(send(a, "pause"));
  EXPECT_EQ(next(a), "pause");
  EXPECT_TRUE(send(a, "unread"));
  a.reset();
  EXPECT_TRUE(test::eventually([&] { return echo.closed_count == 1; }));
}

TEST_F(SocketLoopTest, WhoDoesNotReadHoldsNobodyUp) {
  const Descriptor deaf = client(), other = client();
  const std::string text(500, 'x');
  while (::send(deaf.get(), text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
  }
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(send(other, "me"));
    EXPECT_EQ(next(other), "me");
  }
}

/// Two protocols, with a listening socket each and numbers of one sequence.
TEST_F(SocketLoopTest, AFrontOfAnotherProtocolIsServedBesideAndCanBeGivenUp) {
  struct Other final : Protocol {
    explicit Other(SocketLoop& l) : loop(l) {}
    SocketId next_socket() override { return next++; }
    int connect(SocketId, Peer) override { return 0; }
    std::vector<u8> refusal(int) override { return {}; }
    void message(SocketId id, Message) override {
      int error = 0;
      const SocketId pair = next++;
      Descriptor end = loop.open_pair(pair, 0, error, {this, {.longest = 16}});
      loop.send(id, {'o'}, std::move(end));
    }
    void closed(SocketId) override { ++gone; }
    void refused(std::string_view) override {}
    SocketLoop& loop;
    SocketId next = 1000;
    std::atomic<int> gone{0};
  } other(loop);
  const auto listening = [](const char* name) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = fmt::format("doorbell-{}-{}", name, getpid());
    path.copy(address.sun_path + 1, path.size());  // of no file
    Descriptor fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    EXPECT_EQ(bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(listen(fd.get(), 4), 0);
    return std::pair(std::make_shared<Descriptor>(std::move(fd)), address);
  };
  const auto reach = [](const sockaddr_un& address) {
    Descriptor fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) fd.reset();
    return fd;
  };
  const auto [ours, our_address] = listening("first");
  const auto [theirs, their_address] = listening("second");
  std::promise<u64> number;
  loop.post([this, &number, &other, ours = ours, theirs = theirs] {
    loop.listen(std::move(*ours));
    number.set_value(loop.listen(std::move(*theirs), {&other, {.longest = 16}}));
  });
  const u64 listener = number.get_future().get();
  const Descriptor a = reach(our_address);
  Descriptor b = reach(their_address);
  EXPECT_TRUE(send(a, "a message"));
  EXPECT_TRUE(send(b, "a message"));
  EXPECT_EQ(next(a), "a message");
  std::array<u8, 16> space{};
  Message m;
  ASSERT_TRUE(test::eventually(
      [&] { return take_message(b.get(), space, std::make_shared<Closers>(), 0, m) == Taken::message; }));
  EXPECT_EQ(space[0], 'o');
  ASSERT_EQ(m.files.size(), 1u);
  b.reset();
  EXPECT_TRUE(test::eventually([&] { return other.gone == 1; }));
  // Of the pair, too.
  m.files.clear();
  EXPECT_TRUE(test::eventually([&] { return other.gone == 2; }));
  EXPECT_EQ(echo.closed_count, 0);

  std::promise<void> done;
  loop.post([&] {
    loop.stop_listening(listener);
    loop.stop_listening(listener);  // it is none any more
    done.set_value();
  });
  done.get_future().get();
  EXPECT_TRUE(test::eventually([&] { return reach(their_address).get() < 0; }));
  const Descriptor again = reach(our_address);
  EXPECT_TRUE(send(again, "hello"));
  EXPECT_EQ(next(again), "hello");
  TearDown();
}

TEST_F(SocketLoopTest, WorkersAnswerToTheLoop) {
  std::promise<std::thread::id> worked, done;
  loop.post([&] {
    loop.run([&] { worked.set_value(std::this_thread::get_id()); },
             [&] { done.set_value(std::this_thread::get_id()); });
  });
  EXPECT_NE(worked.get_future().get(), thread.get_id());
  EXPECT_EQ(done.get_future().get(), thread.get_id());
}

TEST_F(SocketLoopTest, TimersComeInTheirOrder) {
  std::promise<std::string> all;
  std::string order;
  std::unique_ptr<Timer> first, second, never;
  loop.post([&] {
    second = std::make_unique<Timer>(loop, [&] { all.set_value(order + "2"); });
    first = std::make_unique<Timer>(loop, [&] { order += "1"; });
    never = std::make_unique<Timer>(loop, [&] { order += "0"; });
    second->start(2'000'000), first->start(1'000'000), never->start(1);
    never->stop();
  });
  EXPECT_EQ(all.get_future().get(), "12");
  TearDown();
}

/// So few descriptors that files of a message may find no place.
class FewFiles {
 public:
  explicit FewFiles(u64 free) {
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
    const rlimit now{open_file_count().value() + free, before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &now), 0);
  }
  ~FewFiles() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

TEST_F(SocketLoopTest, TheKernelClosesNoFileInTheLoop) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP()
      << "UndefinedBehaviorSanitizer opens a pipe to look at an object, and takes its failure for a bad object";
#endif
  const Descriptor hostile = client(), other = client();
  LingeringFile slow;
  std::vector<int> files(20, hostile.get());
  files.push_back(slow.fd());  // the last ones find no place
  std::vector<Descriptor> kept;
  {
    const FewFiles few(8);
    // The message's file is the last one before it is read.
    std::promise<void> away;
    loop.post([closed = away.get_future().share()] { closed.wait(); });
    EXPECT_TRUE(send(hostile, "files", files));
    const int number = slow.fd();
    slow.give_away();
    EXPECT_TRUE(test::eventually([&] { return fcntl(number, F_GETFD) < 0; }));
    away.set_value();
    EXPECT_TRUE(test::eventually([&] { return loop.closing() > 0; }));
    for (int i = 0; i < 50; ++i) {
      EXPECT_TRUE(send(other, "again"));
      EXPECT_EQ(next(other), "again");
    }
    slow.let_go();
    EXPECT_EQ(next(hostile), "files");
  }
  EXPECT_EQ(echo.lost, 1);
  // With room again its messages are taken as before.
  EXPECT_TRUE(send(hostile, "more", std::array{other.get()}));
  EXPECT_EQ(next(hostile), "more");
  EXPECT_EQ(echo.lost, 1);
  EXPECT_TRUE(test::eventually([&] { return loop.closing() == 0; }));
}

TEST(SpareMemoryTest, IsGivenUpOnceAndTakenBack) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers have an allocator of their own";
#endif
  const pid_t child = fork();
  if (child == 0) {
    SpareMemory::provide();
    bool good = SpareMemory::there();
    // A little more than it has; in pages.
    u64 pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlimit before{RLIM_INFINITY, RLIM_INFINITY};
    const rlimit little{pages * static_cast<u64>(sysconf(_SC_PAGESIZE)) + (u64{2} << 20), RLIM_INFINITY};
    setrlimit(RLIMIT_AS, &little);
    std::vector<std::unique_ptr<char[]>> taken;
    taken.reserve(100'000);
    try {
      for (;;) taken.push_back(std::make_unique<char[]>(65'536));
    } catch (const std::bad_alloc&) {
      good = good && taken.size() >= SpareMemory::kBytes / 65'536 / 2 && !SpareMemory::there();
    }
    taken.clear();
    setrlimit(RLIMIT_AS, &before);
    _exit(good && SpareMemory::there() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

}  // namespace
}  // namespace doorbell::service
