// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/dropin/cm/directory.hpp"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

namespace doorbell::cm {

namespace {

constexpr int kWaitMs = 1000;
constexpr int kBacklog = 256;

struct Name {
  sockaddr_un address{};
  socklen_t bytes = 0;
};

/// An abstract name, which begins with a zero byte and has no place in the file system.
Name name_of(const std::string& text) {
  Name name;
  name.address.sun_family = AF_UNIX;
  const std::size_t fits = std::min(text.size(), sizeof name.address.sun_path - 1);
  std::memcpy(name.address.sun_path + 1, text.data(), fits);
  name.bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + fits);
  return name;
}
Name port_name(u32 port_space, u16 port) {
  return name_of("doorbell-rdmacm/port/" + std::to_string(port_space) + "/" + std::to_string(port));
}
Name device_name(u32 address) {
  return name_of("doorbell-rdmacm/device/" + std::to_string(address));
}

Descriptor local_socket() {
  return Descriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

Descriptor bound(const Name& name) {
  Descriptor fd = local_socket();
  if (fd && ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&name.address), name.bytes) != 0) fd.reset();
  return fd;
}

Descriptor connected(const Name& name) {
  Descriptor fd = local_socket();
  if (fd && ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&name.address), name.bytes) != 0)
    fd.reset();
  return fd;
}

}  // namespace

void Descriptor::reset(int fd) {
  if (fd_ >= 0) {
    const int error = errno;
    ::close(fd_);
    errno = error;
  }
  fd_ = fd;
}

Descriptor claim_port(u32 port_space, u16 port) {
  return bound(port_name(port_space, port));
}

void open_port(const Descriptor& claim) {
  (void)::listen(claim.get(), kBacklog);
}

void answer_port(int claim, u32 address) {
  for (;;) {
    const Descriptor asks(::accept4(claim, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!asks) return;
    (void)!::send(asks.get(), &address, sizeof address, MSG_NOSIGNAL);
  }
}

std::optional<u32> find_port(u32 port_space, u16 port) {
  const Descriptor fd = connected(port_name(port_space, port));
  if (!fd) return std::nullopt;
  pollfd one{.fd = fd.get(), .events = POLLIN, .revents = 0};
  u32 address = 0;
  if (::poll(&one, 1, kWaitMs) != 1 || ::recv(fd.get(), &address, sizeof address, 0) != sizeof address)
    return std::nullopt;
  return address;
}

Descriptor announce_device(u32 address) {
  Descriptor fd = bound(device_name(address));
  if (fd) (void)::listen(fd.get(), kBacklog);
  return fd;
}

Descriptor admit(int announced) {
  return Descriptor(::accept4(announced, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
}

Descriptor watch_device(u32 address) {
  return connected(device_name(address));
}

bool is_of_this_host(u32 address) {
  const Descriptor fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(address);
  return fd && ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0;
}

}  // namespace doorbell::cm
