// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/roce/udp_socket.hpp"

#include <arpa/inet.h>
#include <doorbell/error.hpp>
#include <netinet/in.h>
#include <netinet/udp.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "rdma/roce/damage.hpp"
#include "rdma/roce/icrc.hpp"
#include "rdma/roce/names.hpp"
#include "rdma/roce/ring.hpp"
#include "rdma/roce/trace.hpp"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

namespace doorbell::roce {

namespace {

constexpr int kSocketBuffer = 8 << 20;
// Of one datagram that the kernel cuts up: Linux before 6.9 takes 64 segments.
constexpr std::size_t kMostSegments = 64;
constexpr std::size_t kMostDatagram = 65507;

sockaddr_in address_of(Endpoint e) {
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_port = htons(e.port);
  a.sin_addr.s_addr = htonl(e.address);
  return a;
}

void set(int socket, int level, int option, int value) {
  static_cast<void>(setsockopt(socket, level, option, &value, sizeof value));
}

void enlarge(int socket, int forced, int plain) {
  const int bytes = kSocketBuffer;
  // The first call passes the system's limit, which needs CAP_NET_ADMIN.
  if (setsockopt(socket, SOL_SOCKET, forced, &bytes, sizeof bytes) != 0)
    set(socket, SOL_SOCKET, plain, kSocketBuffer);
}

u32 size_of_record(const u8* record) {
  u32 n = 0;
  std::memcpy(&n, record, sizeof n);
  return n;
}

[[noreturn]] void refuse(Endpoint self, int error) {
  const std::string what = "address " + name_of(self);
  if (error == EADDRINUSE)
    throw Error(what, "it is taken",
                "another NIC of doorbell has it, or a socket of all addresses has the port, as the kernel's "
                "soft-RoCE (rdma_rxe) does: choose another address or port");
  if (error == EADDRNOTAVAIL)
    throw Error(what, "it is no address of this machine",
                "any address of 127.0.0.0/8 is, and what `ip address` shows");
  throw Error(what, std::string("no UDP socket: ") + std::strerror(error));
}

}  // namespace

UdpSocket::UdpSocket(Endpoint self, Options options, WireCounts& counts, Trace* trace)
    : self_(self), counts_(counts), trace_(trace), options_(options) {
  socket_ = Descriptor(socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (socket_.get() < 0) refuse(self, errno);
  // So that IPv4's identification is 0, as the ICRC has it: the kernel counts it in what may be fragmented,
  // and in datagrams of a connected socket.
  set(socket_.get(), IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO);
  enlarge(socket_.get(), SO_RCVBUFFORCE, SO_RCVBUF);
  enlarge(socket_.get(), SO_SNDBUFFORCE, SO_SNDBUF);
  if (options.segmentation) set(socket_.get(), IPPROTO_UDP, UDP_GRO, 1);
  sockaddr_in own = address_of(self);
  if (bind(socket_.get(), reinterpret_cast<const sockaddr*>(&own), sizeof own) != 0) refuse(self, errno);
  socklen_t size = sizeof own;
  if (getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&own), &size) == 0)
    self_.port = ntohs(own.sin_port);
  buffers_ = std::make_unique_for_overwrite<u8[]>(kBuffers * kLongest);
}

/// Room for one control message of a datagram.
union UdpSocket::Control {
  cmsghdr aligned;
  char bytes[CMSG_SPACE(sizeof(int))];
};

/// Messages of one sendmmsg, and the packets that they point to.
struct UdpSocket::Group {
  std::array<mmsghdr, kBatch> messages;
  std::array<iovec, kBatch> pieces;
  std::array<Control, kBatch> controls;
  std::array<u8*, kBatch> begins;  ///< each message's first record
};

