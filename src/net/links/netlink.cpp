// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/links/netlink.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <linux/if.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/veth.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "system/sysfs.hpp"

namespace doorbell::net::netlink {

namespace {

/// The kernel answers within milliseconds, unless other programs hold its lock on all interfaces.
constexpr timeval kAnswerLimit{10, 0};
constexpr std::size_t kDatagramBytes = 256u << 10;

ifinfomsg of_interface(u32 index) {
  ifinfomsg fixed{};
  fixed.ifi_family = AF_UNSPEC;
  fixed.ifi_index = static_cast<int>(index);
  return fixed;
}

void put_veth_end(Request& request, const VethEnd& end) {
  request.text(IFLA_IFNAME, end.name);
  request.number(IFLA_MTU, end.mtu);
  request.number(IFLA_NUM_TX_QUEUES, end.queues);
  request.number(IFLA_NUM_RX_QUEUES, end.queues);
}

std::string why_of(int error, const std::string& text) {
  return text.empty() ? reason(error) : fmt::format("{} ({})", reason(error), text);
}

std::string hint_of(int error) {
  return error == EPERM || error == EACCES
             ? "run as root, or give the program CAP_NET_ADMIN in this network namespace"
             : "";
}

}  // namespace

void check_interface_name(const std::string& subject, const std::string& name) {
  bool good = !name.empty() && name.size() < IFNAMSIZ && name != "." && name != "..";
  for (const char c : name) good = good && c > ' ' && c < 127 && c != '/' && c != ':';
  if (!good)
    throw Error(
        subject, fmt::format("'{}' is no name of an interface", name),
        fmt::format("such names have 1..{} characters, none of them a blank, '/' or ':'", IFNAMSIZ - 1));
}

Interfaces::Interfaces()
    : socket_(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE)), datagram_(kDatagramBytes) {
  if (socket_.get() < 0) throw Error("netlink", "no socket: " + reason(errno));
  const int on = 1;
  // Kernels before 4.12 have no words on errors, and repeat the request in them: read_answer copes with both.
  static_cast<void>(setsockopt(socket_.get(), SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof on));
  static_cast<void>(setsockopt(socket_.get(), SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof on));
  if (setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &kAnswerLimit, sizeof kAnswerLimit) != 0)
    throw Error("netlink", "SO_RCVTIMEO: " + reason(errno));
  sockaddr_nl self{};
  self.nl_family = AF_NETLINK;
  if (bind(socket_.get(), reinterpret_cast<const sockaddr*>(&self), sizeof self) != 0)
    throw Error("netlink", "bind: " + reason(errno));
}

template <class Take>
int Interfaces::ask(Request& request, std::string& text, Take take) {
  const u32 sequence = ++sequence_;
  const auto message = request.finish(sequence);
  sockaddr_nl kernel{};
  kernel.nl_family = AF_NETLINK;
  ssize_t done;
  do {
    done = sendto(socket_.get(), message.data(), message.size(), 0,
                  reinterpret_cast<const sockaddr*>(&kernel), sizeof kernel);
  } while (done < 0 && errno == EINTR);
  if (done < 0) return errno;
  for (;;) {
    sockaddr_nl from{};
    iovec place{datagram_.data(), datagram_.size()};
    msghdr header{};
    header.msg_name = &from;
    header.msg_namelen = sizeof from;
    header.msg_iov = &place;
    header.msg_iovlen = 1;
    done = recvmsg(socket_.get(), &header, 0);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return errno == EAGAIN ? ETIMEDOUT : errno;
    if ((header.msg_flags & MSG_TRUNC) != 0) return EMSGSIZE;
    if (from.nl_pid != 0) continue;  // another program's, which may write to this socket too
    const Answer answer = read_answer({datagram_.data(), static_cast<std::size_t>(done)}, sequence);
    for (const Body& body : answer.bodies) take(body);
    if (!answer.last) continue;
    text = answer.text;
    return answer.error;
  }
}

void Interfaces::execute(Request& request, const std::string& what) {
  std::string text;
  if (const int error = ask(request, text, [](const Body&) {}); error != 0)
    throw Error(what, why_of(error, text), hint_of(error));
}

std::optional<Interface> Interfaces::look(Request& request, const std::string& what) {
  std::optional<Interface> found;
  std::string text;
  const int error = ask(request, text, [&](const Body& body) {
    if (body.type == RTM_NEWLINK) found = read_interface(body.bytes);
  });
  if (error != 0 && error != ENODEV) throw Error(what, why_of(error, text), hint_of(error));
  return found;
}

std::optional<Interface> Interfaces::find(const std::string& name) {
  Request request(RTM_GETLINK);
  request.fixed(of_interface(0));
  request.text(IFLA_IFNAME, name);
  return look(request, "interface " + name);
}

std::optional<Interface> Interfaces::find(u32 index) {
  Request request(RTM_GETLINK);
  request.fixed(of_interface(index));
  return look(request, fmt::format("interface {}", index));
}

Interface Interfaces::get(const std::string& name) {
  if (auto found = find(name)) return *std::move(found);
  throw Error("interface " + name, "there is none of this name in its network namespace");
}

std::vector<Interface> Interfaces::all() {
  Request request(RTM_GETLINK, NLM_F_DUMP);
  request.fixed(of_interface(0));
  std::vector<Interface> found;
  std::string text;
  const int error = ask(request, text, [&](const Body& body) {
    if (body.type == RTM_NEWLINK) found.push_back(read_interface(body.bytes));
  });
  if (error != 0) throw Error("interfaces", why_of(error, text), hint_of(error));
  return found;
}

