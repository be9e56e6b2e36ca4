// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Names of TCP sockets, and TCP with deadlines: the part that Exchange needs.
#pragma once

#include <doorbell/config.hpp>

#include <poll.h>

#include <span>
#include <string>
#include <string_view>

#include "measure/stop.hpp"
#include "system/descriptor.hpp"

namespace doorbell::exchange {

/// "HOST:PORT"; an IPv6 address is written in brackets.
struct SocketName {
  std::string host;  ///< empty: every address of this machine (--listen)
  u16 port = 0;
  [[nodiscard]] std::string text() const;
};
/// The words by which errors call an address that no option names.
inline constexpr const char* kConnecting = "connecting to";
inline constexpr const char* kListening = "listening at";

/// "HOST[:PORT]" to connect to and "[ADDR:]PORT" to listen at. Throw doorbell::Error naming the setting,
/// which may be an option of a command.
[[nodiscard]] SocketName parse_connect(const std::string& text, u16 default_port,
                                       const char* setting = "address to connect to");
[[nodiscard]] SocketName parse_listen(const std::string& text, const char* setting = "address to listen at");

/// A moment on the monotonic clock, and what else can end a wait.
struct Wait {
  u64 until_ns = 0;
  const measure::StopFlag* stop = nullptr;
  [[nodiscard]] static Wait lasting(double seconds, const measure::StopFlag* stop);
};

/// The seconds that are left of it, 0 if it is over.
[[nodiscard]] double left_s(const Wait& wait);

enum class Waited { ready, expired, stopped };
/// Waits until `fd` has one of the poll(2) `events` or has failed.
[[nodiscard]] Waited wait_for(int fd, short events, const Wait& wait);
/// The same for one of several; their `revents` say which.
[[nodiscard]] Waited wait_for(std::span<pollfd> polls, const Wait& wait);

/// A connected, non-blocking socket and the address that answered. Throws doorbell::Error.
struct Connected {
  Descriptor socket;
  std::string peer;
};
/// `path`: the path of the command that hints name. `setting`: what errors call the address, which may be an
/// option of a command.
[[nodiscard]] Connected connect_tcp(const SocketName& to, const Wait& wait, std::string_view path,
                                    std::string_view setting = kConnecting);
[[nodiscard]] Descriptor listen_tcp(const SocketName& at, std::string_view setting = kListening);
[[nodiscard]] Connected accept_tcp(int listener, const SocketName& at, const Wait& wait,
                                   std::string_view path, std::string_view setting = kListening);
[[nodiscard]] u16 bound_port(int fd);
/// The address to which a socket is bound; empty if it has none.
[[nodiscard]] SocketName own_name(int fd);

}  // namespace doorbell::exchange
