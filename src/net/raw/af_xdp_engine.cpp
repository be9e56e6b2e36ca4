// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Raw frames through AF_XDP. A socket belongs to one queue of an interface. Flow f is sent through queue f;
// what arrives at queue q of the other interface goes to receive queue q mod rx_queues. A veth pair keeps the
// queue of a frame; on other interfaces the NIC's own rules decide at which queue a flow arrives.

#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "net/links/netlink.hpp"
#include "net/raw/af_xdp_queues.hpp"
#include "net/raw/engines.hpp"
#include "net/raw/xdp_program.hpp"
#include "net/settings.hpp"

namespace doorbell::net::raw {

namespace {

/// Queues that an interface of the calling thread's namespace uses now; it may have room for more.
struct Channels {
  u32 rx = 1, tx = 1;
};
Channels channels_of(const netlink::Interface& i) {
  ethtool_channels now{};
  now.cmd = ETHTOOL_GCHANNELS;
  ifreq request{};
  i.name.copy(request.ifr_name, IFNAMSIZ - 1);
  request.ifr_data = reinterpret_cast<char*>(&now);
  const Descriptor s(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  // A driver that does not answer has as many as it has made room for.
  if (ioctl(s.get(), SIOCETHTOOL, &request) != 0)
    return {std::max(1u, i.rx_queues), std::max(1u, i.tx_queues)};
  return {std::max(1u, now.rx_count + now.combined_count), std::max(1u, now.tx_count + now.combined_count)};
}

class XdpStream final : public Stream {
 public:
  XdpStream(const StreamRequest& request, Link& link) : title_(engine_title("af_xdp")) {
    if (request.has_rx) link.in(End::rx, [&] { open_rx(request, interface_of(link, End::rx, title_)); });
    if (request.has_tx)
      link.in(End::tx, [&] { open_tx(request, link, interface_of(link, End::tx, title_)); });
  }
  ~XdpStream() override {
    // First the program, so that no frame is on its way to a socket that goes.
    program_.reset();
  }

  /// A failed redirect is a drop of veth's own XDP code; hardware drivers have other counters for it.
  [[nodiscard]] bool interface_counts_ring_drops() const override { return counted_by_veth_; }
  [[nodiscard]] nlohmann::ordered_json facts() override {
    nlohmann::ordered_json f = {{"zero_copy", false}, {"chunk_bytes", kChunkBytes}};
    if (program_) f["xdp_mode"] = program_->mode();
    if (rx_) f["rx_copied"] = (*rx_)[0]->copies();
    u64 segmented = 0;
    if (rx_)
      for (const XdpRx* q : *rx_) segmented += q->segmented();
    f["segmented_frames"] = segmented;
    return f;
  }

 private:
  void open_rx(const StreamRequest& request, const std::string& interface) {
    const netlink::Interface i = netlink::Interfaces().get(interface);
    const u32 hardware = channels_of(i).rx;
    if (hardware < request.rx_queues)
      throw Error(
          title_,
          fmt::format("{} has {} receive queues, {} are asked for", interface, hardware, request.rx_queues),
          fmt::format("ethtool -L {} rx {}", interface, request.rx_queues));
    const u32 first = request.encapsulation == Encapsulation::bare ? 0 : request.port;
    program_.emplace(setting::engine, hardware,
                     XdpFlows{request.encapsulation, first, first + request.flows - 1});
    rx_.emplace();
    for (u16 q = 0; q < request.rx_queues; ++q) {
      std::vector<u32> own;
      for (u32 h = q; h < hardware; h += request.rx_queues) own.push_back(h);
      auto queue = std::make_unique<XdpRx>(title_, interface, i.index, own, request, q);
      for (u32 s = 0; s < own.size(); ++s) program_->set_socket(own[s], queue->socket(s));
      rx_->push_back(queue.get());
      rx.push_back(std::move(queue));
    }
    // Now that every socket has memory to receive into.
    program_->attach(interface, i.index);
    counted_by_veth_ = i.kind == "veth" && program_->mode() == "native";
  }

  void open_tx(const StreamRequest& request, const Link& link, const std::string& interface) {
    const netlink::Interface i = netlink::Interfaces().get(interface);
    const u32 hardware = channels_of(i).tx;
    if (hardware < request.flows)
      throw Error(
          title_,
          fmt::format("{} has {} send queues, {} flows need one each", interface, hardware, request.flows),
          fmt::format("ethtool -L {} tx {}", interface, request.flows));
    for (u32 f = 0; f < request.flows; ++f)
      tx.push_back(std::make_unique<XdpTx>(title_, interface, i.index, f, flow_address(link, request, f),
                                           request.payload_bytes));
  }

  std::string title_;
  std::optional<XdpProgram> program_;
  bool counted_by_veth_ = false;
  std::optional<std::vector<XdpRx*>> rx_;  ///< the receive queues, by their own type
};

std::unique_ptr<Stream> open_af_xdp(const StreamRequest& request, Link& link) {
  check_request(request, link);
  static_cast<void>(flow_address(link, request, request.flows - 1));  // its port is the highest
  return std::make_unique<XdpStream>(request, link);
}

}  // namespace

}  // namespace doorbell::net::raw

namespace doorbell::net {

const StreamKind& af_xdp_engine() {
  static const StreamKind kind = raw::frames_kind({
      .name = "af_xdp",
      .ordered = false,
      .status = raw::xdp_status,
      .open = raw::open_af_xdp,
  });
  return kind;
}

}  // namespace doorbell::net
