// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/links/interface_link.hpp"

#include <arpa/inet.h>
#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <random>

#include "net/settings.hpp"
#include "system/clock.hpp"
#include "system/sysfs.hpp"

namespace doorbell::net {

namespace {

constexpr int kPollMs = 50;
constexpr u32 kIpUdpBytes = 28;
constexpr u32 kMostUdpBytes = 65507;
constexpr const char* kSegmentation = "tx-udp-segmentation";

sockaddr_in address_of(const std::string& ip, u16 port) {
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_port = htons(port);
  inet_pton(AF_INET, ip.c_str(), &a.sin_addr);
  return a;
}

/// A bound UDP socket that sends nothing in fragments.
Descriptor udp_socket(const std::string& subject, const Side& side) {
  Descriptor fd;
  side.space.run([&] {
    fd = Descriptor(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const int probe = IP_PMTUDISC_PROBE;
    const sockaddr_in own = address_of(side.ip, 0);
    if (fd.get() < 0 || setsockopt(fd.get(), IPPROTO_IP, IP_MTU_DISCOVER, &probe, sizeof probe) != 0 ||
        bind(fd.get(), reinterpret_cast<const sockaddr*>(&own), sizeof own) != 0)
      throw Error(subject,
                  fmt::format("no UDP socket at {} of {}: {}", side.ip, side.interface, reason(errno)));
  });
  return fd;
}

void connect_to(const std::string& subject, const Descriptor& from, const std::string& ip,
                const Descriptor& to) {
  sockaddr_in a{};
  socklen_t size = sizeof a;
  getsockname(to.get(), reinterpret_cast<sockaddr*>(&a), &size);
  const sockaddr_in peer = address_of(ip, ntohs(a.sin_port));
  if (connect(from.get(), reinterpret_cast<const sockaddr*>(&peer), sizeof peer) != 0)
    throw Error(subject, fmt::format("there is no way to {}: {}", ip, reason(errno)));
}

/// Sends `bytes` again and again until they have arrived: the first ones may come before the link's queues
/// are ready.
void cross(const std::string& subject, const Descriptor& from, const Descriptor& to, const std::string& way,
           const std::vector<u8>& bytes, u64 deadline_ns) {
  std::vector<u8> got(bytes.size() + 1);
  int error = 0;
  do {
    if (send(from.get(), bytes.data(), bytes.size(), 0) < 0) error = errno;
    pollfd p{to.get(), POLLIN, 0};
    while (poll(&p, 1, kPollMs) > 0) {
      const ssize_t n = recv(to.get(), got.data(), got.size(), 0);
      // An ICMP answer to an earlier datagram, perhaps.
      if (n < 0) break;
      if (static_cast<std::size_t>(n) == bytes.size() && std::equal(bytes.begin(), bytes.end(), got.begin()))
        return;
    }
  } while (wall_ns() < deadline_ns);
  throw Error(
      subject,
      fmt::format("no datagram of {} bytes arrives {}{}", bytes.size(), way,
                  error != 0 ? fmt::format(" ({})", reason(error)) : ""),
      "check the cable, the addresses, the MTU of both ends and what lies between them, and firewall rules");
}

nlohmann::ordered_json side_facts(Side& side) {
  side.look();
  nlohmann::ordered_json f = {{"interface", side.interface}};
  const auto optional = [&](const char* key, const std::string& value) {
    f[key] = value.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(value);
  };
  optional("namespace", side.space.name());
  optional("ip", side.ip);
  f["mac"] = netlink::mac_text(side.state.mac);
  f["mtu_bytes"] = side.state.mtu;
  optional("driver", side.state.loopback ? "loopback" : side.interfaces.driver(side.interface));
  f["tx_queues"] = side.state.tx_queues;
  f["rx_queues"] = side.state.rx_queues;
  f["gro"] = side.interfaces.gro(side.interface);
  const auto segmentation = side.interfaces.feature(side.interface, kSegmentation);
  f["tx_udp_segmentation"] = segmentation ? nlohmann::ordered_json(*segmentation) : nlohmann::ordered_json();
  return f;
}

}  // namespace

netlink::Interfaces interfaces_in(const Namespace& space) {
  std::optional<netlink::Interfaces> made;
  space.run([&] { made.emplace(); });
  return *std::move(made);
}

Side::Side(Namespace in, const std::string& interface_name)
    : space(std::move(in)), interfaces(interfaces_in(space)), interface(interface_name) {
  look();
}

std::string ip_of(Side& side) {
  for (const netlink::Address& a : side.interfaces.addresses(side.state))
    if (a.ipv4) return netlink::ip_text(a.ip);
  return {};
}

void await_carrier(const std::string& subject, Side& side, double limit_s) {
  const u64 deadline = wall_ns() + static_cast<u64>(limit_s * 1e9);
  for (;;) {
    side.look();
    if (side.state.up && side.state.carrier) return;
    if (!side.state.up)
      throw Error(subject, fmt::format("interface {} is switched off", side.interface),
                  fmt::format("ip link set {} up", side.interface));
    if (wall_ns() > deadline)
      throw Error(subject, fmt::format("interface {} has no carrier", side.interface),
                  "check the cable, and that the other end is on");
    poll(nullptr, 0, 10);
  }
}

void check_datagrams(const std::string& subject, const Side& a, const Side& b, double limit_s) {
  const Descriptor at_a = udp_socket(subject, a), at_b = udp_socket(subject, b);
  connect_to(subject, at_a, b.ip, at_b);
  connect_to(subject, at_b, a.ip, at_a);
  const u64 deadline = wall_ns() + static_cast<u64>(limit_s * 1e9);
  const u32 mtu = std::min(a.state.mtu, b.state.mtu);
  std::random_device random;
  for (const u32 size : {32u, std::min(mtu - kIpUdpBytes, kMostUdpBytes)}) {
    std::vector<u8> bytes(size);
    std::generate(bytes.begin(), bytes.begin() + 32, [&] { return static_cast<u8>(random()); });
    cross(subject, at_a, at_b, fmt::format("from {} at {}", a.ip, b.ip), bytes, deadline);
    cross(subject, at_b, at_a, fmt::format("from {} at {}", b.ip, a.ip), bytes, deadline);
  }
}

u64 InterfaceLink::interface_drops(End end) {
  Side& s = side(end);
  s.look();
  const rtnl_link_stats64& n = s.state.stats;
  // rx_missed_errors is never part of rx_dropped; the other counts of losses may be part of either.
  return end == End::tx ? n.tx_dropped : n.rx_dropped + n.rx_missed_errors;
}

bool InterfaceLink::counts_at_both_ends() {
  const auto is_veth = [](Side& s) { return s.interfaces.driver(s.interface) == "veth"; };
  return is_veth(tx_) && is_veth(rx_);
}

nlohmann::ordered_json InterfaceLink::facts() {
  return {{"name", name()},
          {"kind", kind()},
          {"mtu_bytes", mtu()},
          {"tx", side_facts(tx_)},
          {"rx", side_facts(rx_)}};
}

std::unique_ptr<Link> open_lo(const LinkRequest&) {
  const auto end = [] {
    Side side(Namespace::current(), "lo");
    side.ip = "127.0.0.1";
    return side;
  };
  Side tx = end(), rx = end();
  if (!tx.state.up)
    throw Error(setting::link + " lo", "the loopback interface is switched off here", "ip link set lo up");
  return std::make_unique<InterfaceLink>("lo", std::move(tx), std::move(rx));
}

}  // namespace doorbell::net