u8* UdpSocket::send(Endpoint peer, u8* at, u8* end) {
  sockaddr_in to = address_of(peer);
  const Route route{.source = self_, .destination = peer};
  Group g;
  while (at != end) {
    std::size_t messages = 0, pieces = 0;
    u8* next = at;
    while (next != end && pieces != kBatch) {
      g.begins[messages] = next;
      msghdr& m = g.messages[messages].msg_hdr;
      m = {};
      m.msg_name = &to;
      m.msg_namelen = sizeof to;
      m.msg_iov = &g.pieces[pieces];
      // One size but for the last, which may be shorter.
      const std::size_t first = size_of_record(next) + kIcrcBytes;
      std::size_t segments = 0, bytes = 0, size = first;
      while (next != end && pieces != kBatch && size == first) {
        const std::size_t n = size_of_record(next);
        size = n + kIcrcBytes;
        if (segments != 0 && (!options_.segmentation || size > first || bytes + size > kMostDatagram)) break;
        u8* const packet = next + Path::kRecordHeader;
        // The kernel, or a device, counts the identification up in the segments.
        const u32 check = icrc(route, {packet, n}, static_cast<u16>(segments));
        std::memcpy(packet + n, &check, sizeof check);
        if (options_.damage) damage(packet, size);
        g.pieces[pieces++] = {packet, size};
        bytes += size;
        ++segments;
        next += Path::record_bytes(n);
        if (segments == kMostSegments) break;
      }
      m.msg_iovlen = segments;
      if (segments > 1) {
        Control& c = g.controls[messages];
        m.msg_control = &c;
        m.msg_controllen = CMSG_SPACE(sizeof(u16));
        cmsghdr* const header = CMSG_FIRSTHDR(&m);
        header->cmsg_level = IPPROTO_UDP;
        header->cmsg_type = UDP_SEGMENT;
        header->cmsg_len = CMSG_LEN(sizeof(u16));
        const u16 value = static_cast<u16>(first);
        std::memcpy(CMSG_DATA(header), &value, sizeof value);
      }
      ++messages;
    }
    const int sent = sendmmsg(socket_.get(), g.messages.data(), static_cast<unsigned>(messages),
                              MSG_DONTWAIT | MSG_NOSIGNAL);
    const int error = sent < 0 ? errno : 0;
    std::size_t done = sent < 0 ? 0 : static_cast<std::size_t>(sent);
    for (std::size_t i = 0; i < done; ++i) {
      const msghdr& m = g.messages[i].msg_hdr;
      counts_.packets_sent.add(m.msg_iovlen);
      counts_.flushes.add();
      if (trace_ == nullptr) continue;
      for (std::size_t j = 0; j < m.msg_iovlen; ++j)
        trace_->packet(route, {static_cast<const u8*>(m.msg_iov[j].iov_base), m.msg_iov[j].iov_len},
                       static_cast<u16>(j), Trace::Direction::out);
    }
    if (error == EINTR) continue;
    if (error == EAGAIN || error == EWOULDBLOCK) return at;
    if (error != 0) {
      const std::size_t lost = g.messages[0].msg_hdr.msg_iovlen;
      if (lost > 1) {  // a device that does not cut up datagrams, or packets too long for it
        options_.segmentation = false;
        continue;
      }
      counts_.unsent.add(lost);
      done = 1;
    }
    at = done == messages ? next : g.begins[done];
  }
  return at;
}

void UdpSocket::receive(std::vector<Arrival>& into) {
  std::array<mmsghdr, kBuffers> messages{};
  std::array<iovec, kBuffers> pieces;
  std::array<Control, kBuffers> controls;
  std::array<sockaddr_in, kBuffers> sources;
  for (std::size_t i = 0; i < kBuffers; ++i) {
    pieces[i] = {buffers_.get() + i * kLongest, kLongest};
    msghdr& m = messages[i].msg_hdr;
    m.msg_name = &sources[i];
    m.msg_namelen = sizeof sources[i];
    m.msg_iov = &pieces[i];
    m.msg_iovlen = 1;
    m.msg_control = &controls[i];
    m.msg_controllen = sizeof controls[i];
  }
  const int n = recvmmsg(socket_.get(), messages.data(), kBuffers, MSG_DONTWAIT, nullptr);
  for (int i = 0; i < n; ++i) {
    const auto k = static_cast<std::size_t>(i);
    msghdr& m = messages[k].msg_hdr;
    if (m.msg_namelen < sizeof(sockaddr_in) || sources[k].sin_family != AF_INET) continue;
    int segment = 0;
    for (cmsghdr* c = CMSG_FIRSTHDR(&m); c != nullptr; c = CMSG_NXTHDR(&m, c))
      if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO)
        std::memcpy(&segment, CMSG_DATA(c), sizeof segment);
    const std::size_t bytes = messages[k].msg_len;
    const Endpoint source{.address = ntohl(sources[k].sin_addr.s_addr), .port = ntohs(sources[k].sin_port)};
    split(source, buffers_.get() + k * kLongest, bytes,
          segment > 0 ? static_cast<std::size_t>(segment) : bytes, into);
  }
}

/// An identification that was found by the ICRC may be damage that looks like one. Those of a source go on
/// from one packet to the next, with gaps where it sends to others too; ours stay below kMostSegments.
bool UdpSocket::plausible(u32 source, u16 identification) {
  if (identification < kMostSegments) return true;
  constexpr u16 kGap = 4096;
  Counting& c = counting_[source % counting_.size()];
  const bool follows = c.source != source || static_cast<u16>(identification - c.last) < kGap;
  c = {.source = source, .last = identification};
  return follows;
}

void UdpSocket::split(Endpoint source, const u8* data, std::size_t bytes, std::size_t segment,
                      std::vector<Arrival>& into) {
  const Route route{.source = source, .destination = self_};
  if (bytes == 0) counts_.malformed.add();
  u16 guess = 0;
  for (std::size_t at = 0; at < bytes; at += segment, ++guess) {
    const std::size_t size = std::min(segment, bytes - at);
    if (size < kLeastPacket + kIcrcBytes || size > kMostPacket + kIcrcBytes) {
      counts_.malformed.add();
      continue;
    }
    const std::span<const u8> packet(data + at, size - kIcrcBytes);
    u32 stored = 0;
    std::memcpy(&stored, data + at + packet.size(), sizeof stored);
    const std::optional<u16> id = identification_of(route, packet, stored, guess);
    if (trace_ != nullptr) trace_->packet(route, {data + at, size}, id.value_or(0), Trace::Direction::in);
    if (!id || (*id != guess && !plausible(source.address, *id))) {
      counts_.bad_icrc.add();
      continue;
    }
    if (Counting& c = counting_[source.address % counting_.size()]; c.source != source.address)
      c = {.source = source.address, .last = *id};
    counts_.packets_received.add();
    into.push_back({.source = source, .bytes = packet});
  }
}

}  // namespace doorbell::roce
