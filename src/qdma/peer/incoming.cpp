// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "qdma/peer/incoming.hpp"

#include <cerrno>

#include "service/message.hpp"
#include "system/passed_files.hpp"

namespace doorbell::qdma {

void take_descriptors(const msghdr& m, Incoming& in) {
  take_files(m, [&](Descriptor file) {
    if (in.descriptor_count < in.descriptors.size()) in.descriptors[in.descriptor_count++] = std::move(file);
  });
}

Incoming receive_message(int socket) {
  Incoming in;
  iovec io{in.bytes.data(), in.bytes.size()};
  service::FileSpace control;
  msghdr m{};
  m.msg_iov = &io;
  m.msg_iovlen = 1;
  m.msg_control = control.bytes.data();
  m.msg_controllen = control.bytes.size();
  ssize_t n = 0;
  do {
    n = recvmsg(socket, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (n < 0 && errno == EINTR);
  if (n < 0) {
    in.status = errno == EAGAIN ? Incoming::Status::none : Incoming::Status::closed;
    return in;
  }
  take_descriptors(m, in);
  in.status = n == 0 ? Incoming::Status::closed : Incoming::Status::message;
  in.length = static_cast<u32>(n);
  in.truncated = (m.msg_flags & MSG_TRUNC) != 0;
  return in;
}

}  // namespace doorbell::qdma
