// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/sockets/socket.hpp"

#include <arpa/inet.h>
#include <doorbell/error.hpp>
#include <doorbell/net/packet.hpp>
#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "net/settings.hpp"
#include "system/available_memory.hpp"
#include "system/clock.hpp"
#include "system/sysfs.hpp"

namespace doorbell::net::sockets {

namespace {

constexpr u64 kSlotAlignment = 32;

u64 slot_stride(u32 payload_bytes) {
  return (payload_bytes + kSlotAlignment - 1) / kSlotAlignment * kSlotAlignment;
}

}  // namespace

sockaddr_in address_of(const std::string& ip, u16 port) {
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_port = htons(port);
  if (::inet_pton(AF_INET, ip.c_str(), &a.sin_addr) != 1)
    throw Error("a socket's address", fmt::format("'{}' is no IPv4 address", ip));
  return a;
}

std::string text_of(const sockaddr_in& a) {
  char ip[INET_ADDRSTRLEN] = "?";
  ::inet_ntop(AF_INET, &a.sin_addr, ip, sizeof ip);
  return fmt::format("{}:{}", ip, ntohs(a.sin_port));
}

sockaddr_in local_address(int fd) {
  sockaddr_in a{};
  socklen_t bytes = sizeof a;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&a), &bytes) != 0)
    throw Error("a socket's address", reason(errno));
  return a;
}

bool same(const sockaddr_in& a, const sockaddr_in& b) {
  return a.sin_port == b.sin_port && a.sin_addr.s_addr == b.sin_addr.s_addr;
}

std::string hint_of(int error) {
  return error == EMFILE ? "raise the limit of open files: ulimit -n" : "";
}

