// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "qdma/daemon/daemon_driver.hpp"

#include <fcntl.h>

namespace doorbell::qdma::daemon {

DaemonDriver::DaemonDriver(const std::string& spec, const Patience& patience)
    : SocketDriver(spec, "doorbelld", patience), client_(socket_path(spec), patience) {
  kind_ = (client_.hello().features & kFeatureModel) != 0 ? "model" : "hardware";
}

/// Behind the errno's words stand those of the daemon about its last refusal.
std::string DaemonDriver::why(int error) const {
  const std::string own = SocketDriver::why(error), said = client_.why(error);
  return said.empty() ? own : own + " (" + said + ")";
}

CallResult DaemonDriver::call(int fd, u32 number, std::span<u8> structure, const CallOptions& options) {
  if (fd >= 0) return SocketDriver::call(fd, number, structure, options);
  if (const int over = given_up(); over != 0) return {.result = -over};
  // The driver's flags are the descriptor's here.
  u32 flags = 0;
  const std::size_t at = number == kCallQpairGetFd ? offsetof(QpairGetFd, flags) : offsetof(BufCreate, flags);
  if (structure.size() >= at + sizeof flags) std::memcpy(&flags, &structure[at], sizeof flags);
  const CallResult r = control_call(client_, number, structure);
  if (r.result == -ETIMEDOUT || r.result == -EINTR) static_cast<void>(note_over(static_cast<int>(-r.result)));
  const bool opened = r.result >= 0 && (number == kCallQpairGetFd || number == kCallBufCreate);
  if (opened && (flags & kFlagCloseOnExec) == 0) fcntl(static_cast<int>(r.result), F_SETFD, 0);
  if (opened && number == kCallQpairGetFd) adopt(static_cast<int>(r.result));
  return r;
}

}  // namespace doorbell::qdma::daemon
