// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/links/kept_link.hpp"

#include <arpa/inet.h>
#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <algorithm>

#include "net/links/interface_link.hpp"
#include "net/links/kept_state.hpp"
#include "net/links/veth.hpp"

namespace doorbell::net {

namespace {

constexpr double kCableLimitS = 20;  // ports take seconds to agree on a speed
constexpr double kPacketLimitS = 3;
constexpr const char* kCablePackets = "rx_packets_phy";
/// check_datagrams() sends two each way, and more when the first are lost.
constexpr u64 kCheckPackets = 2;

std::string subject_of(const KeptNames& names) {
  return fmt::format("link {}, {}", names.tx, names.rx);
}

void check_kept_link(const KeptLink& link) {
  check_namespace_name(link.names.tx);
  check_namespace_name(link.names.rx);
  if (link.names.tx == link.names.rx)
    throw Error(subject_of(link.names), "both ends are in one network namespace", "give two names");
  if (link.tx_port.empty() != link.rx_port.empty())
    throw Error(subject_of(link.names), "it has only one port", "give two ports, or none for a veth pair");
  if (!link.tx_port.empty() && link.tx_port == link.rx_port)
    throw Error("port " + link.tx_port, "it is both ends of the link", "give two ports");
  const netlink::Address tx = netlink::parse_address("tx address", link.tx_address);
  const netlink::Address rx = netlink::parse_address("rx address", link.rx_address);
  const u32 mask = htonl(~0u << (32 - tx.prefix));
  if (tx.prefix != rx.prefix || (tx.ip & mask) != (rx.ip & mask) || tx.ip == rx.ip)
    throw Error(fmt::format("addresses {} and {}", link.tx_address, link.rx_address),
                "they are not two addresses of one network", "give such as 192.0.2.1/30 and 192.0.2.2/30");
}

/// The state of a port before anything is changed. Throws Error for one that is in use.
KeptState::Port port_as_it_is(netlink::Interfaces& home, const std::string& name) {
  const std::string subject = "port " + name;
  netlink::check_interface_name(subject, name);
  const auto i = home.find(name);
  if (!i) throw Error(subject, "there is no interface of this name here", "`ip link` lists them");
  if (i->loopback) throw Error(subject, "the loopback interface cannot be moved");
  if (i->master != 0)
    throw Error(subject, "it belongs to a bridge or a bond", fmt::format("ip link set {} nomaster", name));
  for (const netlink::Address& a : home.addresses(*i))
    if (a.global)
      throw Error(
          subject,
          fmt::format("it is in use: it has the address {}", a.ipv4 ? netlink::ip_text(a.ip) : "of IPv6"),
          fmt::format("if nothing needs it: ip addr flush dev {}", name));
  return {.interface = name, .moved = true, .mtu = i->mtu, .up = i->up, .gro = home.gro(name)};
}

/// Moves a port into its namespace; returns it as it is there.
netlink::Interface move_port(netlink::Interfaces& home, const KeptState::Port& port, const Namespace& space,
                             u32 mtu, netlink::Interfaces& there) {
  home.move(home.get(port.interface), space.fd());
  there.set_mtu(there.get(port.interface), mtu);
  return there.get(port.interface);
}

void make_ends(const KeptLink& link, const KeptState& state, netlink::Interfaces& home) {
  const Namespace tx = Namespace::open(link.names.tx), rx = Namespace::open(link.names.rx);
  if (link.tx_port.empty()) {
    VethConfig c;
    c.tx_interface = state.ports[0].interface, c.rx_interface = state.ports[1].interface;
    c.tx_address = link.tx_address, c.rx_address = link.rx_address;
    c.mtu = link.mtu;
    c.queues = std::max(link.queues, 1u);
    c.gro = link.gro, c.gso = link.gso;
    make_veth_pair(c, tx, rx);
  } else {
    netlink::Interfaces at_tx = interfaces_in(tx), at_rx = interfaces_in(rx);
    const netlink::Interface a = move_port(home, state.ports[0], tx, link.mtu, at_tx);
    const netlink::Interface b = move_port(home, state.ports[1], rx, link.mtu, at_rx);
    if (link.queues != 0) {
      at_tx.set_channels(a.name, link.queues);
      at_rx.set_channels(b.name, link.queues);
    }
    at_rx.set_gro(b.name, link.gro);
    join_ends({at_tx, a, link.tx_address}, {at_rx, b, link.rx_address});
  }
}

Side kept_side(const std::string& name, const KeptState::Port& port) {
  Side side(Namespace::open(name), port.interface);
  side.ip = ip_of(side);
  return side;
}

/// Settings as they were before link_up(), in the namespace that the port came from.
void restore(netlink::Interfaces& home, const KeptState::Port& port) {
  const netlink::Interface i = home.get(port.interface);
  home.set_mtu(i, port.mtu);
  home.set_gro(port.interface, port.gro);
  if (port.channels != 0) home.set_channels(port.interface, port.channels);
  if (port.up) home.set_up(i);
}

/// The namespace of a name; nothing where the name is empty.
std::optional<Namespace> behind(const std::string& name) {
  try {
    return Namespace::open(name);
  } catch (const Error&) {
    return {};
  }
}

/// The namespace of one end, if it is the one that link_up() made.
std::optional<Namespace> made_for(const std::string& name, const KeptState::Port& port) {
  auto space = behind(name);
  if (space && space->id() != port.space) space.reset();
  return space;
}

/// Undoes one end; returns what it did.
void undo_end(const std::string& name, const KeptState::Port& port, const Namespace& here,
              std::vector<std::string>& done) {
  netlink::Interfaces home = interfaces_in(here);
  bool remove_name = false;
  if (namespace_exists(name)) {
    const auto space = made_for(name, port);
    // link_up() writes down which namespace it has made as soon as there is one: until then its name is
    // empty.
    remove_name = space.has_value() || (port.space == 0 && !behind(name));
    if (!remove_name)
      done.push_back(fmt::format("network namespace {}: not the one that was made here; left alone", name));
    if (space) {
      netlink::Interfaces there = interfaces_in(*space);
      if (const auto i = there.find(port.interface)) {
        if (port.moved) {
          // Moving it also takes its addresses and neighbours away.
          there.set_up(*i, false);
          there.move(*i, here.fd());
        } else {
          there.remove(*i);
        }
      }
    }
  }
  if (port.moved) {
    if (home.find(port.interface)) {
      restore(home, port);
      done.push_back(fmt::format("port {}: back, with an MTU of {}", port.interface, port.mtu));
    } else {
      done.push_back(
          fmt::format("port {}: it is neither here nor in the network namespace {}", port.interface, name));
    }
  }
  if (remove_name && remove_named_namespace(name))
    done.push_back(fmt::format("network namespace {}: removed", name));
}

std::vector<std::string> undo(const KeptNames& names, const KeptState& state) {
  const Namespace here = Namespace::current();
  if (state.ports[0].moved && here.id() != state.home)
    throw Error(subject_of(names), "its ports come from another network namespace than this one",
                "give the command where the link was made");
  std::vector<std::string> done;
  undo_end(names.tx, state.ports[0], here, done);
  undo_end(names.rx, state.ports[1], here, done);
  forget_kept_state(names);
  return done;
}

KeptState state_of(const KeptNames& names) {
  check_namespace_name(names.tx);
  check_namespace_name(names.rx);
  if (auto state = read_kept_state(names)) return *std::move(state);
  throw Error(subject_of(names), "doorbell has made no such link, or this machine has booted since",
              "doorbell net link up makes one");
}

class Findings {
 public:
  void good(std::string text) { all_.push_back({Finding::State::good, std::move(text)}); }
  void wrong(std::string text, std::string hint) {
    all_.push_back({Finding::State::wrong, std::move(text), std::move(hint)});
    wrong_ = true;
  }
  void add(Finding f) {
    wrong_ = wrong_ || f.state == Finding::State::wrong;
    all_.push_back(std::move(f));
  }
  /// `call` either holds or throws.
  template <class F>
  void add(const std::string& text, F call) {
    try {
      call();
      good(text);
    } catch (const Error& e) {
      wrong(e.what(), e.hint());
    }
  }
  [[nodiscard]] bool wrong_so_far() const { return wrong_; }
  [[nodiscard]] std::vector<Finding> take() { return std::move(all_); }

