// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/sockets/tcp_tx.hpp"

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace doorbell::net::sockets {

namespace {

/// Of one call: more than any socket takes at once gains nothing.
constexpr u64 kMostWriteBytes = u64{16} << 20;

}  // namespace

TcpTxQueue::TcpTxQueue(Descriptor socket, Region memory, u32 payload_bytes)
    : socket_(std::move(socket)),
      memory_(std::move(memory)),
      slots_(slots_in(memory_, payload_bytes)),
      vectors_(kMaxVectors) {}

/// Lays out what is left of the last packet, and then packets.
TcpTxQueue::Gathered TcpTxQueue::gather(u64 first, u32 count, u32 bytes) {
  Gathered g;
  if (left_ > 0) {
    vectors_[g.vectors++] = {rest_, left_};
    g.bytes = left_;
  }
  for (u32 i = 0; i < count && g.bytes < kMostWriteBytes; ++i) {
    u8* const at = slots_.payload(first + i);
    iovec* const before = g.vectors > 0 ? &vectors_[g.vectors - 1] : nullptr;
    if (before != nullptr && static_cast<u8*>(before->iov_base) + before->iov_len == at)
      before->iov_len += bytes;
    else if (g.vectors == kMaxVectors) break;
    else vectors_[g.vectors++] = {at, bytes};
    g.bytes += bytes;
  }
  return g;
}

u64 TcpTxQueue::write(u32 vectors) {
  msghdr m{};
  m.msg_iov = vectors_.data();
  m.msg_iovlen = vectors;
  for (;;) {
    const ssize_t sent = ::sendmsg(socket_.get(), &m, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent >= 0) {
      ++calls_;
      bytes_ += static_cast<u64>(sent);
      return static_cast<u64>(sent);
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != ENOBUFS && errno != ENOMEM) error_ = errno;
    return 0;
  }
}

u32 TcpTxQueue::send(u64 first, u32 count, u32 bytes) {
  u32 done = 0;
  while ((done < count || left_ > 0) && error_ == 0 && !shut_) {
    const Gathered g = gather(first + done, count - done, bytes);
    const u64 sent = write(g.vectors);
    const u64 rest = std::min(sent, left_);
    rest_ += rest;
    left_ -= rest;
    const u64 fresh = sent - rest;
    done += static_cast<u32>(fresh / bytes);
    if (const u64 part = fresh % bytes; part > 0) {
      rest_ = slots_.payload(first + done) + part;
      left_ = bytes - part;
      ++done;
      ++partial_sends_;
    }
    if (sent < g.bytes) break;
  }
  accepted_ += done;
  return done;
}

bool TcpTxQueue::flush() {
  if (left_ > 0) (void)send(0, 0, 1);
  return left_ == 0 || broken();
}

void TcpTxQueue::wait(u64 limit_ns) {
  pollfd p{socket_.get(), POLLOUT, 0};
  wait_for(&p, 1, limit_ns);
  if ((p.revents & POLLERR) != 0)
    if (const int error = take_error(socket_.get()); error != 0) error_ = error;
}

bool TcpTxQueue::finish() {
  if (left_ > 0 && error_ == 0) {
    vectors_[0] = {rest_, left_};
    const u64 sent = write(1);
    rest_ += sent;
    left_ -= sent;
  }
  if (error_ == 0) error_ = take_error(socket_.get());
  if (error_ != 0) return true;
  if (left_ > 0) return false;
  if (!shut_) {
    shut_ = true;
    if (::shutdown(socket_.get(), SHUT_WR) != 0) error_ = errno;
  }
  int unacknowledged = 0;
  return error_ != 0 || ::ioctl(socket_.get(), SIOCOUTQ, &unacknowledged) != 0 || unacknowledged == 0;
}

}  // namespace doorbell::net::sockets
