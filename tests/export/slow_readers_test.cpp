// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A server of figures whose readers are slow, on purpose or not: a newcomer always gets in. The server's own
// limit of time is an hour, so that nobody gets in by waiting. Each wait is for an event; its limit only ends
// a test that has failed.
#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <doorbell/error.hpp>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "eventually.hpp"
#include "export/metrics_server.hpp"
#include "system/descriptor.hpp"

namespace doorbell::exporting {
namespace {

constexpr const char* kRequest = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";
constexpr std::size_t kPageBytes = std::size_t{1} << 20;  // more than the sockets' buffers hold

class SlowReaders : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    Descriptor listener(::socket(GetParam(), SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (GetParam() == AF_UNIX) {
      auto* const local = reinterpret_cast<sockaddr_un*>(&at_);
      local->sun_family = AF_UNIX;
      // A name of no file: the kernel chooses it.
      ASSERT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&at_), sizeof(sa_family_t)), 0);
    } else {
      auto* const tcp = reinterpret_cast<sockaddr_in*>(&at_);
      tcp->sin_family = AF_INET;
      tcp->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      ASSERT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&at_), sizeof *tcp), 0);
      const int bytes = 1 << 16;  // what the server may write ahead; its connections inherit it
      ASSERT_EQ(::setsockopt(listener.get(), SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes), 0);
    }
    at_bytes_ = sizeof at_;
    ASSERT_EQ(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&at_), &at_bytes_), 0);
    ASSERT_EQ(::listen(listener.get(), 128), 0);
    try {
      server_ = std::make_unique<MetricsServer>(
          std::move(listener), "the test's socket", "text/x",
          [this]() -> std::optional<std::string> {
            if (!has_page_) return {};
            return std::string(kPageBytes, 'x') + "\n";
          },
          ServerLimits{.connections = kConnections, .idle_s = 3600});
    } catch (const Error& e) {
      if (e.code() != ExitCode::absent) throw;
      GTEST_SKIP() << e.what();
    }
  }

  [[nodiscard]] Descriptor connect(int receive_bytes = 0) const {
    Descriptor fd(::socket(GetParam(), SOCK_STREAM | SOCK_CLOEXEC, 0));
    const timeval limit{.tv_sec = static_cast<time_t>(test::kWaitLimitS), .tv_usec = 0};
    for (const int direction : {SO_RCVTIMEO, SO_SNDTIMEO})
      EXPECT_EQ(::setsockopt(fd.get(), SOL_SOCKET, direction, &limit, sizeof limit), 0);
    if (receive_bytes > 0) {
      EXPECT_EQ(::setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes), 0);
    }
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&at_), at_bytes_), 0) << errno;
    return fd;
  }
  static void send(const Descriptor& fd, const std::string& text) {
    // The server may have ended it.
    static_cast<void>(::send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL));
  }
  /// All that comes; nothing if the connection has not ended in time.
  static std::optional<std::string> rest_of(const Descriptor& fd) {
    std::string text, part(65536, '\0');
    for (;;) {
      const ssize_t n = ::recv(fd.get(), part.data(), part.size(), 0);
      if (n < 0 && errno == EAGAIN) return {};
      if (n <= 0) return text;
      text.append(part, 0, static_cast<std::size_t>(n));
    }
  }
  [[nodiscard]] std::string ask(const std::string& request = kRequest) const {
    const Descriptor fd = connect();
    send(fd, request);
    return rest_of(fd).value_or("no answer in time");
  }
  static bool is_whole(const std::string& answer) {
    return answer.starts_with("HTTP/1.1 200 ") && answer.size() > kPageBytes && answer.ends_with("\n");
  }

  static constexpr u32 kConnections = 64;
  sockaddr_storage at_{};
  socklen_t at_bytes_ = 0;
  std::atomic<bool> has_page_{true};
  std::unique_ptr<MetricsServer> server_;
};

TEST_P(SlowReaders, KeepNobodyOut) {
  constexpr u32 kSlow = 200, kBetween = 10;
  std::vector<Descriptor> slow;
  u32 asked = 0;
  for (u32 i = 0; i < kSlow; ++i) {
    slow.push_back(connect(4096));
    if (i % 3 == 1) send(slow.back(), std::string(kRequest, 20));  // of the others a third says nothing,
    if (i % 3 == 2) send(slow.back(), kRequest);                   // and a third does not read
    if (i % kBetween != kBetween - 1) continue;
    ++asked;
    const std::string answer = ask();
    ASSERT_TRUE(is_whole(answer)) << "after " << i + 1 << " slow readers: " << answer.substr(0, 300);
  }
  // The oldest are ended, in the middle of an answer too.
  constexpr u32 kEnded = kSlow - kConnections;
  for (u32 i = 0; i < kEnded; ++i) {
    const auto rest = rest_of(slow[i]);
    ASSERT_TRUE(rest) << "reader " << i << " is still connected";
    EXPECT_FALSE(is_whole(*rest)) << i;
    EXPECT_TRUE(rest->empty() || i % 3 == 2) << i << ": " << rest->substr(0, 300);
  }
  EXPECT_GE(server_->readers_ended(), kEnded);
  EXPECT_LE(server_->readers_ended(), kEnded + asked) << "a good reader that is on its way out may count";
  // One that is slow and not among the oldest is served when it goes on.
  send(slow.back(), kRequest + 20);
  EXPECT_TRUE(is_whole(rest_of(slow.back()).value_or("")));
}

TEST_P(SlowReaders, AreNotWaitedForAtTheServersEnd) {
  std::vector<Descriptor> slow;
  for (u32 i = 0; i < 6; ++i) {
    slow.push_back(connect(4096));
    if (i % 2 == 1) send(slow.back(), kRequest);
  }
  ASSERT_TRUE(is_whole(ask()));
  server_.reset();
  for (const Descriptor& fd : slow) {
    const auto rest = rest_of(fd);
    ASSERT_TRUE(rest) << "still connected";
    EXPECT_FALSE(is_whole(*rest));
  }
}

TEST_P(SlowReaders, RefusalsAreAnswers) {
  has_page_ = false;
  EXPECT_TRUE(ask().starts_with("HTTP/1.1 503 ")) << "no page in time";
  has_page_ = true;
  EXPECT_TRUE(ask("GET /metrics HTTP/1.1\r\nHost: x\r\nX: " + std::string(5000, 'x') + "\r\n\r\n")
                  .starts_with("HTTP/1.1 431 "));
  EXPECT_TRUE(
      ask("GET /" + std::string(5000, 'x') + " HTTP/1.1\r\nHost: x\r\n\r\n").starts_with("HTTP/1.1 414 "));
  EXPECT_TRUE(ask("GET / HTTP/1.0\r\n\r\n").find(" 404 ") != std::string::npos);
  EXPECT_TRUE(is_whole(ask()));
  EXPECT_EQ(server_->readers_ended(), 0u);
  EXPECT_EQ(server_->url(), "");
}

INSTANTIATE_TEST_SUITE_P(Metrics, SlowReaders, testing::Values(AF_UNIX, AF_INET),
                         [](const auto& family) { return family.param == AF_UNIX ? "Local" : "Tcp"; });

}  // namespace
}  // namespace doorbell::exporting
