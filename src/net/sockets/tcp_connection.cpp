// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/sockets/tcp_connection.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

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
    socklen_t bytes = sizeof from;
    Descriptor s(
        ::accept4(listener, reinterpret_cast<sockaddr*>(&from), &bytes, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (s.get() >= 0) {
      if (peer == nullptr || same(from, *peer)) return s;
      ++strangers;
      continue;
    }
    // A client that is gone again before accept() does not count.
    if (errno == ECONNABORTED || errno == EINTR) continue;
    const std::string at = text_of(local_address(listener));
    if (errno != EAGAIN) throw Error(fmt::format("TCP at {}", at), reason(errno));
    if (wait_until(listener, POLLIN, until_ns) == 0)
      throw Error(fmt::format("TCP at {}", at), "no sender has connected in time", "start the sending end");
  }
}

}  // namespace doorbell::net::sockets
