// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "service/systemd/manager.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>

#include "system/sysfs.hpp"

namespace doorbell::service {

std::vector<Descriptor> activated_sockets() {
  const int count = sd_listen_fds(1);
  if (count < 0)
    throw Error("socket activation", reason(-count),
                "LISTEN_FDS is more than the descriptors that were passed");
  for (int fd = SD_LISTEN_FDS_START; fd < SD_LISTEN_FDS_START + count; ++fd)
    if (sd_is_socket_unix(fd, SOCK_SEQPACKET, 1, nullptr, 0) <= 0)
      throw Error(fmt::format("descriptor {} of the service manager", fd),
                  "is no listening unix socket of sequential packets",
                  "the socket unit needs ListenSequentialPacket=");
  std::vector<Descriptor> sockets;
  for (int i = 0; i < count; ++i) sockets.emplace_back(SD_LISTEN_FDS_START + i);
  return sockets;
}

// sd_notify() waits where the manager's socket is full, and with it a loop that serves others.
bool notify(const std::string& state) {
  const char* const at = std::getenv("NOTIFY_SOCKET");
  if (at == nullptr || *at == '\0') return true;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = at;
  if (path.size() >= sizeof address.sun_path) return true;
  path.copy(address.sun_path, path.size());
  if (address.sun_path[0] == '@') address.sun_path[0] = '\0';
  const Descriptor fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (fd.get() < 0) return false;
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
  const ssize_t n = ::sendto(fd.get(), state.data(), state.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
                             reinterpret_cast<const sockaddr*>(&address), length);
  return n >= 0 || (errno != EAGAIN && errno != ENOBUFS);
}

u64 watchdog_ns() {
  u64 us = 0;
  return sd_watchdog_enabled(0, &us) > 0 ? us * 1000 : 0;
}

}  // namespace doorbell::service
