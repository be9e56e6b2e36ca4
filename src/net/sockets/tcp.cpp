// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "net/sockets/meeting.hpp"
#include "net/sockets/sockets.hpp"
#include "net/sockets/tcp_connection.hpp"
#include "net/sockets/tcp_rx.hpp"
#include "net/sockets/tcp_tx.hpp"
#include "system/clock.hpp"
#include "system/sysfs.hpp"

namespace doorbell::net {

namespace {

using namespace sockets;

/// Ethernet, IPv4 and TCP of a segment; a record may share a segment or take many.
constexpr u32 kTcpOverheadBytes = 14 + 20 + 20;
constexpr u64 kMaxRecord = u64{64} << 20;
/// How long the receiving process waits for its sender's connections, which have kSetupNs.
constexpr double kMeetS = 2e-9 * kSetupNs;

Json connection_facts(int fd) {
  tcp_info info{};
  socklen_t bytes = sizeof info;
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) != 0) return Json::object();
  return {{"retransmits", info.tcpi_total_retrans},
          {"rtt_us", info.tcpi_rtt},
          {"congestion_window_segments", info.tcpi_snd_cwnd},
          {"segment_bytes", info.tcpi_snd_mss},
          {"send_buffer_bytes", get_option(fd, SOL_SOCKET, SO_SNDBUF).value_or(0)}};
}

/// Segments with data that the connection has sent, again or for the first time, and the bytes of options in
/// each. Linux tells of it since 4.6.
struct Segments {
  u64 count = 0;
  u32 option_bytes = 0;
  u32 most_bytes = 0;  ///< of data
};
std::optional<Segments> segments_of(int fd) {
  // The C library's structure ends before the kernel's, whose own header cannot be included beside it.
  struct Longer {
    tcp_info info{};
    std::array<u32, 13> others{};
    u32 data_segs_out = 0;
  } all;
  static_assert(offsetof(Longer, data_segs_out) == 156);
  socklen_t bytes = sizeof all;
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &all, &bytes) != 0) return std::nullopt;
  Segments s;
  // Ten bytes, and two that align them.
  if ((all.info.tcpi_options & TCPI_OPT_TIMESTAMPS) != 0) s.option_bytes = 12;
  s.most_bytes = all.info.tcpi_snd_mss;
  if (bytes == sizeof all) s.count = all.data_segs_out;
  return s;
}

class TcpStream final : public Stream {
 public:
  TcpStream(const StreamRequest& request, Link& link)
      : request_(request), link_(link), other_(link.other_process()) {
    check_request(request, link, "tcp", kMaxRecord, "");
    if (request.has_rx) link.in(End::rx, [&] { listen_all(); });
    meeting_ = meet(request, link, std::move(meeting_.ports));
    if (request.has_tx) link.in(End::tx, [&] { connect_all(wall_ns() + kSetupNs); });
    // Behind it the sender's connections are there, and wait to be accepted.
    if (other_ != nullptr) other_->barrier("connected", kMeetS);
    if (request.has_rx) accept_all(wall_ns() + kSetupNs);
  }

  Json facts() override {
    Json out;
    out["ports"] = meeting_.ports;
    if (request_.has_tx) out["send"] = send_facts();
    if (request_.has_rx) out["receive"] = receive_facts();
    return out;
  }

  [[nodiscard]] Framing framing(u64 packets) const override {
    Segments all;
    for (const TcpTxQueue* q : tx_queues_) {
      const auto s = segments_of(q->fd());
      // The greeting is a segment too.
      if (s) all.count += s->count - (other_ != nullptr && s->count > 0 ? 1 : 0);
      if (s) all.option_bytes = s->option_bytes, all.most_bytes = s->most_bytes;
    }
    Framing f{.header_bytes = kTcpOverheadBytes + all.option_bytes};
    f.estimated = packets == 0 || all.count == 0;
    if (!f.estimated) f.frames_per_packet = static_cast<double>(all.count) / static_cast<double>(packets);
    else if (all.most_bytes > 0)
      f.frames_per_packet =
          std::max(1.0, std::ceil(static_cast<double>(request_.payload_bytes) / all.most_bytes));
    return f;
  }

