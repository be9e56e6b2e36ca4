// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "service/message.hpp"

#include <cerrno>

namespace doorbell::service {

namespace {

template <class Call>
ssize_t uninterrupted(Call call) {
  for (;;) {
    const ssize_t n = call();
    if (n >= 0 || errno != EINTR) return n;
  }
}

}  // namespace

Taken take_message(int socket, std::span<u8> space, const std::shared_ptr<Closers>& closers, uid_t user,
                   Message& out) {
  int flags = 0;
  const ssize_t n = receive(socket, space, flags,
                            [&](Descriptor file) { out.files.emplace_back(std::move(file), closers, user); });
  if (n < 0) return n == -EAGAIN ? Taken::nothing : Taken::closed;
  out.lost = (flags & MSG_CTRUNC) != 0;
  out.truncated = (flags & MSG_TRUNC) != 0;
  out.bytes = space.first(static_cast<std::size_t>(n));
  return n == 0 && out.files.empty() && !out.lost ? Taken::closed : Taken::message;
}

bool next_has_files(int socket) {
  u8 byte = 0;
  iovec part{&byte, 1};
  msghdr m{};
  m.msg_iov = &part;
  m.msg_iovlen = 1;
  const ssize_t n = uninterrupted([&] { return ::recvmsg(socket, &m, MSG_DONTWAIT | MSG_PEEK); });
  return n >= 0 && (m.msg_flags & MSG_CTRUNC) != 0;
}

int send_message(int socket, std::span<const u8> bytes, int file, std::size_t* sent) {
  iovec part{const_cast<u8*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr m{};
  m.msg_iov = &part;
  m.msg_iovlen = 1;
  pass_files(m, std::span(&file, file >= 0 ? 1 : 0), control);
  const ssize_t n = uninterrupted([&] { return ::sendmsg(socket, &m, MSG_DONTWAIT | MSG_NOSIGNAL); });
  if (n < 0) return errno;
  if (sent != nullptr) *sent = static_cast<std::size_t>(n);
  return 0;
}

}  // namespace doorbell::service
