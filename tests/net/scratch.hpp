// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Helpers of the tests of links: a namespace to work in, processes that can be killed, datagrams.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>

#include "eventually.hpp"
#include "net/links/interface_link.hpp"
#include "net/links/veth.hpp"

namespace doorbell::net::test {

/// Skips unless this process may make namespaces of its own. Without root the whole test process goes into a
/// user namespace for that.
#define NEEDS_NAMESPACES()                                                \
  if (const BackendStatus status = namespaces_status(); !status.usable) { \
    GTEST_SKIP() << "no network namespaces: " << status.detail;           \
  } else {                                                                \
    enter_user_namespace_if_needed();                                     \
  }                                                                       \
  static_cast<void>(0)

#define NEEDS_ROOT() \
  if (geteuid() != 0 || !namespaces_status().usable) GTEST_SKIP() << "named network namespaces need root"

/// A child that runs `f` and then ends with its value. It ends with its parent.
class Forked {
 public:
  explicit Forked(const std::function<int(int pipe)>& f) {
    int ends[2];
    if (pipe(ends) != 0) throw std::system_error(errno, std::generic_category());
    out_ = Descriptor(ends[0]);
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::close(ends[0]);
      int code = 1;
      try {
        code = f(ends[1]);
      } catch (const Error& e) {
        say(ends[1], std::string(e.what()) + " / " + e.hint());
      } catch (const std::exception& e) {
        say(ends[1], e.what());
      }
      _exit(code);
    }
    ::close(ends[1]);
  }
  ~Forked() { end(SIGKILL); }
  Forked(const Forked&) = delete;
  Forked& operator=(const Forked&) = delete;

  static void say(int pipe, const std::string& line) {
    const std::string text = line + "\n";
    if (write(pipe, text.data(), text.size()) < 0) _exit(3);
  }
  /// The next line that it says; "" when it ends without one, or takes too long.
  std::string line() {
    std::string text;
    pollfd p{out_.get(), POLLIN, 0};
    for (char c = 0; poll(&p, 1, static_cast<int>(doorbell::test::kWaitLimitS * 1e3)) > 0 &&
                     read(out_.get(), &c, 1) == 1 && c != '\n';)
      text += c;
    return text;
  }
  /// Ends it with a signal; returns its exit code, 128 and more for a signal.
  int end(int signal) {
    if (pid_ > 0) kill(pid_, signal);
    return wait();
  }
  int wait() {
    if (pid_ <= 0) return -1;
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
  Descriptor out_;
};

/// A UDP socket of one end of a link, at that end's address.
inline Descriptor socket_at(Link& link, End end, u16 port) {
  Descriptor fd;
  link.in(end, [&] {
    fd = Descriptor(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_in a{};
    a.sin_family = AF_INET;
    a.sin_port = htons(port);
    inet_pton(AF_INET, link.ip(end).c_str(), &a.sin_addr);
    ASSERT_EQ(bind(fd.get(), reinterpret_cast<const sockaddr*>(&a), sizeof a), 0) << strerror(errno);
  });
  return fd;
}

inline bool send_to(const Descriptor& from, const std::string& ip, u16 port, const std::string& text) {
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_port = htons(port);
  inet_pton(AF_INET, ip.c_str(), &a.sin_addr);
  return sendto(from.get(), text.data(), text.size(), 0, reinterpret_cast<const sockaddr*>(&a), sizeof a) ==
         static_cast<ssize_t>(text.size());
}

/// The next datagram, "" when none comes.
inline std::string receive_from(const Descriptor& at, double limit_s = doorbell::test::kWaitLimitS) {
  std::string text(70000, '\0');
  pollfd p{at.get(), POLLIN, 0};
  if (poll(&p, 1, static_cast<int>(limit_s * 1e3)) <= 0) return {};
  const ssize_t n = recv(at.get(), text.data(), text.size(), 0);
  text.resize(n < 0 ? 0 : static_cast<std::size_t>(n));
  return text;
}

/// One datagram from the sending to the receiving end, and one back.
inline void expect_crossing(Link& link) {
  const Descriptor tx = socket_at(link, End::tx, 18600), rx = socket_at(link, End::rx, 18600);
  ASSERT_TRUE(send_to(tx, link.ip(End::rx), 18600, "there"));
  EXPECT_EQ(receive_from(rx), "there");
  ASSERT_TRUE(send_to(rx, link.ip(End::tx), 18600, "back"));
  EXPECT_EQ(receive_from(tx), "back");
}

/// A veth pair inside one namespace.
inline void make_pair_in(const Namespace& space, const std::string& a, const std::string& b, u32 mtu = 1500,
                         u32 queues = 1) {
  netlink::Interfaces there = interfaces_in(space);
  there.make_veth({a, mtu, queues}, {b, mtu, queues}, space.fd());
}

inline void switch_on(const Namespace& space, const std::string& name, bool on = true) {
  netlink::Interfaces there = interfaces_in(space);
  there.set_up(there.get(name), on);
}

}  // namespace doorbell::net::test
