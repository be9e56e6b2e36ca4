// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Opens a stream's ports and queues; the plugin's entry.

#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <linux/if_packet.h>
#include <rte_version.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "net/dpdk/plugin/eal.hpp"
#include "net/dpdk/plugin/flow_rules.hpp"
#include "net/dpdk/plugin/rx_queue.hpp"
#include "net/dpdk/plugin/tx_queue.hpp"
#include "system/clock.hpp"

namespace doorbell::net::dpdk {

namespace {

/// How long the other process, or a cable's other end, may take to appear.
constexpr u64 kLinkLimitNs = 10'000'000'000;
/// Packets that a receiver may hold, beyond those of a burst, before a receive queue is out of buffers.
constexpr u32 kHeldPackets = 4096;

bool by_packet_sockets(Driver d, End end) {
  return d == Driver::af_packet || (d == Driver::tap && end == End::rx);
}

/// Waits until `done` or the limit.
template <class Fn>
bool in_time(Fn done, u64 limit_ns = kLinkLimitNs) {
  for (const u64 end = wall_ns() + limit_ns; !done();) {
    if (wall_ns() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

class DpdkStream final : public Stream {
 public:
  explicit DpdkStream(const OpenRequest& request)
      : plan_(request.plan), split_(request.stream.split), link_name_(request.link_setting) {}

  /// An exception leaves a stream that can be destroyed, whatever has been set up.
  void open(const OpenRequest& request) {
    const StreamRequest& r = request.stream;
    if (split_ && plan_.driver != Driver::pci)
      throw Error("header-data split",
                  fmt::format("DPDK's {} driver does not offer it", dpdk::name(plan_.driver)),
                  "leave it out, or use a NIC that splits");
    if (plan_.driver == Driver::af_xdp && r.place != Place::pageable)
      throw Error("receive buffers", "DPDK's af_xdp driver receives into memory of its own",
                  "use pageable memory");
    std::vector<std::string> addresses;
    if (plan_.driver == Driver::pci) {
      if (r.has_tx) addresses.push_back(plan_.tx.name);
      if (r.has_rx) addresses.push_back(plan_.rx.name);
    }
    eal_ = start_eal(addresses);
    add_ports(request);
    make_queues(request);
    start(request);
  }

  ~DpdkStream() override {
    rules_.clear();
    // Drivers give their buffers back to the pools, which the queues own, before the pools and devices go.
    if (tx_port_) tx_port_->close();
    if (rx_port_) rx_port_->close();
    tx.clear();
    rx.clear();
  }

  nlohmann::ordered_json facts() override {
    nlohmann::ordered_json f = {{"dpdk", rte_version()}, {"driver", dpdk::name(plan_.driver)}};
    f["dpdk_memory"] =
        eal_.huge_pages ? "huge pages" : fmt::format("{} MiB without huge pages", eal_.memory_mib);
    if (plan_.driver == Driver::ring) f["copies"] = "none: the ring carries pointers to the sender's slots";
    if (tx_port_) f["tx"] = tx_port_->facts();
    if (rx_port() != nullptr) f["rx"] = rx_port()->facts();
    if (!rx_queues_.empty()) {
      f["rx_buffer_bytes"] = plan_.buffer_bytes;
      f["rx_buffers_each_queue"] = rx_queues_.front()->buffers();
      u64 joined = 0;
      for (const DpdkRxQueue* q : rx_queues_) joined += q->joined();
      if (joined > 0) f["frames_joined"] = joined;
    }
    if (!tx_queues_.empty()) {
      u64 accepted = 0;
      for (const DpdkTxQueue* q : tx_queues_) accepted += q->accepted();
      const rte_eth_stats s = tx_port_->stats();
      f["tx_packets_accepted"] = accepted;
      f["tx_packets_by_driver"] = s.opackets;
      f["tx_errors_by_driver"] = s.oerrors;
    }
    return f;
  }

 private:
  [[nodiscard]] Port* rx_port() const { return plan_.loop ? tx_port_.get() : rx_port_.get(); }

  void add_ports(const OpenRequest& request) {
    const StreamRequest& r = request.stream;
    const Plan& p = plan_;
    const bool hardware = p.driver == Driver::pci;
    const u16 flows = static_cast<u16>(r.flows);
    const u16 rx_queues = p.queue_of_each_flow ? flows : static_cast<u16>(r.rx_queues);
    PortWishes wishes;
    // The MTU covers all of a packet but Ethernet's header. Other devices' interfaces have an MTU already.
    if (hardware || p.driver == Driver::tap)
      wishes.mtu = std::max(1500u, p.frame_bytes - raw::kEthernetBytes);
    const auto add_tx = [&] {
      PortWishes w = wishes;
      w.tx_queues = flows;
      w.rx_queues = static_cast<u16>(unused_queues(r.flows));
      if (p.loop) receive_wishes(w, rx_queues);
      request.link.in(End::tx, [&] {
        tx_port_ = std::make_unique<Port>(p.tx, by_packet_sockets(p.driver, End::tx));
        tx_port_->configure(w);
      });
    };
    const auto add_rx = [&] {
      PortWishes w = wishes;
      w.tx_queues = 1;
      if (p.driver == Driver::tap) w.mtu = 0;
      receive_wishes(w, rx_queues);
      request.link.in(End::rx, [&] {
        rx_port_ = std::make_unique<Port>(p.rx, by_packet_sockets(p.driver, End::rx));
        rx_port_->configure(w);
      });
    };
    const bool sends = r.has_tx || p.loop, receives = r.has_rx && !p.loop;
    // A tap's interface exists once its sender does; memif's sender looks for the receiver's socket.
    if (sends && p.driver != Driver::memif) add_tx();
    if (receives) add_rx();
    if (sends && p.driver == Driver::memif) add_tx();
  }

  void receive_wishes(PortWishes& wishes, u16 queues) const {
    wishes.rx_queues = queues;
    wishes.scatter = plan_.buffer_bytes < plan_.frame_bytes;
    wishes.split = split_;
  }

  std::unique_ptr<Pool> buffers(const OpenRequest& request, u32 count, u32 bytes, Place place) {
    if (plan_.driver == Driver::af_xdp) return Pool::in_dpdk_memory(count, bytes);
    if (plan_.driver != Driver::pci) return Pool::in_program_memory(count, bytes, place, request);
    if (place == Place::pageable) return Pool::in_dpdk_memory(count, bytes);
    return Pool::for_port(count, bytes, place, request, rx_port()->id());
  }

  void make_queues(const OpenRequest& request) {
    const StreamRequest& r = request.stream;
    if (r.has_rx) make_receive_queues(request);
    if (tx_port_) {
      request.link.in(End::tx, [&] {
        for (u16 q = 0; q < r.flows; ++q) tx_port_->set_up_tx(q);
        if (!plan_.loop) give_unused_rx(*tx_port_, unused_queues(r.flows));
      });
      for (u32 flow = 0; flow < r.flows; ++flow) {
        auto queue = send_queue(request, flow);
        tx_queues_.push_back(queue.get());
        tx.push_back(std::move(queue));
      }
    }
    if (rx_port_) request.link.in(End::rx, [&] { rx_port_->set_up_tx(0); });
  }

  void make_receive_queues(const OpenRequest& request) {
    const StreamRequest& r = request.stream;
    const u32 count = kHeldPackets + 4 * r.burst + 4 * kPoolCache + 2048;
    for (u16 q = 0; q < r.rx_queues; ++q) {
      RxConfig config;
      config.number = q;
      config.first_port = r.port;
      config.flows = r.flows;
      config.max_payload = r.payload_bytes;
      config.split = split_;
      config.encapsulation = r.encapsulation;
      config.counts_port = q == 0;
      config.drops_all = plan_.driver == Driver::null;
      config.can_end = plan_.driver == Driver::memif;
      // A ring carries the sender's, and a NIC's driver may hand out parts of larger ones.
      config.own_buffers = !split_ && plan_.driver != Driver::ring && plan_.driver != Driver::pci;
      config.burst = r.burst;
      if (plan_.queue_of_each_flow) {
        for (u16 f = q; f < r.flows; f = static_cast<u16>(f + r.rx_queues)) config.device_queues.push_back(f);
      } else {
        config.device_queues.push_back(q);
      }
      const u32 head_bytes = plan_.header_bytes + kHeaderBytes;
      auto first = split_ ? Pool::in_dpdk_memory(count, head_bytes)
                          : buffers(request, count, plan_.buffer_bytes, r.place);
      auto data = split_ ? buffers(request, count, plan_.buffer_bytes, r.place) : nullptr;
      const bool several = !split_ && plan_.buffer_bytes < plan_.frame_bytes;
      auto whole = several ? Pool::in_program_memory(count, plan_.frame_bytes, r.place, request) : nullptr;
      request.link.in(End::rx, [&] {
        for (const u16 device_queue : config.device_queues) {
          if (split_) {
            rx_port()->set_up_split_rx(device_queue, first->get(), static_cast<u16>(head_bytes), data->get());
          } else {
            rx_port()->set_up_rx(device_queue, first->get());
          }
        }
      });
      auto queue = std::make_unique<DpdkRxQueue>(*rx_port(), std::move(config), std::move(first),
                                                 std::move(data), std::move(whole));
      rx_queues_.push_back(queue.get());
      rx.push_back(std::move(queue));
    }
  }

  std::unique_ptr<DpdkTxQueue> send_queue(const OpenRequest& request, u32 flow) {
    const bool hardware = plan_.driver == Driver::pci;
    TxConfig config;
    config.queue = static_cast<u16>(flow);
    config.address = request.flows[flow];
    if (hardware) {
      config.address.source_mac = tx_port_->mac();
      // Where the other end lies in another process its address is not known.
      config.address.destination_mac = rx_port() != nullptr && request.stream.has_rx
                                           ? rx_port()->mac()
                                           : Mac{0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    }
    config.max_payload = request.stream.payload_bytes;
    // The receiver of a ring looks at the sender's slots, so they lie where received packets shall.
    config.place = plan_.driver == Driver::ring ? request.stream.place : Place::pageable;
    config.in_dpdk_memory = hardware;
    config.frees_late = hardware;
    // A ring's receiver, a NIC and what discards all read them later, or not at all.
    config.driver_copies = plan_.driver == Driver::memif || plan_.driver == Driver::af_packet ||
                           plan_.driver == Driver::af_xdp || plan_.driver == Driver::tap;
    config.can_break = plan_.driver == Driver::memif;
    return std::make_unique<DpdkTxQueue>(*tx_port_, config, request);
  }

  /// Receive queues at the sending end, where nothing that arrives is looked at: drivers want one, and some
  /// as many as there are send queues, with which they share a socket or a file.
  [[nodiscard]] u32 unused_queues(u32 flows) const {
    return plan_.driver == Driver::tap || plan_.driver == Driver::af_xdp ? flows : 1;
  }
  void give_unused_rx(Port& port, u32 queues) {
    // AF_XDP's rings hold 2048 of them, and packets to send are copied into the rest.
    const u32 count = plan_.driver == Driver::af_xdp ? 3 * 2048 : 2048;
    unused_ = Pool::in_dpdk_memory(count * queues, plan_.buffer_bytes);
    for (u16 q = 0; q < queues; ++q) port.set_up_rx(q, unused_->get());
  }

  void start(const OpenRequest& request) {
    if (rx_port_ && plan_.driver != Driver::tap) request.link.in(End::rx, [&] { rx_port_->start(); });
    if (tx_port_) request.link.in(End::tx, [&] { start_sender(); });
    if (rx_port_ && plan_.driver == Driver::tap) request.link.in(End::rx, [&] { rx_port_->start(); });
    if (plan_.driver == Driver::pci) {
      if (request.stream.has_rx && request.stream.rx_queues > 1)
        rules_ = flow_rules(*rx_port(), request.stream.port, request.stream.flows, request.stream.rx_queues);
      for (Port* const p : {tx_port_.get(), rx_port_.get()})
        if (p != nullptr && !in_time([&] { return p->link_up(); }))
          throw Error(fmt::format("the link of {}", p == tx_port_.get() ? plan_.tx.name : plan_.rx.name),
                      "it did not come up within 10 s", "is a cable plugged in?");
    }
    constexpr int kSendBytes = 64 << 20;
    for (const int fd : tx_port_ ? tx_port_->sockets() : std::vector<int>())
      if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &kSendBytes, sizeof kSendBytes) != 0)
        static_cast<void>(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &kSendBytes, sizeof kSendBytes));
  }

  void start_sender() {
    if (plan_.driver != Driver::memif) {
      tx_port_->start();
      return;
    }
    // The receiver's socket may not be there yet, and connecting takes a few messages. A receiver listens as
    // soon as its device exists, and turns away who comes before that is started, for good: then the sender
    // starts again. A busy machine needs longer for the messages, so each attempt has twice the time of the
    // one before. A receiver in this process has been started already.
    constexpr u64 kFirstAttemptNs = 100'000'000;
    bool found = false;
    u64 attempt_ns = rx_port_ ? kLinkLimitNs : kFirstAttemptNs;
    const auto connected = [&] {
      if (tx_port_->try_start() != 0) return false;
      found = true;
      if (in_time([&] { return tx_port_->link_up(); }, attempt_ns)) return true;
      attempt_ns *= 2;
      tx_port_->stop();
      return false;
    };
    if (in_time(connected)) return;
    const std::string title = link_name_ + " memif";
    if (!found) dpdk_failed(title, ETIMEDOUT, "start the receiving end first");
    throw Error(title, "the receiving end did not answer within 10 s",
                "both ends need the same socket, id and number of flows");
  }

  Plan plan_;
  bool split_;
  std::string link_name_;  ///< in messages
  Eal eal_;
  std::unique_ptr<Port> tx_port_, rx_port_;
  std::unique_ptr<Pool> unused_;
  FlowRules rules_;
  /// The queues by their own types: what lies in `rx` may be a relay around one.
  std::vector<DpdkRxQueue*> rx_queues_;
  std::vector<DpdkTxQueue*> tx_queues_;
};

std::unique_ptr<Stream> open_stream(const OpenRequest& request) {
  auto stream = std::make_unique<DpdkStream>(request);
  stream->open(request);
  return stream;
}

}  // namespace

}  // namespace doorbell::net::dpdk

extern "C" __attribute__((visibility("default"))) const doorbell::net::dpdk::PluginTable*
doorbell_dpdk_plugin() {
  static const doorbell::net::dpdk::PluginTable table = {.abi = doorbell::net::dpdk::kPluginAbi,
                                                         .build_id = DOORBELL_PLUGIN_BUILD_ID,
                                                         .dpdk_version = rte_version(),
                                                         .open = doorbell::net::dpdk::open_stream};
  return &table;
}