 private:
  std::vector<Finding> all_;
  bool wrong_ = false;
};

/// The settings of one end; nothing when there is no end to send packets from.
std::optional<Side> verify_end(const std::string& name, const KeptState& state, const KeptState::Port& port,
                               Findings& findings) {
  const std::string remake = "doorbell net link down, then up";
  const std::string space_text = fmt::format("network namespace {}", name);
  if (!namespace_exists(name)) {
    findings.wrong(space_text + " is missing", remake);
    return {};
  }
  if (!made_for(name, port)) {
    findings.wrong(space_text + " is not the one that was made for the link", remake);
    return {};
  }
  const std::string text = fmt::format("{}: interface {}", space_text, port.interface);
  try {
    Side side = kept_side(name, port);
    findings.good(text + " is there");
    if (!side.state.up) {
      findings.wrong(text + " is switched off", fmt::format("ip -n {} link set {} up", name, port.interface));
    } else {
      findings.add(text + " is on and has a carrier", [&] { await_carrier(text, side, 0); });
    }
    if (side.state.mtu == state.link_mtu) {
      findings.good(fmt::format("{} has the MTU {}", text, state.link_mtu));
    } else {
      findings.wrong(fmt::format("{} has the MTU {} and not {}", text, side.state.mtu, state.link_mtu),
                     fmt::format("ip -n {} link set {} mtu {}", name, port.interface, state.link_mtu));
    }
    const u32 ip = netlink::parse_address("address", port.address).ip;
    const auto addresses = side.interfaces.addresses(side.state);
    if (std::any_of(addresses.begin(), addresses.end(),
                    [&](const auto& a) { return a.ipv4 && a.ip == ip; })) {
      side.ip = netlink::ip_text(ip);
      findings.good(fmt::format("{} has the address {}", text, port.address));
    } else {
      findings.wrong(fmt::format("{} has not the address {}", text, port.address),
                     fmt::format("ip -n {} addr add {} dev {}", name, port.address, port.interface));
    }
    return side;
  } catch (const Error& e) {
    findings.wrong(e.what(), e.hint().empty() ? remake : e.hint());
    return {};
  }
}

}  // namespace

std::string link_up(const KeptLink& link) {
  check_kept_link(link);
  const Descriptor lock = lock_kept_links();
  if (const auto before = read_kept_state(link.names)) {
    if (before->complete)
      throw Error(subject_of(link.names), "it is up already",
                  "doorbell net link verify looks at it, down removes it");
    undo(link.names, *before);
  }
  for (const std::string& name : {link.names.tx, link.names.rx})
    if (namespace_exists(name))
      throw Error(fmt::format("network namespace '{}'", name),
                  "the name is taken, and not by a link of doorbell",
                  "choose another, or remove it: ip netns del " + name);
  const Namespace here = Namespace::current();
  netlink::Interfaces home = interfaces_in(here);
  KeptState state;
  state.home = here.id();
  state.link_mtu = link.mtu;
  if (link.tx_port.empty()) {
    const VethConfig defaults;
    state.ports[0].interface = defaults.tx_interface;
    state.ports[1].interface = defaults.rx_interface;
  } else {
    state.ports = {port_as_it_is(home, link.tx_port), port_as_it_is(home, link.rx_port)};
    for (KeptState::Port& port : state.ports)
      if (link.queues != 0) port.channels = home.channels(port.interface).value_or(0);
  }
  state.ports[0].address = link.tx_address;
  state.ports[1].address = link.rx_address;
  write_kept_state(link.names, state);
  try {
    for (const u32 end : {0, 1}) {
      const std::string& name = end == 0 ? link.names.tx : link.names.rx;
      make_named_namespace(name);
      state.ports[end].space = Namespace::open(name).id();
      write_kept_state(link.names, state);
    }
    make_ends(link, state, home);
    Side tx = kept_side(link.names.tx, state.ports[0]), rx = kept_side(link.names.rx, state.ports[1]);
    await_carrier(subject_of(link.names), tx, kCableLimitS);
    await_carrier(subject_of(link.names), rx, kCableLimitS);
    check_datagrams(subject_of(link.names), tx, rx, kPacketLimitS);
    state.complete = true;
    write_kept_state(link.names, state);
  } catch (...) {
    try {
      undo(link.names, state);
    } catch (const Error&) {
      // The first error says more. What is left is written down for the next one.
    }
    throw;
  }
  return fmt::format("{}/{},{}/{}", link.names.tx, state.ports[0].interface, link.names.rx,
                     state.ports[1].interface);
}

Finding compare_with_cable(const std::string& port, std::optional<u64> before, std::optional<u64> after,
                           u64 sent) {
  if (!before || !after)
    return {
        Finding::State::unknown,
        fmt::format("port {}: its driver has no counter {}, so it is unknown whether packets take the cable",
                    port, kCablePackets)};
  if (*after - *before >= sent)
    return {Finding::State::good, fmt::format("port {}: packets come from the cable", port)};
  return {Finding::State::wrong,
          fmt::format("port {}: {} packets were received, but only {} from the cable", port, sent,
                      *after - *before),
          "the NIC's internal switch takes a short cut: use ports of two NICs, or switch its loopback off"};
}

std::vector<Finding> link_verify(const KeptNames& names) {
  const Descriptor lock = lock_kept_links();
  const KeptState state = state_of(names);
  Findings findings;
  if (!state.complete) {
    findings.wrong(subject_of(names) + ": the program that made it has ended too early",
                   "doorbell net link down, then up");
    return findings.take();
  }
  auto tx = verify_end(names.tx, state, state.ports[0], findings);
  auto rx = verify_end(names.rx, state, state.ports[1], findings);
  if (findings.wrong_so_far() || !tx || !rx) return findings.take();
  const auto cable_packets = [](Side& side) {
    return side.interfaces.counter(side.interface, kCablePackets);
  };
  const auto before_tx = cable_packets(*tx), before_rx = cable_packets(*rx);
  findings.add(fmt::format("datagrams of 60 and {} bytes arrive, there and back", state.link_mtu),
               [&] { check_datagrams(subject_of(names), *tx, *rx, kPacketLimitS); });
  if (state.ports[0].moved && !findings.wrong_so_far()) {
    findings.add(compare_with_cable(tx->interface, before_tx, cable_packets(*tx), kCheckPackets));
    findings.add(compare_with_cable(rx->interface, before_rx, cable_packets(*rx), kCheckPackets));
  }
  return findings.take();
}

std::vector<std::string> link_down(const KeptNames& names) {
  const Descriptor lock = lock_kept_links();
  return undo(names, state_of(names));
}

}  // namespace doorbell::net
