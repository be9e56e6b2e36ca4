// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The calls of the driver's interface (abi.hpp) as messages of an AF_UNIX SOCK_SEQPACKET socket, for cards
// that no kernel driver serves: the software card behind a card server, and what the daemon hands out. One
// socket stands for one open file of the driver: a control node, or a transfer descriptor.
//
// A request is a RequestHeader, then the call's structure; descriptors (a transfer's buffers) come with it as
// SCM_RIGHTS. A reply is a ReplyHeader, then the structure as the driver would have written it back, then
// `parts` SubReply; a descriptor that the call returns comes with it, and `result` is then 0. Replies may
// come in another order than their requests. Closing a socket is closing the file.
//
// In a Transfer, buf_fd is not a descriptor's number but the position of the buffer among the message's
// descriptors (0 or 1), or -1.
#pragma once

#include <doorbell/qdma/abi.hpp>

namespace doorbell::qdma::wire {

inline constexpr u32 kMagic = 0x31514244;  // "DBQ1"
inline constexpr u32 kVersion = 1;
/// The longest message, and the most descriptors in one.
inline constexpr u32 kMaxMessage = 1024;
inline constexpr u32 kMaxDescriptors = 2;
/// Requests that one socket may have without a reply; the next one is refused with EAGAIN.
inline constexpr u32 kMaxInFlight = 512;
/// The limit of a transfer whose request has no deadline.
inline constexpr u64 kDriverLimitNs = 10'000'000'000;

/// Calls that only the socket has. Their numbers are no ioctl numbers of type 'v'.
// A message of another form is answered with EPROTO, and the socket is closed. So is a Hello of another
// version, whose reply carries the server's Hello, and whatever comes before a Hello on a control socket. A
// message whose descriptors found no place in the server is answered with EMFILE; the socket stays.
inline constexpr u32 kHello = 1;  ///< structure: Hello; must be the first request of a control socket
/// Structure: Cancel; of a transfer or a BUF_CREATE on the same socket. Result: 0, ENOENT if no such call is
/// in flight. The call's own reply says ECANCELED, or how it had ended before.
inline constexpr u32 kCancel = 2;

/// Structure: HostBufferName. Result: 1 if some process still has the buffer, 0 if it has gone.
inline constexpr u32 kHeld = 3;

struct RequestHeader {
  u32 magic = kMagic;
  u32 number = 0;       ///< an ioctl number of abi.hpp, or kHello, kCancel
  u64 sequence = 0;     ///< comes back with the reply
  u64 deadline_ns = 0;  ///< of a transfer, from its arrival; 0: kDriverLimitNs
  u32 bytes = 0;        ///< of the structure
  u32 descriptors = 0;
};

struct ReplyHeader {
  u32 magic = kMagic;
  u32 bytes = 0;  ///< of the structure
  u64 sequence = 0;
  std::int64_t result = 0;  ///< what ioctl() returns: at least 0, or a negative errno
  u32 parts = 0;            ///< SubReply that follow: the sub-transfers of a transfer
  u32 descriptors = 0;      ///< 0 or 1
};

struct SubReply {
  u32 error = 0;  ///< an errno, positive
  u32 pad = 0;
  u64 bytes = 0;
  u64 ns = 0;
};

struct Hello {
  u32 version = kVersion;
  u32 caps = 0;  ///< 0
};

struct Cancel {
  u64 sequence = 0;  ///< of the call
};

/// The file of a host buffer, as statx() names it.
struct HostBufferName {
  u64 device = 0;  ///< major number << 32 | minor
  u64 inode = 0;
  friend auto operator<=>(const HostBufferName&, const HostBufferName&) = default;
};

/// 0, or an errno. Asks no file system for it: the file may be one whose server waits for us.
[[nodiscard]] int name_of(int fd, HostBufferName& out);

static_assert(sizeof(RequestHeader) == 32 && sizeof(ReplyHeader) == 32 && sizeof(SubReply) == 24);

}  // namespace doorbell::qdma::wire
