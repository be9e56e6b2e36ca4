// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "exchange/socket.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <memory>
#include <utility>

#include "system/clock.hpp"
#include "system/sysfs.hpp"

namespace doorbell::exchange {

namespace {

constexpr int kWaiting = 128;  // clients that have yet to be accepted: the ranks of a sweep come together

u16 parse_port(const char* option, std::string_view text, u16 min) {
  u32 port = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), port);
  if (parsed.ec != std::errc{} || parsed.ptr != text.data() + text.size() || port > 0xffff || port < min)
    throw Error(option, fmt::format("'{}' is no port in {}..65535", text, min));
  return static_cast<u16>(port);
}

/// Splits "HOST", "HOST:PORT" or "[ADDRESS]:PORT" into its parts; the second part is empty without a ':'.
std::pair<std::string, std::string> split(const char* option, const std::string& text) {
  if (text.starts_with('[')) {
    const auto end = text.find(']');
    if (end == std::string::npos || (end + 1 < text.size() && text[end + 1] != ':') || end + 2 == text.size())
      throw Error(option, fmt::format("'{}' is not [ADDRESS]:PORT", text));
    return {text.substr(1, end - 1), end + 1 < text.size() ? text.substr(end + 2) : ""};
  }
  const auto colon = text.find(':');
  if (colon == std::string::npos) return {text, ""};
  if (text.find(':', colon + 1) != std::string::npos)
    throw Error(option, fmt::format("'{}' has several colons", text),
                "write an IPv6 address as [ADDRESS]:PORT");
  if (colon + 1 == text.size()) throw Error(option, fmt::format("'{}' has no port behind the colon", text));
  return {text.substr(0, colon), text.substr(colon + 1)};
}

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Addresses resolve(const SocketName& name, bool passive, const std::string& what) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | (passive ? AI_PASSIVE : 0);
  addrinfo* list = nullptr;
  const int rc = ::getaddrinfo(name.host.empty() ? nullptr : name.host.c_str(),
                               std::to_string(name.port).c_str(), &hints, &list);
  if (rc != 0) throw Error(what, rc == EAI_SYSTEM ? reason(errno) : ::gai_strerror(rc));
  return {list, &::freeaddrinfo};
}

Descriptor open_socket(const addrinfo& a) {
  return Descriptor(::socket(a.ai_family, a.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, a.ai_protocol));
}

// Messages are short, and the other end waits for each: the kernel must not hold one back to join it with the
// next. An end whose machine has gone says nothing: the kernel asks for it where a wait may be long.
void set_up(int fd) {
  const int on = 1, idle_s = 30, every_s = 10, times = 3;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every_s, sizeof every_s);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &times, sizeof times);
}

/// A socket for both families shows an IPv4 address in its IPv6 form.
std::string plain_host(const std::string& text) {
  const std::string_view mapped = "::ffff:";
  const bool four = text.starts_with(mapped) && text.find('.') != std::string::npos;
  return four ? text.substr(mapped.size()) : text;
}

std::string numeric(const sockaddr* address, socklen_t bytes) {
  char host[NI_MAXHOST];
  char port[NI_MAXSERV];
  const int flags = NI_NUMERICHOST | NI_NUMERICSERV;
  if (::getnameinfo(address, bytes, host, sizeof host, port, sizeof port, flags) != 0) return "?";
  return SocketName{plain_host(host), static_cast<u16>(std::stoul(port))}.text();
}

/// Connects to this address; returns 0 or errno.
int connect_one(int fd, const addrinfo& a, const Wait& wait) {
  if (::connect(fd, a.ai_addr, a.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  switch (wait_for(fd, POLLOUT, wait)) {
    case Waited::expired:
      return ETIMEDOUT;
    case Waited::stopped:
      return EINTR;
    case Waited::ready:
      break;
  }
  int error = 0;
  socklen_t bytes = sizeof error;
  return ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &bytes) == 0 ? error : errno;
}

}  // namespace

std::string SocketName::text() const {
  if (host.find(':') != std::string::npos) return fmt::format("[{}]:{}", host, port);
  return host.empty() ? std::to_string(port) : fmt::format("{}:{}", host, port);
}

SocketName parse_connect(const std::string& text, u16 default_port, const char* setting) {
  const auto [host, port] = split(setting, text);
  if (host.empty()) throw Error(setting, fmt::format("'{}' names no host", text), "write HOST or HOST:PORT");
  return {host, port.empty() ? default_port : parse_port(setting, port, 1)};
}

SocketName parse_listen(const std::string& text, const char* setting) {
  const auto [first, second] = split(setting, text);
  if (text.starts_with('[') && second.empty())
    throw Error(setting, fmt::format("'{}' has no port", text), "write [ADDRESS]:PORT");
  if (second.empty()) return {"", parse_port(setting, first, 0)};
  return {first, parse_port(setting, second, 0)};
}

