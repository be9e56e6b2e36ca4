// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Parts that the engines with the kernel's packet sockets share. Set-up, except poll_socket().
#pragma once

#include <fmt/format.h>
#include <linux/filter.h>
#include <sys/socket.h>

#include <string>
#include <utility>
#include <vector>

#include "net/settings.hpp"
#include "net/stream.hpp"
#include "system/descriptor.hpp"

namespace doorbell::net::raw {

/// The title in messages of the engine of this name.
[[nodiscard]] inline std::string engine_title(const char* name) {
  return fmt::format("{} {}", setting::engine, name);
}

/// Memory that a socket shares with the kernel.
class Mapping {
 public:
  Mapping() = default;
  /// Throws Error that begins with `subject`.
  Mapping(const std::string& subject, int fd, u64 offset, u64 bytes);
  ~Mapping();
  Mapping(Mapping&& other) noexcept
      : base_(std::exchange(other.base_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(base_, other.base_), std::swap(bytes_, other.bytes_);
    return *this;
  }
  [[nodiscard]] u8* base() const { return base_; }
  [[nodiscard]] u64 bytes() const { return bytes_; }

 private:
  u8* base_ = nullptr;
  u64 bytes_ = 0;
};

/// Throws Error: `call` on `subject` failed with `error`. For a permission that is missing it says which.
[[noreturn]] void refuse(const std::string& subject, const std::string& call, int error);
/// The same after a system call that returned -1.
void require(bool done, const std::string& subject, const std::string& call);
template <class T>
void set_option(int fd, int level, int option, const T& value, const std::string& subject,
                const std::string& name) {
  require(setsockopt(fd, level, option, &value, sizeof value) == 0, subject, name);
}

/// The name of that end's interface. Throws Error when the link has none.
[[nodiscard]] std::string interface_of(const Link& link, End end, const std::string& subject);
/// Its number in the calling thread's namespace.
[[nodiscard]] u32 interface_index(const std::string& interface, const std::string& subject);

/// Returns when the socket has one of `events` (POLLIN, POLLOUT), or after `limit_ns`.
void poll_socket(int fd, short events, u64 limit_ns);

/// The flows that one receive queue takes: destination ports of UDP, or the numbers 0 .. flows - 1 of bare
/// frames.
struct PortFilter {
  u16 first_port = 0;
  u32 flows = 1;   ///< ports first_port .. first_port + flows - 1
  u32 queues = 1;  ///< of which this queue takes those with (port - first_port) mod queues == queue
  u32 queue = 0;
  Encapsulation encapsulation = Encapsulation::udp4;
};
/// As a program for SO_ATTACH_FILTER over frames from their Ethernet header on.
[[nodiscard]] std::vector<sock_filter> socket_filter(const PortFilter& f);

/// A UDP socket for each flow's port that takes nothing. Frames that a packet socket receives go to the
/// namespace's own IP as well, which would otherwise answer that the port is unreachable.
class SilentPorts {
 public:
  /// A port that another program has stays that program's.
  SilentPorts(u16 first, u32 count);

 private:
  std::vector<Descriptor> sockets_;
};

}  // namespace doorbell::net::raw
