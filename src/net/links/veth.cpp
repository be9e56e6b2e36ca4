// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A pair of virtual interfaces for one run. Its namespaces have no names: when the process ends, however it
// ends, the kernel removes them and the pair.

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include "net/links/interface_link.hpp"
#include "net/links/veth.hpp"
#include "net/settings.hpp"
#include "options/spec.hpp"

namespace doorbell::net {

namespace {

constexpr double kReadyLimitS = 10;
constexpr u32 kMostVethQueues = 1024;

class VethLink : public InterfaceLink {
 public:
  using InterfaceLink::InterfaceLink;
  ~VethLink() override {
    // At once, and not when the kernel gets round to unused namespaces.
    try {
      tx_.interfaces.remove(tx_.state);
    } catch (const Error&) {
      // It goes with its namespace then.
    }
  }
  [[nodiscard]] bool is_own() const override { return true; }
  /// Nobody's. Sockets of packets take such frames all the same, and the kernel's IP does not look at what is
  /// for another host; for a frame to the interface's own address it finds no route, which takes a fifth of
  /// the sending thread's time.
  [[nodiscard]] Mac raw_destination() const override { return {}; }
};

}  // namespace

options::OptionTable veth_keys() {
  options::OptionTable t;
  t.add({.name = "mtu",
         .default_text = "9000",
         .min = 576,
         .max = 65535,
         .help = "bytes that an IP packet may have",
         .unit = "bytes",
         .into = &VethConfig::mtu});
  t.add({.name = "gro",
         .default_text = "on",
         .choices = {"on", "off"},
         .help = "generic receive offload at the receiving end",
         .into = {"on", &VethConfig::gro}});
  t.add({.name = "gso",
         .default_text = "on",
         .choices = {"on", "off"},
         .help = "off: the sending end splits datagrams of many segments, as most NICs' drivers do; "
                 "on: they cross the link as they are",
         .into = {"on", &VethConfig::gso}});
  return t;
}

VethConfig parse_veth_spec(const std::string& spec, const std::string& title) {
  const options::Options o = options::parse_spec(title, veth_keys(), spec);
  VethConfig c;
  o.read_into(c);
  return c;
}

void make_veth_pair(const VethConfig& c, const Namespace& tx, const Namespace& rx) {
  netlink::Interfaces at_tx = interfaces_in(tx), at_rx = interfaces_in(rx);
  at_tx.make_veth({c.tx_interface, c.mtu, c.queues}, {c.rx_interface, c.mtu, c.queues}, rx.fd());
  const netlink::Interface a = at_tx.get(c.tx_interface), b = at_rx.get(c.rx_interface);
  try {
    if (c.gro) at_rx.set_gro(c.rx_interface, true);
    if (!c.gso) at_tx.set_feature(c.tx_interface, "tx-udp-segmentation", false);
    join_ends({at_tx, a, c.tx_address}, {at_rx, b, c.rx_address});
  } catch (...) {
    at_tx.remove(a);
    throw;
  }
}

void join_ends(const ToJoin& tx, const ToJoin& rx) {
  for (const auto& [own, other] : {std::pair(&tx, &rx), std::pair(&rx, &tx)}) {
    own->interfaces.set_up(own->interfaces.get("lo"));
    own->interfaces.leave_without_ipv6(own->state);
    own->interfaces.add_address(own->state, netlink::parse_address("address", own->address));
    own->interfaces.set_up(own->state);
    const u32 ip = netlink::parse_address("address", other->address).ip;
    own->interfaces.add_neighbour(own->state, ip, other->state.mac);
  }
}

std::unique_ptr<Link> open_veth(const LinkRequest& request) {
  const std::string title = setting::link + " veth";
  VethConfig c = parse_veth_spec(request.spec, title);
  c.queues = request.queues;
  if (c.queues < 1 || c.queues > kMostVethQueues)
    throw Error(title, fmt::format("{} queues are not in 1..{}", c.queues, kMostVethQueues));
  Namespace tx = Namespace::create(), rx = Namespace::create();
  make_veth_pair(c, tx, rx);
  Side a(std::move(tx), c.tx_interface), b(std::move(rx), c.rx_interface);
  a.ip = c.tx_address.substr(0, c.tx_address.find('/'));
  b.ip = c.rx_address.substr(0, c.rx_address.find('/'));
  await_carrier(title, a, kReadyLimitS);
  await_carrier(title, b, kReadyLimitS);
  check_datagrams(title, a, b, kReadyLimitS);
  return std::make_unique<VethLink>(request.spec, std::move(a), std::move(b));
}

}  // namespace doorbell::net