Wait Wait::lasting(double seconds, const measure::StopFlag* stop) {
  return {wall_ns() + static_cast<u64>(seconds * 1e9), stop};
}

double left_s(const Wait& wait) {
  const u64 now = wall_ns();
  return wait.until_ns > now ? static_cast<double>(wait.until_ns - now) / 1e9 : 0;
}

Waited wait_for(int fd, short events, const Wait& wait) {
  pollfd one{fd, events, 0};
  return wait_for(std::span(&one, 1), wait);
}

Waited wait_for(std::span<pollfd> polls, const Wait& wait) {
  constexpr u64 kSlice = 100'000'000;  // how long a stop may go unnoticed
  // The other end may have been stopped together with this one: time in which this one did not run does not
  // count.
  u64 until_ns = wait.until_ns;
  for (u64 now = wall_ns();;) {
    if (wait.stop != nullptr && wait.stop->requested()) return Waited::stopped;
    const u64 left = until_ns > now ? std::min(until_ns - now, kSlice) : 0;
    if (::poll(polls.data(), polls.size(), static_cast<int>((left + 999'999) / 1'000'000)) > 0)
      return Waited::ready;
    if (now >= until_ns) return Waited::expired;
    const u64 later = wall_ns(), away = later - now > 2 * kSlice ? later - now - kSlice : 0;
    until_ns += std::min(away, ~u64{0} - until_ns);
    now = later;
  }
}

Connected connect_tcp(const SocketName& to, const Wait& wait, std::string_view path,
                      std::string_view setting) {
  const std::string what = fmt::format("{} {}", setting, to.text());
  const Addresses list = resolve(to, false, what);
  int error = 0;
  for (const addrinfo* a = list.get(); a != nullptr; a = a->ai_next) {
    Descriptor socket = open_socket(*a);
    error = socket.get() < 0 ? errno : connect_one(socket.get(), *a, wait);
    if (error != 0) continue;
    set_up(socket.get());
    return {std::move(socket), numeric(a->ai_addr, a->ai_addrlen)};
  }
  if (error == EINTR) throw Error(what, "interrupted", "", ExitCode::interrupted);
  throw Error(what, reason(error),
              error == ECONNREFUSED ? fmt::format("start `doorbell {} --listen` there first", path)
                                    : "is the address right?");
}

Descriptor listen_tcp(const SocketName& at, std::string_view setting) {
  const std::string what = fmt::format("{} {}", setting, at.text());
  const Addresses list = resolve(at, true, what);
  int error = 0;
  for (const addrinfo* a = list.get(); a != nullptr; a = a->ai_next) {
    Descriptor socket = open_socket(*a);
    const int on = 1;
    const int off = 0;
    ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (a->ai_family == AF_INET6) ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (::bind(socket.get(), a->ai_addr, a->ai_addrlen) == 0 && ::listen(socket.get(), kWaiting) == 0)
      return socket;
    error = errno;
  }
  throw Error(what, reason(error),
              error == EADDRINUSE ? "is another server running? choose another port" : "");
}

Connected accept_tcp(int listener, const SocketName& at, const Wait& wait, std::string_view path,
                     std::string_view setting) {
  const std::string what = fmt::format("{} {}", setting, at.text());
  for (;;) {
    switch (wait_for(listener, POLLIN, wait)) {
      case Waited::expired:
        throw Error(what, "no client has connected in time",
                    fmt::format("start `doorbell {} --connect HOST` on the other end", path));
      case Waited::stopped:
        throw Error(what, "interrupted", "", ExitCode::interrupted);
      case Waited::ready:
        break;
    }
    sockaddr_storage address = {};
    socklen_t bytes = sizeof address;
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    Descriptor socket(::accept4(listener, generic, &bytes, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket.get() >= 0) {
      set_up(socket.get());
      return {std::move(socket), numeric(generic, bytes)};
    }
    // A client that closed its connection before accept() does not count.
    if (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR) throw Error(what, reason(errno));
  }
}

SocketName own_name(int fd) {
  sockaddr_storage address = {};
  socklen_t bytes = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  char host[NI_MAXHOST];
  if (::getsockname(fd, generic, &bytes) != 0 ||
      ::getnameinfo(generic, bytes, host, sizeof host, nullptr, 0, NI_NUMERICHOST) != 0)
    return {};
  const u16 port = ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&address)->sin6_port
                                                       : reinterpret_cast<sockaddr_in*>(&address)->sin_port);
  return {plain_host(host), port};
}

u16 bound_port(int fd) {
  return own_name(fd).port;
}

}  // namespace doorbell::exchange
