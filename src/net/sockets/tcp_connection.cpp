// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/sockets/tcp_connection.hpp"

#include <doorbell/error.hpp>
#include <endian.h>
#include <fmt/format.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <vector>

#include "system/clock.hpp"
#include "system/sysfs.hpp"

namespace doorbell::net::sockets {

namespace {

constexpr u64 kRetryNs = 20'000'000;

/// 0 or an errno.
int connect_once(int fd, const sockaddr_in& to, u64 until_ns) {
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  return wait_until(fd, POLLOUT, until_ns) == 0 ? ETIMEDOUT : take_error(fd);
}

/// None where no connection waits.
Descriptor accept_now(int listener, sockaddr_in* from) {
  for (;;) {
    socklen_t bytes = sizeof *from;
    Descriptor s(
        ::accept4(listener, reinterpret_cast<sockaddr*>(from), &bytes, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (s.get() >= 0 || errno == EAGAIN) return s;
    // A client that is gone again before accept() does not count.
    if (errno == ECONNABORTED || errno == EINTR) continue;
    throw Error(fmt::format("TCP at {}", text_of(local_address(listener))), reason(errno), hint_of(errno));
  }
}

[[noreturn]] void nobody_came(int listener) {
  throw Error(fmt::format("TCP at {}", text_of(local_address(listener))), "no sender has connected in time",
              "start the sending end");
}

using Greeting = std::array<u8, sizeof(u64)>;

/// A connection that has not said yet whose it is.
struct Unknown {
  enum class Is { unknown, sender, stranger };
  Descriptor socket;
  Is is = Is::unknown;
  Greeting said{};
  std::size_t bytes = 0;

  void hear(const Greeting& expected) {
    const ssize_t n = ::recv(socket.get(), said.data() + bytes, said.size() - bytes, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n > 0) bytes += static_cast<std::size_t>(n);
    const bool right = std::equal(said.data(), said.data() + bytes, expected.data());
    if (n <= 0 || !right) is = Is::stranger;
    else if (bytes == said.size()) is = Is::sender;
  }
};
constexpr std::size_t kMostUnknown = 64;  // at a time; the oldest of more goes

}  // namespace

Descriptor connect_tcp(const std::string& from, const sockaddr_in& to, u64 send_bytes, bool retry,
                       u64 until_ns) {
  for (;;) {
    Descriptor s = open_socket(SOCK_STREAM);
    set_buffer(s.get(), Direction::send, send_bytes);
    // A record goes out when it is there, not when more has come or the one before has been acknowledged.
    set_option(s.get(), IPPROTO_TCP, TCP_NODELAY, 1, "TCP_NODELAY");
    const sockaddr_in source = address_of(from, 0);
    if (::bind(s.get(), reinterpret_cast<const sockaddr*>(&source), sizeof source) != 0)
      throw Error(fmt::format("TCP from {}", from), reason(errno));
    const int error = connect_once(s.get(), to, until_ns);
    if (error == 0) return s;
    const u64 now = wall_ns();
    if (error != ECONNREFUSED || !retry || now >= until_ns)
      throw Error(fmt::format("TCP from {} to {}", from, text_of(to)), reason(error),
                  error == ECONNREFUSED ? "start the receiving end first" : "");
    wait_for(nullptr, 0, std::min(kRetryNs, until_ns - now));
  }
}

Descriptor accept_tcp(int listener, const sockaddr_in* peer, u64 until_ns, u64& strangers) {
  for (;;) {
    sockaddr_in from{};
    Descriptor s = accept_now(listener, &from);
    if (s.get() >= 0) {
      if (peer == nullptr || same(from, *peer)) return s;
      ++strangers;
    } else if (wait_until(listener, POLLIN, until_ns) == 0) {
      nobody_came(listener);
    }
  }
}

void greet(int fd, u64 token) {
  // A new connection's buffer has room.
  const auto greeting = std::bit_cast<Greeting>(htobe64(token));
  const ssize_t sent = ::send(fd, greeting.data(), greeting.size(), MSG_NOSIGNAL);
  if (sent != static_cast<ssize_t>(greeting.size()))
    throw Error("a new TCP connection", sent < 0 ? reason(errno) : "it takes no byte");
}

Descriptor accept_greeting(int listener, u64 token, u64 until_ns, u64& strangers) {
  const auto expected = std::bit_cast<Greeting>(htobe64(token));
  std::vector<Unknown> unknown;
  for (;;) {
    sockaddr_in from{};
    for (Descriptor s = accept_now(listener, &from); s.get() >= 0; s = accept_now(listener, &from))
      unknown.push_back({.socket = std::move(s)});
    for (Unknown& u : unknown) u.hear(expected);
    if (const auto sender = std::ranges::find(unknown, Unknown::Is::sender, &Unknown::is);
        sender != unknown.end()) {
      strangers += unknown.size() - 1;
      return std::move(sender->socket);
    }
    strangers += std::erase_if(unknown, [](const Unknown& u) { return u.is == Unknown::Is::stranger; });
    for (; unknown.size() > kMostUnknown; ++strangers) unknown.erase(unknown.begin());
    std::vector<pollfd> polls{{listener, POLLIN, 0}};
    for (const Unknown& u : unknown) polls.push_back({u.socket.get(), POLLIN, 0});
    const u64 now = wall_ns();
    if (now >= until_ns) nobody_came(listener);
    wait_for(polls.data(), polls.size(), until_ns - now);
  }
}

}  // namespace doorbell::net::sockets
