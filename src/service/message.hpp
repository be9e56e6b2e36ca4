// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Messages of local sockets with the files that come and go with them.
#pragma once

#include <doorbell/config.hpp>
#include <sys/socket.h>
#include <sys/types.h>

#include <array>
#include <cerrno>
#include <memory>
#include <span>
#include <vector>

#include "service/closers.hpp"
#include "system/descriptor.hpp"
#include "system/passed_files.hpp"

namespace doorbell::service {

/// The most files that the kernel lets a message have (SCM_MAX_FD). A receiver has room for as many: what
/// finds no room the kernel closes itself, in recvmsg(), which may wait as close() may.
inline constexpr u32 kMostFiles = 253;

/// Room for the files of any message.
union FileSpace {
  cmsghdr header;
  std::array<char, CMSG_SPACE(sizeof(int) * kMostFiles)> bytes;
};

/// A message that has come.
struct Message {
  std::span<const u8> bytes;
  std::vector<ForeignFile> files = {};
  bool truncated = false;  ///< it was longer than the longest one
  bool lost = false;       ///< files of it found no place in this process
};

/// Takes a message of a SOCK_SEQPACKET socket, or what there is of a stream, without waiting, and gives each
/// of its files to `take`. Its length, or a negative errno; `flags` has MSG_TRUNC and MSG_CTRUNC.
template <class Take>
[[nodiscard]] ssize_t receive(int socket, std::span<u8> space, int& flags, Take take) {
  iovec part{space.data(), space.size()};
  FileSpace control;
  msghdr m{};
  m.msg_iov = &part;
  m.msg_iovlen = 1;
  m.msg_control = control.bytes.data();
  m.msg_controllen = control.bytes.size();
  ssize_t n = 0;
  do n = ::recvmsg(socket, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  while (n < 0 && errno == EINTR);
  if (n < 0) return -errno;
  flags = m.msg_flags;
  take_files(m, take);
  return n;
}

enum class Taken { message, nothing, closed };

/// Takes a message of at most `space` bytes from a SOCK_SEQPACKET socket, without waiting. `closers` close
/// its files, as `user`'s. An empty message with files is a message too.
[[nodiscard]] Taken take_message(int socket, std::span<u8> space, const std::shared_ptr<Closers>& closers,
                                 uid_t user, Message& out);
/// Whether files come with the next message. It stays where it is.
[[nodiscard]] bool next_has_files(int socket);
/// Sends a message, with `file` unless it is negative, without waiting. 0, EAGAIN, or another errno. `sent`:
/// how much of it a stream has taken.
[[nodiscard]] int send_message(int socket, std::span<const u8> bytes, int file, std::size_t* sent = nullptr);

}  // namespace doorbell::service
