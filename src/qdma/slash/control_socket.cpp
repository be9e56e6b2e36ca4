// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "qdma/slash/control_socket.hpp"

#include <algorithm>
#include <cerrno>

namespace doorbell::qdma::slash {

void ControlSocket::call(service::SocketId id, const Header& header, service::Message& message) {
  int error = EINVAL;  // another socket's call
  switch (header.number) {
    case kCallBarInfo:
      if (BarInfo info; (error = read_whole(payload(message), info)) == 0) {
        const u64 bytes = Bars::bytes(info.bar);
        if (info.bar >= Bars::kCount) {
          error = EINVAL;
          break;
        }
        const BarInfo told{.bar = info.bar, .usable = bytes > 0 ? u8{1} : u8{0}, .length = bytes};
        return reply(id, header, 0, bytes_of(told));
      }
      break;
    case kCallBarFd:
      if (BarFd asked; (error = read_whole(payload(message), asked)) == 0) {
        if ((asked.flags & ~kFlagCloseOnExec) != 0) {
          error = EINVAL;
          break;
        }
        Descriptor file = bars_.open(asked.bar, error);
        if (error != 0) break;
        asked.length = Bars::bytes(asked.bar);
        return reply(id, header, 0, bytes_of(asked), std::move(file));
      }
      break;
    case kCallDeviceInfo:
      if (DeviceInfo info; (error = read_whole(payload(message), info)) == 0) {
        info = {};
        auto end = std::ranges::copy(kCardPlace, info.place.begin()).out;
        *end++ = '.';
        *end = '2';
        return reply(id, header, 0, bytes_of(info));
      }
      break;
    default:
      break;
  }
  reply(id, header, error);
}

}  // namespace doorbell::qdma::slash
