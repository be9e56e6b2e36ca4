// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/peer/peer_link.hpp"

#include <arpa/inet.h>
#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "exchange/exchange.hpp"
#include "exchange/fields.hpp"
#include "net/links/netlink.hpp"
#include "net/settings.hpp"
#include "system/descriptor.hpp"
#include "system/sysfs.hpp"

namespace doorbell::net {

namespace {

using Json = nlohmann::ordered_json;

const std::string kAnyAddress = "0.0.0.0";

std::string text_of(u32 ip) {
  std::array<char, INET_ADDRSTRLEN> text{};
  inet_ntop(AF_INET, &ip, text.data(), text.size());
  return text.data();
}

/// Streams are IPv4's.
std::string ipv4_of(const std::string& host) {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  const int rc = getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (rc != 0)
    throw Error(fmt::format("{} {}", setting::connect, host),
                fmt::format("no IPv4 address: {}", gai_strerror(rc)), "streams go over IPv4");
  const u32 ip = reinterpret_cast<const sockaddr_in*>(found->ai_addr)->sin_addr.s_addr;
  freeaddrinfo(found);
  return text_of(ip);
}

struct Route {
  std::string ip;  // this end's
  u32 mtu = 1500;
};
/// The way to `ip`, as the kernel would go.
Route route_to(const std::string& ip) {
  const Descriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(9);
  inet_pton(AF_INET, ip.c_str(), &to.sin_addr);
  if (socket.get() < 0 || ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0)
    throw Error(fmt::format("{} {}", setting::connect, ip), reason(errno),
                "it needs a route to that address");
  sockaddr_in own{};
  socklen_t bytes = sizeof own;
  Route route;
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &bytes) == 0)
    route.ip = text_of(own.sin_addr.s_addr);
  int mtu = 0;
  bytes = sizeof mtu;
  if (::getsockopt(socket.get(), IPPROTO_IP, IP_MTU, &mtu, &bytes) == 0 && mtu >= 68)
    route.mtu = std::min<u32>(static_cast<u32>(mtu), 65536);
  return route;
}

std::string text_of(const Mac& mac) {
  return fmt::format("{:02x}:{:02x}:{:02x}:{:02x}:{:02x}:{:02x}", mac[0], mac[1], mac[2], mac[3], mac[4],
                     mac[5]);
}

/// Throws Error unless it is six pairs of digits.
Mac mac_of(const std::string& text) {
  std::array<unsigned, 6> b{};
  char behind = 0;
  Mac mac{};
  if (std::sscanf(text.c_str(), "%2x:%2x:%2x:%2x:%2x:%2x%c", &b[0], &b[1], &b[2], &b[3], &b[4], &b[5],
                  &behind) != 6)
    throw Error(exchange::kOtherEnd, "its message has no Ethernet address");
  std::ranges::transform(b, mac.begin(), [](unsigned v) { return static_cast<u8>(v); });
  return mac;
}

bool is_ipv4(const std::string& text) {
  in_addr ip{};
  return inet_pton(AF_INET, text.c_str(), &ip) == 1;
}

constexpr std::size_t kLongestName = 64;
constexpr u32 kDeviceMtu = 9000;

/// "memif:socket=PATH", "0000:01:00.0": no name that an interface may have.
bool is_device(const std::string& text) {
  return text == "memif" || text.find(':') != std::string::npos;
}

}  // namespace

PeerLink::PeerLink(End mine, const std::string& interface, const std::string& host,
                   const std::string& listens_at)
    : mine_(mine), host_(host) {
  if (!host.empty()) other_.ip = ipv4_of(host);
  if (mine == End::rx) {
    own_.ip = is_ipv4(listens_at) ? listens_at : kAnyAddress;
  } else {
    const Route route = route_to(other_.ip);
    own_.ip = route.ip;
    own_.mtu = route.mtu;
  }
  if (interface.empty()) return;
  if (is_device(interface)) {
    device_ = interface;
    own_.mtu = kDeviceMtu;
    return;
  }
  netlink::Interfaces interfaces;
  const netlink::Interface i = interfaces.get(interface);
  if (!i.up || !i.carrier)
    throw Error(fmt::format("{} {}", setting::link, interface), i.up ? "it has no carrier" : "it is down",
                "ip link set " + interface + " up");
  own_.interface = interface;
  own_.mac = i.mac;
  own_.mtu = i.mtu;
  const auto addresses = interfaces.addresses(i);
  if (!addresses.empty()) own_.ip = text_of(addresses.front().ip);
}

void PeerLink::meet(exchange::Exchange& other) {
  other.send("link", message());
  join(other.receive("link"));
  other_process_ = &other;
}

Json PeerLink::message() const {
  // Where the way to this end leads over others' addresses, the sender's own word for it is the right one.
  const std::string& ip = mine_ == End::rx && own_.interface.empty() ? kAnyAddress : own_.ip;
  return {{"interface", own_.interface}, {"ip", ip}, {"mac", text_of(own_.mac)}, {"mtu", own_.mtu}};
}

void PeerLink::join(const Json& m) {
  other_.interface = exchange::text(m, "interface", kLongestName);
  const std::string ip = exchange::text(m, "ip", kLongestName);
  // The receiver's address is the one at which the sender has reached it, unless its user has named an
  // interface.
  if (!ip.empty() && ip != kAnyAddress) other_.ip = ip;
  in_addr checked{};
  if (!other_.ip.empty() && inet_pton(AF_INET, other_.ip.c_str(), &checked) != 1)
    throw Error(exchange::kOtherEnd, "its message has no IPv4 address");
  other_.mac = mac_of(exchange::text(m, "mac", kLongestName));
  other_.mtu = exchange::small(m, "mtu", 68, 65536);
}

void PeerLink::set_other_mac(const std::string& mac) {
  other_.mac = mac_of(mac);
}

std::string PeerLink::kind() const {
  if (device_.empty()) return "kernel";
  return device_.starts_with("memif") ? "model" : "hardware";
}

std::string PeerLink::name() const {
  if (!device_.empty()) return device_;
  const std::string mine = own_.interface.empty() ? "route" : own_.interface;
  return fmt::format("{} to {}", mine, host_.empty() ? "the sender" : host_);
}

u64 PeerLink::interface_drops(End end) {
  if (end != mine_ || own_.interface.empty()) return 0;
  const rtnl_link_stats64 n = netlink::Interfaces().get(own_.interface).stats;
  return end == End::tx ? n.tx_dropped : n.rx_dropped + n.rx_missed_errors;
}

u32 PeerLink::queue_drops() {
  if (mine_ != End::tx || own_.interface.empty()) return 0;
  netlink::Interfaces interfaces;
  return interfaces.queue_drops(interfaces.get(own_.interface));
}

Json PeerLink::facts() {
  return {{"name", name()},
          {"kind", kind()},
          {"mtu_bytes", mtu()},
          {"own", message()},
          {"other", {{"interface", other_.interface}, {"ip", other_.ip}, {"mac", text_of(other_.mac)}}}};
}

}  // namespace doorbell::net
