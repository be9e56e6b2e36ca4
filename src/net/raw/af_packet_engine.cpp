// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Raw frames through the kernel's packet sockets.

#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <linux/if_packet.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "net/links/namespaces.hpp"
#include "net/raw/af_packet_rx.hpp"
#include "net/raw/engines.hpp"
#include "net/raw/kernel_socket.hpp"
#include "net/raw/tx_frames.hpp"
#include "system/sysfs.hpp"

namespace doorbell::net::raw {

namespace {

/// Frames that one system call takes.
constexpr u32 kFramesAtOnce = 128;
/// An interface without room says so, but not when it has some again.
constexpr u64 kInterfacePauseNs = 20'000;

class PacketTx final : public TxQueue {
 public:
  /// Opens the socket in the calling thread's namespace.
  PacketTx(const std::string& title, const std::string& interface, const FlowAddress& address,
           u32 max_payload)
      : frames_(address, max_payload), messages_(kFramesAtOnce), parts_(kFramesAtOnce) {
    // Without a protocol the socket receives nothing.
    socket_ = Descriptor(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0));
    require(socket_.get() >= 0, title, "a packet socket");
    set_option(socket_.get(), SOL_PACKET, PACKET_QDISC_BYPASS, int{1}, title, "PACKET_QDISC_BYPASS");
    sockaddr_ll at{};
    at.sll_family = AF_PACKET;
    at.sll_ifindex = static_cast<int>(interface_index(interface, title));
    require(bind(socket_.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0, title,
            "binding to " + interface);
    for (u32 i = 0; i < kFramesAtOnce; ++i) {
      messages_[i].msg_hdr.msg_iov = &parts_[i];
      messages_[i].msg_hdr.msg_iovlen = 1;
    }
  }

  [[nodiscard]] TxSlots slots() const override { return frames_.slots(); }

  u32 send(u64 first, u32 count, u32 bytes) override {
    if (bytes > frames_.max_payload()) return 0;
    frames_.finish(first, count, bytes);
    u32 accepted = 0;
    while (accepted < count) {
      const u32 batch = std::min(count - accepted, kFramesAtOnce);
      for (u32 i = 0; i < batch; ++i)
        parts_[i] = {frames_.frame(first + accepted + i), frames_.header_bytes() + bytes};
      const int n = sendmmsg(socket_.get(), messages_.data(), batch, MSG_DONTWAIT);
      interface_full_ = n < 0 && errno == ENOBUFS;
      if (n < 0) {
        broken_ = errno != EAGAIN && errno != ENOBUFS && errno != EINTR && errno != ENOMEM;
        break;
      }
      accepted += static_cast<u32>(n);
    }
    accepted_ = first + accepted;
    return accepted;
  }

  /// The kernel has copied what it has accepted.
  [[nodiscard]] u64 completed() override { return accepted_; }
  void wait(u64 limit_ns) override {
    if (interface_full_) poll_socket(-1, 0, std::min(limit_ns, kInterfacePauseNs));
    else poll_socket(socket_.get(), POLLOUT, limit_ns);
  }
  [[nodiscard]] bool broken() override { return broken_; }

  /// The size of the socket's buffer, in which the kernel counts its copies that have not left the interface.
  [[nodiscard]] u32 buffer_bytes() const {
    int bytes = 0;
    socklen_t n = sizeof bytes;
    return getsockopt(socket_.get(), SOL_SOCKET, SO_SNDBUF, &bytes, &n) == 0 ? static_cast<u32>(bytes) : 0;
  }

 private:
  TxFrames frames_;
  Descriptor socket_;
  std::vector<mmsghdr> messages_;
  std::vector<iovec> parts_;
  u64 accepted_ = 0;
  bool interface_full_ = false, broken_ = false;
};

class PacketStream final : public Stream {
 public:
  PacketStream(const StreamRequest& request, Link& link) : title_(engine_title("af_packet")) {
    facts_ = {{"qdisc_bypass", true}};
    if (request.has_rx) {
      const std::string interface = interface_of(link, End::rx, title_);
      link.in(End::rx, [&] { open_rx(request, interface); });
    }
    if (request.has_tx) {
      const std::string interface = interface_of(link, End::tx, title_);
      link.in(End::tx, [&] { open_tx(request, link, interface); });
    }
  }

  [[nodiscard]] nlohmann::ordered_json facts() override { return facts_; }

 private:
  void open_rx(const StreamRequest& request, const std::string& interface) {
    if (request.encapsulation == Encapsulation::udp4) silent_.emplace(request.port, request.flows);
    for (u16 q = 0; q < request.rx_queues; ++q) {
      auto queue = std::make_unique<PacketRx>(title_, interface, request, q);
      facts_["rx_ring_bytes"] = queue->ring_bytes();
      facts_["block_timeout_ms"] = request.block_timeout_ms;
      facts_["rx_copied"] = queue->copies();
      rx.push_back(std::move(queue));
    }
  }
  void open_tx(const StreamRequest& request, const Link& link, const std::string& interface) {
    for (u32 f = 0; f < request.flows; ++f) {
      auto queue = std::make_unique<PacketTx>(title_, interface, flow_address(link, request, f),
                                              request.payload_bytes);
      facts_["tx_socket_bytes"] = queue->buffer_bytes();
      tx.push_back(std::move(queue));
    }
  }

  std::string title_;
  std::optional<SilentPorts> silent_;
  nlohmann::ordered_json facts_;
};

std::unique_ptr<Stream> open_af_packet(const StreamRequest& request, Link& link) {
  check_request(request, link);
  static_cast<void>(flow_address(link, request, request.flows - 1));  // its port is the highest
  return std::make_unique<PacketStream>(request, link);
}

BackendStatus af_packet_status() {
  const Descriptor s(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0));
  if (s.get() >= 0) return {true, "packet sockets with a ring of blocks (TPACKET_V3)"};
  const int error = errno;
  if (error == EPERM && namespaces_status().usable)
    return {true,
            "packet sockets in namespaces of this program (link veth); elsewhere CAP_NET_RAW is missing"};
  return {false, fmt::format("a packet socket: {}{}", reason(error),
                             error == EPERM ? ", CAP_NET_RAW is missing" : "")};
}

}  // namespace

}  // namespace doorbell::net::raw

namespace doorbell::net {

const StreamKind& af_packet_engine() {
  static const StreamKind kind = raw::frames_kind({
      .name = "af_packet",
      .ordered = false,
      .blocks = true,
      .status = raw::af_packet_status,
      .open = raw::open_af_packet,
  });
  return kind;
}

}  // namespace doorbell::net
