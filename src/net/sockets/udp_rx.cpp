// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/sockets/udp_rx.hpp"

#include <doorbell/net/packet.hpp>
#include <linux/sock_diag.h>
#include <netinet/udp.h>

#include <algorithm>
#include <cstring>

#include "net/sockets/udp_tx.hpp"
#include "system/clock.hpp"

namespace doorbell::net::sockets {

namespace {

constexpr u64 kLongestDatagram = 65536;  // rounded up; coalescing fills this much
constexpr u64 kLineBytes = 64;
constexpr u64 kMostMemory = u64{512} << 20;

u64 stride_of(const UdpRxQueue::Config& c) {
  return c.coalesce ? kLongestDatagram : (c.payload_bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
}

/// The packets that the kernel's count of drops may take for one.
u32 most_packets(const UdpRxQueue::Config& c) {
  return c.coalesce ? std::clamp(UdpTxQueue::kMaxDatagram / c.payload_bytes, 1u, UdpTxQueue::kManySegments)
                    : 1;
}

/// Room for two bursts, of datagrams that hold one packet each.
u32 buffers_of(const UdpRxQueue::Config& c) {
  const u64 most = kMostMemory / stride_of(c);
  return static_cast<u32>(std::clamp<u64>(2 * u64{c.burst}, 128, std::max<u64>(most, 128)));
}

}  // namespace

UdpRxQueue::UdpRxQueue(std::vector<UdpSource> sources, const Config& c)
    : queue_(c.queue),
      coalesce_(c.coalesce),
      max_payload_(c.payload_bytes),
      of_broken_(c.broken),
      stride_(stride_of(c)),
      most_packets_(most_packets(c)),
      buffers_(buffers_of(c)),
      memory_(c.place, stride_ * buffers_, c.gpu),
      messages_(buffers_),
      vectors_(buffers_),
      controls_(buffers_),
      contents_(buffers_) {
  for (UdpSource& s : sources) {
    polls_.push_back({s.socket.get(), POLLIN, 0});
    const u64 taken = s.taken;
    sources_.push_back({std::move(s), {}, taken});
  }
  for (u32 i = 0; i < buffers_; ++i) {
    vectors_[i] = {memory_.host() + i * stride_, stride_};
    messages_[i].msg_hdr.msg_iov = &vectors_[i];
    messages_[i].msg_hdr.msg_iovlen = 1;
    messages_[i].msg_hdr.msg_control = controls_[i].bytes.data();
    messages_[i].msg_hdr.msg_controllen = sizeof(Control::bytes);
  }
}

u32 UdpRxQueue::receive(Burst& burst) {
  burst.count = 0;
  burst.queue = queue_;
  burst.split = false;
  burst.rx_time_ns = 0;
  // Buffers without a packet of the stream are in no burst, and come back here.
  if (outstanding_ == 0) released_ = delivered_;
  if (released_ == filled_) head_ = tail_ = 0;
  deliver(burst);
  for (std::size_t i = 0; i < sources_.size() && burst.count < burst.capacity(); ++i) {
    if (++turn_ >= sources_.size()) turn_ = 0;
    fill(turn_, burst.capacity() - burst.count);
    deliver(burst);
  }
  if (burst.count > 0) burst.rx_time_ns = wall_ns();
  outstanding_ += burst.count;
  return burst.count;
}

/// Hands over packets of filled buffers. A packet's token counts the buffers that are free once it is
/// released.
void UdpRxQueue::deliver(Burst& burst) {
  u32 n = burst.count;
  while (delivered_ < filled_ && n < burst.capacity()) {
    const Filled& now = contents_[tail_];
    u8* const base = memory_.host() + tail_ * stride_;
    // An empty datagram is a packet too.
    bool more = now.bytes > 0 || now.empty;
    while (more && n < burst.capacity()) {
      const u32 length = std::min(now.segment, now.bytes - offset_);
      if (length > max_payload_) {
        ++too_long_;
      } else {
        burst.data[n] = base + offset_;
        burst.length[n] = length;
        burst.token[n] = delivered_;
        ++n;
      }
      offset_ += length;
      more = offset_ < now.bytes;
    }
    if (more) break;
    ++delivered_;
    if (n > 0) burst.token[n - 1] = delivered_;
    offset_ = 0;
    if (++tail_ == buffers_) tail_ = 0;
  }
  burst.count = n;
}

/// Receives datagrams that hold about this many packets.
void UdpRxQueue::fill(std::size_t source, u32 packets) {
  const u64 free = buffers_ - (filled_ - released_);
  const u64 in_a_row = std::min<u64>({free, buffers_ - head_, kMaxVectors});
  const u32 wanted = (packets + usual_packets_ - 1) / usual_packets_;
  const u32 most = static_cast<u32>(std::min<u64>(in_a_row, wanted));
  if (most == 0) return;
  const int got =
      ::recvmmsg(sources_[source].of.socket.get(), &messages_[head_], most, MSG_DONTWAIT, nullptr);
  for (int i = 0; i < got; ++i) {
    accept(source, head_);
    if (++head_ == buffers_) head_ = 0;
  }
  if (got > 0) filled_ += static_cast<u64>(got);
}

void UdpRxQueue::accept(std::size_t source, u32 buffer) {
  msghdr& m = messages_[buffer].msg_hdr;
  Filled& filled = contents_[buffer];
  filled.bytes = filled.segment = messages_[buffer].msg_len;
  if ((m.msg_flags & MSG_TRUNC) != 0) {
    ++too_long_;
    filled.bytes = filled.segment = 0;
  }
  filled.empty = filled.bytes == 0 && (m.msg_flags & MSG_TRUNC) == 0;
  for (cmsghdr* c = CMSG_FIRSTHDR(&m); c != nullptr; c = CMSG_NXTHDR(&m, c)) {
    u32 value = 0;
    std::memcpy(&value, CMSG_DATA(c), sizeof value);
    if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_RXQ_OVFL) sources_[source].drops.update(value);
    else if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO && value > 0)
      filled.segment = std::min(value, filled.bytes);
  }
  m.msg_controllen = sizeof(Control::bytes);
  usual_packets_ = filled.bytes > 0 ? (filled.bytes + filled.segment - 1) / filled.segment : 1;
  sources_[source].packets += usual_packets_;
}