void Interfaces::make_veth(const VethEnd& here, const VethEnd& there, int there_namespace) {
  Request request(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
  request.fixed(of_interface(0));
  put_veth_end(request, here);
  request.nest(IFLA_LINKINFO, [&] {
    request.text(IFLA_INFO_KIND, "veth");
    request.nest(IFLA_INFO_DATA, [&] {
      request.nest(VETH_INFO_PEER, [&] {
        request.fixed(of_interface(0));
        put_veth_end(request, there);
        request.number(IFLA_NET_NS_FD, static_cast<u32>(there_namespace));
      });
    });
  });
  execute(request, fmt::format("making the veth pair {}, {}", here.name, there.name));
}

void Interfaces::set_up(const Interface& i, bool up) {
  Request request(RTM_NEWLINK);
  ifinfomsg fixed = of_interface(i.index);
  fixed.ifi_change = IFF_UP;
  fixed.ifi_flags = up ? IFF_UP : 0;
  request.fixed(fixed);
  execute(request, fmt::format("interface {}: switching it {}", i.name, up ? "on" : "off"));
}

void Interfaces::set_mtu(const Interface& i, u32 mtu) {
  Request request(RTM_NEWLINK);
  request.fixed(of_interface(i.index));
  request.number(IFLA_MTU, mtu);
  execute(request, fmt::format("interface {}: an MTU of {}", i.name, mtu));
}

void Interfaces::leave_without_ipv6(const Interface& i) {
  Request request(RTM_NEWLINK);
  request.fixed(of_interface(i.index));
  request.nest(IFLA_AF_SPEC, [&] {
    request.nest(AF_INET6, [&] { request.byte(IFLA_INET6_ADDR_GEN_MODE, IN6_ADDR_GEN_MODE_NONE); });
  });
  std::string text;
  // A kernel without IPv6 refuses, and has nothing to switch off.
  if (const int error = ask(request, text, [](const Body&) {});
      error != 0 && error != EAFNOSUPPORT && error != EOPNOTSUPP)
    throw Error(fmt::format("interface {}: leaving it without an IPv6 address", i.name), why_of(error, text),
                hint_of(error));
}

void Interfaces::move(const Interface& i, int to_namespace) {
  Request request(RTM_NEWLINK);
  request.fixed(of_interface(i.index));
  request.number(IFLA_NET_NS_FD, static_cast<u32>(to_namespace));
  execute(request, fmt::format("interface {}: moving it to another network namespace", i.name));
}

void Interfaces::remove(const Interface& i) {
  Request request(RTM_DELLINK);
  request.fixed(of_interface(i.index));
  execute(request, fmt::format("interface {}: removing it", i.name));
}

u32 Interfaces::queue_drops(const Interface& i) {
  Request request(RTM_GETQDISC, NLM_F_DUMP);
  tcmsg fixed{};
  fixed.tcm_family = AF_UNSPEC;
  fixed.tcm_ifindex = static_cast<int>(i.index);
  request.fixed(fixed);
  u32 drops = 0;
  std::string text;
  const int error = ask(request, text, [&](const Body& body) {
    if (body.type == RTM_NEWQDISC) drops += read_queue_drops(body.bytes, i.index).value_or(0);
  });
  // A kernel may have none.
  if (error != 0 && error != EOPNOTSUPP)
    throw Error(fmt::format("queueing disciplines of interface {}", i.name), why_of(error, text),
                hint_of(error));
  return drops;
}

std::vector<Address> Interfaces::addresses(const Interface& i) {
  Request request(RTM_GETADDR, NLM_F_DUMP);
  ifaddrmsg fixed{};
  fixed.ifa_family = AF_UNSPEC;
  request.fixed(fixed);
  std::vector<Address> found;
  std::string text;
  const int error = ask(request, text, [&](const Body& body) {
    if (body.type != RTM_NEWADDR) return;
    if (const Address address = read_address(body.bytes); address.interface == i.index)
      found.push_back(address);
  });
  if (error != 0)
    throw Error(fmt::format("addresses of interface {}", i.name), why_of(error, text), hint_of(error));
  return found;
}

void Interfaces::add_address(const Interface& i, const Address& address) {
  Request request(RTM_NEWADDR, NLM_F_CREATE | NLM_F_REPLACE);
  ifaddrmsg fixed{};
  fixed.ifa_family = AF_INET;
  fixed.ifa_prefixlen = address.prefix;
  fixed.ifa_index = i.index;
  request.fixed(fixed);
  request.number(IFA_LOCAL, address.ip);
  request.number(IFA_ADDRESS, address.ip);
  execute(request, fmt::format("interface {}: address {}/{}", i.name, ip_text(address.ip), address.prefix));
}

void Interfaces::remove_address(const Interface& i, const Address& address) {
  Request request(RTM_DELADDR);
  ifaddrmsg fixed{};
  fixed.ifa_family = AF_INET;
  fixed.ifa_prefixlen = address.prefix;
  fixed.ifa_index = i.index;
  request.fixed(fixed);
  request.number(IFA_LOCAL, address.ip);
  execute(request,
          fmt::format("interface {}: removing address {}/{}", i.name, ip_text(address.ip), address.prefix));
}

void Interfaces::add_neighbour(const Interface& i, u32 ip, const Mac& mac) {
  Request request(RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE);
  ndmsg fixed{};
  fixed.ndm_family = AF_INET;
  fixed.ndm_ifindex = static_cast<int>(i.index);
  fixed.ndm_state = NUD_PERMANENT;
  request.fixed(fixed);
  request.number(NDA_DST, ip);
  request.bytes(NDA_LLADDR, mac);
  execute(request, fmt::format("interface {}: neighbour {} at {}", i.name, ip_text(ip), mac_text(mac)));
}

}  // namespace doorbell::net::netlink
