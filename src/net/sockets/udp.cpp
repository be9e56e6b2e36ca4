// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>

#include "net/sockets/meeting.hpp"
#include "net/sockets/snmp.hpp"
#include "net/sockets/sockets.hpp"
#include "net/sockets/udp_rx.hpp"
#include "net/sockets/udp_tx.hpp"
#include "system/clock.hpp"
#include "system/sysfs.hpp"

namespace doorbell::net {

namespace {

using namespace sockets;

/// Ethernet, IPv4 and UDP.
constexpr u32 kOverheadBytes = 14 + 20 + 8;
/// The most bytes that a sender's socket holds back: more of them delay packets and help no further.
constexpr u64 kMostSendBytes = u64{4} << 20;

u64 max_datagram(const Link& link) {
  constexpr u32 kHeaders = 20 + 8;
  return std::min<u64>(std::max(link.mtu(), kHeaders) - kHeaders, UdpTxQueue::kMaxDatagram);
}

class UdpStream final : public Stream {
 public:
  UdpStream(const StreamRequest& request, Link& link) : request_(request), link_(link) {
    check_request(request, link, "udp", max_datagram(link),
                  "a longer datagram travels as several IP fragments, and each lost one loses them all");
    if (request.has_rx) link.in(End::rx, [&] { open_receivers(); });
    const Meeting meeting = meet(request, link, std::move(ports_));
    ports_ = meeting.ports;
    if (request.has_tx) link.in(End::tx, [&] { open_senders(); });
    if (request.has_rx && request.has_tx) connect_receivers();
    else if (link.other_process() != nullptr && request.has_tx)
      introduce(*link.other_process(), meeting.token);
    else if (link.other_process() != nullptr) find_senders(*link.other_process(), meeting.token);
    if (request.has_rx) make_receivers();
  }

  Json facts() override {
    Json out;
    out["ports"] = ports_;
    if (request_.has_tx) out["send"] = send_facts();
    if (request_.has_rx) out["receive"] = receive_facts();
    return out;
  }

 private:
  void open_receivers() {
    before_ = snmp_counters("Udp");
    u32 next = request_.port;
    for (u32 f = 0; f < request_.flows; ++f) {
      std::optional<ArrivalCounter> arrivals;
      Bound b = open_bound(SOCK_DGRAM, link_.ip(End::rx), next, sender_is_told(request_, link_), [&](int fd) {
        prepare_receiver(fd);
        // Without coalescing the kernel's count is exact.
        if (coalesce_) arrivals = ArrivalCounter::attach(fd);
      });
      next = b.port + u32{1};
      ports_.push_back(b.port);
      sources_.push_back({std::move(b.socket), std::move(arrivals)});
    }
  }

  /// Before the socket has a port: what arrives from then on needs the options.
  void prepare_receiver(int fd) {
    received_ = set_buffer(fd, Direction::receive, request_.socket_bytes);
    const int on = 1;
    ::setsockopt(fd, SOL_SOCKET, SO_RXQ_OVFL, &on, sizeof on);
    coalesce_ = request_.segmentation && ::setsockopt(fd, IPPROTO_UDP, UDP_GRO, &on, sizeof on) == 0;
    set_busy_poll(fd, request_.busy_poll_us);
  }