void UdpRxQueue::release(Burst& burst) {
  // Tokens grow along a burst, and bursts come back in their order.
  if (burst.count > 0) released_ = std::max(released_, burst.token[burst.count - 1]);
  outstanding_ -= burst.count;
  burst.count = 0;
}

void UdpRxQueue::wait(u64 limit_ns) {
  if (delivered_ == filled_) wait_for(polls_.data(), polls_.size(), limit_ns);
}

u64 UdpRxQueue::unmatched() {
  return too_long_ + (of_broken_ ? of_broken_() : 0);
}

Drops UdpRxQueue::dropped(Source& s) const {
  // In this order: what arrives in between is then seen to wait in the socket.
  const u64 arrived = s.of.arrivals ? s.of.arrivals->count() : 0;
  // A packet reports the drops before it. Only the socket itself counts those after the last packet.
  std::array<u32, SK_MEMINFO_VARS> info{};
  socklen_t bytes = sizeof info;
  if (::getsockopt(s.of.socket.get(), SOL_SOCKET, SO_MEMINFO, info.data(), &bytes) == 0)
    s.drops.update(info[SK_MEMINFO_DROPS]);
  Drops d;
  d.socket = d.socket_most = s.drops.total();
  if (d.socket == 0) return d;
  if (!s.of.arrivals) {
    d.socket_most *= most_packets_;
  } else {
    // A packet that has arrived and was not taken has been dropped, or waits.
    d.socket_most = std::max(d.socket, arrived - s.packets);
    if (info[SK_MEMINFO_RMEM_ALLOC] == 0) d.socket = d.socket_most;
  }
  return d;
}

Drops UdpRxQueue::drops() {
  Drops all;
  for (Source& s : sources_) all += dropped(s);
  if (all.socket_most == all.socket) all.socket_most = 0;
  return all;
}

bool UdpRxQueue::counts_packets() const {
  return !coalesce_ || std::all_of(sources_.begin(), sources_.end(),
                                   [](const Source& s) { return s.of.arrivals.has_value(); });
}

}  // namespace doorbell::net::sockets