 private:
  void listen_all() {
    u32 next = request_.port;
    for (u32 f = 0; f < request_.flows; ++f) {
      Bound b =
          open_bound(SOCK_STREAM, link_.ip(End::rx), next, sender_is_told(request_, link_), [&](int fd) {
            // Connections of an earlier run that linger do not keep the port.
            set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1, "SO_REUSEADDR");
            // Connections inherit it, and it bounds the window that the first segment announces.
            set_buffer(fd, Direction::receive, request_.socket_bytes);
          });
      next = b.port + u32{1};
      meeting_.ports.push_back(b.port);
      listeners_.push_back(std::move(b.socket));
    }
  }

  void connect_all(u64 until) {
    // Who has been told the ports knows that somebody listens there.
    const bool retry = !sender_is_told(request_, link_);
    for (u32 f = 0; f < request_.flows; ++f) {
      Descriptor s = connect_tcp(link_.ip(End::tx), address_of(link_.ip(End::rx), meeting_.ports[f]),
                                 request_.socket_bytes, retry, until);
      if (other_ != nullptr) greet(s.get(), meeting_.token);
      senders_.push_back(local_address(s.get()));
      auto queue = std::make_unique<TcpTxQueue>(std::move(s), slot_memory(request_), request_.payload_bytes);
      tx_queues_.push_back(queue.get());
      tx.push_back(std::move(queue));
    }
  }

  void accept_all(u64 until) {
    for (u32 q = 0; q < request_.rx_queues; ++q) {
      std::vector<Descriptor> mine;
      for (u32 f = q; f < request_.flows; f += request_.rx_queues) mine.push_back(accept_flow(f, until));
      auto queue = std::make_unique<TcpRxQueue>(
          std::move(mine), TcpRxQueue::Config{static_cast<u16>(q), request_.payload_bytes, request_.burst,
                                              request_.place, gpu_of(request_)});
      rx_queues_.push_back(queue.get());
      rx.push_back(std::move(queue));
    }
    listeners_.clear();
  }

  Descriptor accept_flow(u32 f, u64 until) {
    const int listener = listeners_[f].get();
    Descriptor s = other_ != nullptr
                       ? accept_greeting(listener, meeting_.token, until, strangers_)
                       : accept_tcp(listener, request_.has_tx ? &senders_[f] : nullptr, until, strangers_);
    set_busy_poll(s.get(), request_.busy_poll_us);
    return s;
  }

  Json send_facts() const {
    auto list = Json::array();
    u64 partial = 0, calls = 0, resets = 0;
    for (const TcpTxQueue* q : tx_queues_) {
      Json one = connection_facts(q->fd());
      if (q->error() != 0) one["error"] = reason(q->error()), ++resets;
      list.push_back(one);
      partial += q->partial_sends();
      calls += q->calls();
    }
    return {
        {"calls", calls}, {"partial_sends", partial}, {"broken_connections", resets}, {"connections", list}};
  }

  Json receive_facts() const {
    TcpSource::Counts sum;
    auto list = Json::array();
    u64 memory = 0;
    for (const TcpRxQueue* q : rx_queues_)
      for (const TcpSource& s : q->sources()) {
        const TcpSource::Counts& c = s.counts();
        sum.calls += c.calls, sum.short_reads += c.short_reads;
        sum.resets += c.resets, sum.broken += c.broken;
        memory += s.ring_bytes();
        Json one{{"receive_buffer_bytes", get_option(s.fd(), SOL_SOCKET, SO_RCVBUF).value_or(0)}};
        if (c.why != nullptr) one["broken"] = c.why;
        list.push_back(one);
      }
    return {{"calls", sum.calls},
            {"short_reads", sum.short_reads},
            {"resets", sum.resets},
            {"broken_streams", sum.broken},
            {"strangers", strangers_},
            {"memory_bytes", memory},
            {"busy_poll_us", request_.busy_poll_us},
            {"connections", list}};
  }

  const StreamRequest request_;
  Link& link_;
  exchange::Exchange* const other_;  ///< where only one end is here
  Meeting meeting_;
  std::vector<Descriptor> listeners_;
  std::vector<sockaddr_in> senders_;
  std::vector<TcpTxQueue*> tx_queues_;
  std::vector<TcpRxQueue*> rx_queues_;
  u64 strangers_ = 0;
};

}  // namespace

const StreamKind& tcp_stream() {
  static const StreamKind kind{
      .name = "tcp",
      .sockets = true,
      .tunes_buffers = true,
      .batch_bytes = u64{512} << 10,
      .unit = "record",
      .overhead_bytes = kTcpOverheadBytes,
      .usual_cell = {.pairs = 4},
      .usual_grid = {{1'048'576, 8000, 1000}, {0}, {1, 2, 4}},
      .status =
          [] {
            return BackendStatus{true, "the kernel's TCP sockets"};
          },
      .max_payload = [](const Link&) { return kMaxRecord; },
      .open = [](const StreamRequest& request, Link& link) -> std::unique_ptr<Stream> {
        return std::make_unique<TcpStream>(request, link);
      },
  };
  return kind;
}

}  // namespace doorbell::net