  void open_senders() {
    const u32 segments = request_.segmentation ? probe_segments(link_.ip(End::tx)) : 1;
    for (u32 f = 0; f < request_.flows; ++f) {
      Descriptor s = open_socket(SOCK_DGRAM);
      sent_ = set_buffer(s.get(), Direction::send, std::min(request_.socket_bytes, kMostSendBytes));
      // No fragments: what has become too long for the path is an error.
      set_option(s.get(), IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO, "IP_MTU_DISCOVER");
      sockaddr_in from = address_of(link_.ip(End::tx), 0);
      const sockaddr_in to = address_of(link_.ip(End::rx), ports_[f]);
      if (::bind(s.get(), reinterpret_cast<sockaddr*>(&from), sizeof from) != 0 ||
          ::connect(s.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0)
        throw Error(fmt::format("UDP from {} to {}", text_of(from), text_of(to)), reason(errno));
      from = local_address(s.get());
      senders_.push_back(from);
      auto queue =
          std::make_unique<UdpTxQueue>(std::move(s), slot_memory(request_), request_.payload_bytes, segments);
      tx_queues_.push_back(queue.get());
      tx.push_back(std::move(queue));
    }
  }

  /// A connected socket refuses the datagrams of others.
  void connect_receivers() {
    for (u32 f = 0; f < request_.flows; ++f) {
      const auto* const to = reinterpret_cast<const sockaddr*>(&senders_[f]);
      if (::connect(sources_[f].socket.get(), to, sizeof senders_[f]) != 0)
        throw Error(fmt::format("UDP with {}", text_of(senders_[f])), reason(errno));
    }
  }

  /// A receiver in another process takes the address from which this comes for that of the flow, whatever
  /// becomes of addresses on the way. It is sent again until that process has found all flows.
  void introduce(exchange::Exchange& receiver, u64 token) {
    constexpr double kAgainS = 0.1;
    const u64 limit = wall_ns() + kSetupNs;
    do {
      for (u64 f = 0; f < request_.flows; ++f) {
        const Introduction hello = {token, f};
        static_cast<void>(::send(tx_queues_[f]->fd(), &hello, sizeof hello, MSG_DONTWAIT | MSG_NOSIGNAL));
      }
    } while (!receiver.pending(kAgainS) && wall_ns() < limit);
    static_cast<void>(receiver.receive("found"));
  }

  /// Connects each socket to the sender that introduces itself there; what others have sent before is
  /// dropped.
  void find_senders(exchange::Exchange& sender, u64 token) {
    std::vector<pollfd> waiting;
    for (const UdpSource& s : sources_) waiting.push_back({s.socket.get(), POLLIN, 0});
    const u64 limit = wall_ns() + kSetupNs;
    for (std::size_t found = 0; found < sources_.size();) {
      if (wall_ns() > limit)
        throw Error("the sender's datagrams",
                    fmt::format("none of {} flows arrived within {} s", sources_.size() - found,
                                kSetupNs / 1'000'000'000),
                    "does a firewall turn them away?");
      // During this it says nothing, unless it has failed.
      if (sender.pending()) static_cast<void>(sender.receive("introduction"));
      static_cast<void>(wait_for(waiting.data(), waiting.size(), 20'000'000));
      for (u64 f = 0; f < sources_.size(); ++f) {
        if (waiting[f].fd < 0 || !find_sender(sources_[f], {token, f})) continue;
        waiting[f].fd = -1;  // poll(2) passes over it
        ++found;
      }
    }
    sender.send("found", nlohmann::ordered_json::object());
  }

  struct Introduction {
    u64 token = 0, flow = 0;
  };

  /// True once the sender has introduced itself.
  static bool find_sender(UdpSource& source, const Introduction& wanted) {
    const int fd = source.socket.get();
    bool found = false;
    for (;;) {
      // Several of them may have been coalesced.
      std::array<Introduction, 64> got{};
      sockaddr_in from{};
      socklen_t bytes = sizeof from;
      const ssize_t n =
          ::recvfrom(fd, got.data(), sizeof got, MSG_DONTWAIT, reinterpret_cast<sockaddr*>(&from), &bytes);
      if (n < 0) return found;
      source.taken += std::max<u64>(static_cast<u64>(n) / sizeof(Introduction), 1);
      if (found || n == 0 || static_cast<u64>(n) % sizeof(Introduction) != 0 ||
          got[0].token != wanted.token || got[0].flow != wanted.flow)
        continue;
      if (::connect(fd, reinterpret_cast<const sockaddr*>(&from), sizeof from) != 0)
        throw Error(fmt::format("UDP with {}", text_of(from)), reason(errno));
      found = true;  // and what has come before is taken away
    }
  }

  void make_receivers() {
    for (u32 q = 0; q < request_.rx_queues; ++q) {
      std::vector<UdpSource> mine;
      for (u32 f = q; f < request_.flows; f += request_.rx_queues) mine.push_back(std::move(sources_[f]));
      auto queue = std::make_unique<UdpRxQueue>(
          std::move(mine), UdpRxQueue::Config{static_cast<u16>(q), request_.payload_bytes, request_.burst,
                                              coalesce_, request_.place, gpu_of(request_),
                                              q == 0 ? [this] { return broken(); } : std::function<u64()>()});
      rx_queues_.push_back(queue.get());
      rx.push_back(std::move(queue));
    }
    sources_.clear();
  }

  /// Datagrams with a wrong checksum, in the whole namespace.
  u64 broken() {
    u64 n = 0;
    link_.in(End::rx, [&] { n = snmp_counters("Udp")["InCsumErrors"]; });
    return n - before_["InCsumErrors"];
  }

  Json send_facts() const {
    UdpTxQueue::Counts sum;
    u32 segments = 0;
    for (const UdpTxQueue* q : tx_queues_) {
      const UdpTxQueue::Counts c = q->counts();
      sum.calls += c.calls, sum.reports += c.reports, sum.no_buffer += c.no_buffer;
      if (c.error != 0) sum.error = c.error;
      segments = std::max(segments, q->segments(request_.payload_bytes));
    }
    Json out{{"socket_buffer_bytes", sent_.given},
             {"segments_per_datagram", segments},
             {"calls", sum.calls},
             {"error_reports", sum.reports},
             {"no_buffer", sum.no_buffer}};
    if (sum.error != 0) out["error"] = reason(sum.error);
    return out;
  }

  Json receive_facts() {
    bool exact = true;
    u64 datagrams = 0, too_long = 0, memory = 0;
    for (const UdpRxQueue* q : rx_queues_) {
      datagrams += q->datagrams(), too_long += q->too_long();
      memory += q->buffer_bytes();
      exact = exact && q->counts_packets();
    }
    std::map<std::string, u64> now;
    link_.in(End::rx, [&] { now = snmp_counters("Udp"); });
    const auto since = [&](const char* name) { return now[name] - before_[name]; };
    return {{"socket_buffer_bytes", received_.given},
            {"socket_buffer_forced", received_.forced},
            {"coalescing", coalesce_},
            {"connected", request_.has_tx || link_.other_process() != nullptr},
            {"busy_poll_us", request_.busy_poll_us},
            {"memory_bytes", memory},
            {"datagrams", datagrams},
            {"drops_counted_in", exact ? "packets" : "coalesced datagrams"},
            {"too_long", too_long},
            // Of the whole namespace since the stream was opened; a datagram that was coalesced counts once.
            {"namespace_receive_errors", since("InErrors")},
            {"namespace_checksum_errors", since("InCsumErrors")},
            {"namespace_receive_buffer_errors", since("RcvbufErrors")},
            {"namespace_memory_errors", since("MemErrors")}};
  }

  const StreamRequest request_;
  Link& link_;
  bool coalesce_ = false;
  BufferBytes received_, sent_;
  std::vector<u16> ports_;
  std::vector<UdpSource> sources_;
  std::vector<sockaddr_in> senders_;
  std::vector<UdpTxQueue*> tx_queues_;
  std::vector<UdpRxQueue*> rx_queues_;
  std::map<std::string, u64> before_;
};

}  // namespace

const StreamKind& udp_stream() {
  static const StreamKind kind{
      .name = "udp",
      .reliable = false,
      .ordered = false,
      .sockets = true,
      .segments = true,
      .unit = "datagram",
      .overhead_bytes = kOverheadBytes,
      .usual_cell = {.pairs = 4},
      .usual_grid = {{8000, 1000}, {0}, {1, 2, 4}},
      .status =
          [] {
            return BackendStatus{true, "the kernel's UDP sockets"};
          },
      .max_payload = [](const Link& link) { return max_datagram(link); },
      .open = [](const StreamRequest& request, Link& link) -> std::unique_ptr<Stream> {
        return std::make_unique<UdpStream>(request, link);
      },
  };
  return kind;
}

}  // namespace doorbell::net