Descriptor open_socket(int type) {
  Descriptor socket(::socket(AF_INET, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (socket.get() < 0)
    throw Error(type == SOCK_STREAM ? "a TCP socket" : "a UDP socket", reason(errno), hint_of(errno));
  return socket;
}

void set_option(int fd, int level, int option, int value, const std::string& name) {
  if (::setsockopt(fd, level, option, &value, sizeof value) != 0) throw Error(name, reason(errno));
}

std::optional<int> get_option(int fd, int level, int option) {
  int value = 0;
  socklen_t bytes = sizeof value;
  if (::getsockopt(fd, level, option, &value, &bytes) != 0) return std::nullopt;
  return value;
}

BufferBytes set_buffer(int fd, Direction direction, u64 bytes) {
  const bool receive = direction == Direction::receive;
  BufferBytes out;
  if (bytes > 0) {
    // The kernel doubles the value, for its overhead.
    const int value = static_cast<int>(std::min<u64>(bytes, INT_MAX / 2));
    out.forced =
        ::setsockopt(fd, SOL_SOCKET, receive ? SO_RCVBUFFORCE : SO_SNDBUFFORCE, &value, sizeof value) == 0;
    if (!out.forced)
      set_option(fd, SOL_SOCKET, receive ? SO_RCVBUF : SO_SNDBUF, value, receive ? "SO_RCVBUF" : "SO_SNDBUF");
  }
  out.given = static_cast<u64>(get_option(fd, SOL_SOCKET, receive ? SO_RCVBUF : SO_SNDBUF).value_or(0));
  return out;
}

void set_busy_poll(int fd, u32 us) {
  if (us > 0)
    set_option(fd, SOL_SOCKET, SO_BUSY_POLL, static_cast<int>(std::min<u32>(us, INT_MAX)),
               fmt::format("SO_BUSY_POLL of {} us", us));
}

Bound open_bound(int type, const std::string& ip, u32 port, bool next_free,
                 const std::function<void(int fd)>& prepare) {
  for (;; ++port) {
    if (port > 0xffff) throw Error(fmt::format("a port of {}", ip), "none is left up to 65535");
    Descriptor s = open_socket(type);
    prepare(s.get());
    const sockaddr_in a = address_of(ip, static_cast<u16>(port));
    if (::bind(s.get(), reinterpret_cast<const sockaddr*>(&a), sizeof a) == 0 &&
        (type != SOCK_STREAM || ::listen(s.get(), SOMAXCONN) == 0))
      return {std::move(s), static_cast<u16>(port)};
    if (errno == EADDRINUSE && next_free) continue;
    throw Error(fmt::format("port {} of {}", port, ip), reason(errno),
                errno == EADDRINUSE      ? "another program has it: choose another port"
                : errno == EADDRNOTAVAIL ? "no interface of this end has that address"
                                         : "");
  }
}

short wait_until(int fd, short events, u64 until_ns) {
  for (;;) {
    pollfd p{fd, events, 0};
    const u64 now = wall_ns();
    if (wait_for(&p, 1, until_ns > now ? until_ns - now : 0)) return p.revents;
    if (wall_ns() >= until_ns) return 0;
  }
}

bool wait_for(pollfd* polls, std::size_t count, u64 limit_ns) {
  const timespec limit{static_cast<time_t>(limit_ns / 1'000'000'000),
                       static_cast<long>(limit_ns % 1'000'000'000)};
  return ::ppoll(polls, count, &limit, nullptr) > 0;
}

int take_error(int fd) {
  return get_option(fd, SOL_SOCKET, SO_ERROR).value_or(0);
}

void check_request(const StreamRequest& r, const Link& link, const std::string& kind, u64 max_payload,
                   const std::string& why_no_more) {
  const std::string stream = fmt::format("a {} stream over {}", kind, link.name());
  if (r.payload_bytes < kHeaderBytes || r.payload_bytes > max_payload)
    throw Error(fmt::format("a payload of {} bytes", r.payload_bytes),
                fmt::format("{} takes {} .. {} bytes", stream, kHeaderBytes, max_payload), why_no_more);
  if (r.burst == 0 || r.flows == 0 || r.rx_queues == 0)
    throw Error(stream, "the burst, the flows and the receive queues are at least 1");
  if (r.rx_queues > r.flows)
    throw Error(fmt::format("{} receive queues", r.rx_queues),
                fmt::format("a socket belongs to one queue, and there are {} flows", r.flows),
                "ask for as many flows as receive queues, or more");
  if (r.port == 0 || r.port + u64{r.flows} > 0x10000)
    throw Error(fmt::format("ports {} .. {}", r.port, r.port + u64{r.flows} - 1), "ports are 1 .. 65535");
  if (r.split) throw Error(stream, "sockets do not split headers from data", "use raw frames for that");
  if (r.place == Place::gpu)
    throw Error(stream, "sockets land in host memory, not in that of a GPU",
                "receive into pinned memory: whole windows are copied from there to the GPU");
  for (const End end : {End::tx, End::rx})
    // A receiver of another process accepts packets of any sender.
    if (link.ip(end).empty() && (end == End::rx || r.has_tx))
      throw Error(fmt::format("{} {}", setting::link, link.name()),
                  fmt::format("its {} end has no IPv4 address, which {} {} needs",
                              end == End::tx ? "sending" : "receiving", setting::stream, kind));
}

u32 slots_of(u32 payload_bytes) {
  // The kernel copies what is sent, so that a slot is free again at once. Of the largest records few slots
  // stay in a core's own cache.
  constexpr u64 kBytes = 64 << 20, kLarge = 512 << 10;
  if (payload_bytes > kLarge) return 3;
  return static_cast<u32>(std::min<u64>(kBytes / slot_stride(payload_bytes), kTemplates)) | 1;
}

Region slot_memory(const StreamRequest& r) {
  const u64 bytes = slot_stride(r.payload_bytes) * slots_of(r.payload_bytes);
  require_memory(
      bytes * r.flows, "the payload and the flows",
      fmt::format("{} flows x {} packets x {} bytes", r.flows, slots_of(r.payload_bytes), r.payload_bytes));
  return {Place::pageable, bytes};
}

TxSlots slots_in(const Region& memory, u32 payload_bytes) {
  return {memory.host(), slot_stride(payload_bytes), slots_of(payload_bytes)};
}

std::shared_ptr<gpu::Gpu> gpu_of(const StreamRequest& r) {
  return r.place == Place::pageable ? nullptr : r.gpu;
}

}  // namespace doorbell::net::sockets
