// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/sockets/udp_tx.hpp"

#include <linux/sockios.h>
#include <netinet/udp.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace doorbell::net::sockets {

namespace {

constexpr u32 kMessages = 64;  // of one system call
/// Both limits that kernels have had for the segments of one datagram.
constexpr u32 kFewSegments = 64;
/// How often a call is made again after errors that another socket has caused.
constexpr u32 kRetries = 8;

}  // namespace

UdpTxQueue::UdpTxQueue(Descriptor socket, Region memory, u32 payload_bytes, u32 segments)
    : socket_(std::move(socket)),
      memory_(std::move(memory)),
      slots_(slots_in(memory_, payload_bytes)),
      segments_(std::clamp(segments, 1u, UdpTxQueue::kManySegments)),
      messages_(kMessages),
      vectors_(kMaxVectors),
      packets_(kMessages) {
  // The kernel otherwise says nothing about a packet that a full interface queue has dropped.
  const int on = 1;
  ::setsockopt(socket_.get(), IPPROTO_IP, IP_RECVERR, &on, sizeof on);
}

/// Lays out messages for at most `count` packets and returns how many messages.
u32 UdpTxQueue::gather(u64 first, u32 count, u32 bytes, u32 per_datagram) {
  u32 messages = 0, vectors = 0, packets = 0;
  while (packets < count && messages < kMessages && vectors + per_datagram <= kMaxVectors) {
    const u32 here = std::min(per_datagram, count - packets);
    iovec* const list = &vectors_[vectors];
    u32 used = 0;
    for (u32 i = 0; i < here; ++i) {
      u8* const at = slots_.payload(first + packets + i);
      // Slots that touch are one piece: the kernel's work grows with the pieces.
      if (used > 0 && static_cast<u8*>(list[used - 1].iov_base) + list[used - 1].iov_len == at)
        list[used - 1].iov_len += bytes;
      else list[used++] = {at, bytes};
    }
    messages_[messages].msg_hdr.msg_iov = list;
    messages_[messages].msg_hdr.msg_iovlen = used;
    packets_[messages] = here;
    vectors += used;
    packets += here;
    ++messages;
  }
  return messages;
}

u32 UdpTxQueue::send(u64 first, u32 count, u32 bytes) {
  queue_full_ = false;
  u32 done = 0, retries = 0;
  while (done < count && error_ == 0) {
    const u32 per_datagram = segments(bytes);
    if (per_datagram > 1 && bytes != segment_bytes_) set_segment(bytes);
    const u32 messages = gather(first + done, count - done, bytes, per_datagram);
    const int sent = ::sendmmsg(socket_.get(), messages_.data(), messages, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0) {
      if (failed(errno, per_datagram) == After::later || ++retries > kRetries) break;
      continue;
    }
    ++calls_;
    for (int i = 0; i < sent; ++i) done += packets_[static_cast<u32>(i)];
    // The kernel keeps the reason of a short count to itself: the next call says it, if it persists.
  }
  accepted_ += done;
  return done;
}

UdpTxQueue::After UdpTxQueue::failed(int error, u32 per_datagram) {
  switch (error) {
    case EINTR:
      return After::again;
    case EAGAIN:
      return After::later;
    case ENOBUFS:
    case ENOMEM:
      ++no_buffer_;
      queue_full_ = true;
      return After::later;
    case ECONNREFUSED:
    case EHOSTUNREACH:
      // The answer to an earlier datagram took the place of this call's result: nothing was sent.
      take_reports();
      return After::again;
    case EINVAL:
    case EMSGSIZE:
    case EIO:
      if (per_datagram > 1) {  // an older kernel's limit, or an interface without checksum offload
        segments_ = error == EINVAL && segments_ > kFewSegments ? kFewSegments : 1;
        if (segments_ == 1) set_segment(0);
        return After::again;
      }
      [[fallthrough]];
    default:
      error_ = error;
      return After::later;
  }
}

void UdpTxQueue::set_segment(u32 bytes) {
  const int value = static_cast<int>(bytes);
  if (::setsockopt(socket_.get(), IPPROTO_UDP, UDP_SEGMENT, &value, sizeof value) == 0)
    segment_bytes_ = bytes;
  else segments_ = 1;
}

void UdpTxQueue::take_reports() {
  std::array<u8, 512> control;
  for (u32 i = 0; i < 64; ++i) {
    msghdr m{};
    m.msg_control = control.data();
    m.msg_controllen = control.size();
    if (::recvmsg(socket_.get(), &m, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) return;
    ++reports_;
  }
}

void UdpTxQueue::wait(u64 limit_ns) {
  if (queue_full_) {
    // The socket itself has room, so that poll(2) would return at once.
    wait_for(nullptr, 0, std::min<u64>(limit_ns, 100'000));
    return;
  }
  pollfd p{socket_.get(), POLLOUT, 0};
  wait_for(&p, 1, limit_ns);
  if ((p.revents & POLLERR) != 0) take_reports();
}

bool UdpTxQueue::finish() {
  take_reports();
  int left = 0;
  return error_ != 0 || ::ioctl(socket_.get(), SIOCOUTQ, &left) != 0 || left == 0;
}

u32 probe_segments(const std::string& ip) {
  const Descriptor to = open_socket(SOCK_DGRAM), from = open_socket(SOCK_DGRAM);
  sockaddr_in at = address_of(ip, 0);
  if (::bind(to.get(), reinterpret_cast<sockaddr*>(&at), sizeof at) != 0) return kFewSegments;
  at = local_address(to.get());
  if (::connect(from.get(), reinterpret_cast<sockaddr*>(&at), sizeof at) != 0) return kFewSegments;
  const int segment = 1;
  if (::setsockopt(from.get(), IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof segment) != 0) return 1;
  const std::array<u8, UdpTxQueue::kManySegments> bytes{};
  return ::send(from.get(), bytes.data(), bytes.size(), MSG_DONTWAIT) == UdpTxQueue::kManySegments
             ? UdpTxQueue::kManySegments
             : kFewSegments;
}

}  // namespace doorbell::net::sockets
