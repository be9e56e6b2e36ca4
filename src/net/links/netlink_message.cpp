// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/links/netlink_message.hpp"

#include <arpa/inet.h>
#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <linux/gen_stats.h>
#include <linux/if.h>
#include <linux/if_link.h>
#include <linux/pkt_sched.h>

#include <algorithm>
#include <charconv>

namespace doorbell::net::netlink {

namespace {

constexpr std::size_t aligned4(std::size_t bytes) {
  return (bytes + 3) & ~std::size_t{3};
}

[[noreturn]] void malformed(const std::string& why) {
  throw Error("netlink", "the kernel's answer is malformed: " + why);
}

/// The T at the start of `bytes`.
template <class T>
T head(std::span<const u8> bytes, const char* what) {
  T value;
  if (bytes.size() < sizeof value)
    malformed(fmt::format("{} has {} of its {} bytes", what, bytes.size(), sizeof value));
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

/// The bytes that follow a fixed part of `size` bytes.
std::span<const u8> behind(std::span<const u8> bytes, std::size_t size) {
  return bytes.subspan(std::min(bytes.size(), aligned4(size)));
}

/// Up to its terminating 0, which some senders leave out.
std::string text_of(std::span<const u8> value) {
  return {value.begin(), std::find(value.begin(), value.end(), u8{0})};
}

constexpr u16 kTypeMask = static_cast<u16>(~(NLA_F_NESTED | NLA_F_NET_BYTEORDER));

}  // namespace

Request::Request(u16 type, u16 flags) {
  nlmsghdr header{};
  header.nlmsg_type = type;
  header.nlmsg_flags = static_cast<u16>(flags | NLM_F_REQUEST | NLM_F_ACK);
  fixed(header);
}

void Request::append(const void* from, std::size_t size) {
  const std::size_t at = message_.size();
  message_.resize(at + aligned4(size));
  if (size > 0) std::memcpy(message_.data() + at, from, size);
}

void Request::bytes(u16 type, std::span<const u8> value) {
  const std::size_t at = open(type);
  append(value.data(), value.size());
  const u16 length = static_cast<u16>(sizeof(nlattr) + value.size());
  std::memcpy(message_.data() + at, &length, sizeof length);
}

void Request::number(u16 type, u32 value) {
  bytes(type, {reinterpret_cast<const u8*>(&value), sizeof value});
}

void Request::byte(u16 type, u8 value) {
  bytes(type, {&value, 1});
}

void Request::text(u16 type, std::string_view value) {
  const std::string ended(value);
  bytes(type, {reinterpret_cast<const u8*>(ended.c_str()), ended.size() + 1});
}

std::size_t Request::open(u16 type) {
  const std::size_t at = message_.size();
  nlattr header{};
  header.nla_type = type;
  append(&header, sizeof header);
  return at;
}

void Request::close(std::size_t at) {
  const u16 length = static_cast<u16>(message_.size() - at);
  std::memcpy(message_.data() + at, &length, sizeof length);
}

std::span<const u8> Request::finish(u32 sequence) {
  nlmsghdr header;
  std::memcpy(&header, message_.data(), sizeof header);
  header.nlmsg_len = static_cast<u32>(message_.size());
  header.nlmsg_seq = sequence;
  std::memcpy(message_.data(), &header, sizeof header);
  return message_;
}

std::vector<Attribute> attributes(std::span<const u8> bytes) {
  std::vector<Attribute> found;
  while (bytes.size() >= sizeof(nlattr)) {
    const auto header = head<nlattr>(bytes, "an attribute");
    if (header.nla_len < sizeof header || header.nla_len > bytes.size())
      malformed(fmt::format("an attribute of {} bytes where {} are left", header.nla_len, bytes.size()));
    found.push_back({static_cast<u16>(header.nla_type & kTypeMask),
                     bytes.subspan(sizeof header, header.nla_len - sizeof header)});
    bytes = behind(bytes, header.nla_len);
  }
  return found;
}

Answer read_answer(std::span<const u8> datagram, u32 sequence) {
  Answer answer;
  while (!datagram.empty()) {
    const auto header = head<nlmsghdr>(datagram, "a message's header");
    if (header.nlmsg_len < sizeof header || header.nlmsg_len > datagram.size())
      malformed(fmt::format("a message of {} bytes where {} are left", header.nlmsg_len, datagram.size()));
    const auto body = datagram.subspan(sizeof header, header.nlmsg_len - sizeof header);
    datagram = behind(datagram, header.nlmsg_len);
    if (header.nlmsg_seq != sequence) continue;
    if (header.nlmsg_type == NLMSG_DONE || header.nlmsg_type == NLMSG_ERROR) {
      const int code =
          header.nlmsg_type == NLMSG_DONE && body.size() < sizeof code ? 0 : head<int>(body, "an error");
      // Negative by the protocol; the one value without a negation is no errno either way.
      answer.error = code < 0 && code > -4096 ? -code : code == 0 ? 0 : EPROTO;
      answer.last = true;
      if ((header.nlmsg_flags & NLM_F_ACK_TLVS) == 0) continue;
      std::size_t fixed = sizeof code;
      if (header.nlmsg_type == NLMSG_ERROR) {
        const auto error = head<nlmsgerr>(body, "an error");
        fixed = sizeof error;
        // The request's own bytes lie in between, unless they were left out.
        if ((header.nlmsg_flags & NLM_F_CAPPED) == 0) {
          if (error.msg.nlmsg_len < sizeof(nlmsghdr)) malformed("an error whose request has no header");
          fixed += error.msg.nlmsg_len - sizeof(nlmsghdr);
        }
      }
      for (const Attribute& a : attributes(behind(body, fixed)))
        if (a.type == NLMSGERR_ATTR_MSG) answer.text = text_of(a.value);
    } else if (header.nlmsg_type >= NLMSG_MIN_TYPE) {
      answer.bodies.push_back({header.nlmsg_type, body});
    }
  }
  return answer;
}

Interface read_interface(std::span<const u8> body) {
  const auto fixed = head<ifinfomsg>(body, "an interface");
  Interface i;
  i.index = static_cast<u32>(fixed.ifi_index);
  i.up = (fixed.ifi_flags & IFF_UP) != 0;
  i.carrier = (fixed.ifi_flags & IFF_LOWER_UP) != 0;
  i.loopback = (fixed.ifi_flags & IFF_LOOPBACK) != 0;
  for (const Attribute& a : attributes(behind(body, sizeof fixed))) {
    switch (a.type) {
      case IFLA_IFNAME:
        i.name = text_of(a.value);
        break;
      case IFLA_MTU:
        i.mtu = head<u32>(a.value, "an MTU");
        break;
      case IFLA_NUM_TX_QUEUES:
        i.tx_queues = head<u32>(a.value, "a count of queues");
        break;
      case IFLA_NUM_RX_QUEUES:
        i.rx_queues = head<u32>(a.value, "a count of queues");
        break;
      case IFLA_MASTER:
        i.master = head<u32>(a.value, "a master's index");
        break;
      case IFLA_ADDRESS:
        // Other kinds of interfaces have addresses of other lengths.
        if (a.value.size() == i.mac.size()) std::copy(a.value.begin(), a.value.end(), i.mac.begin());
        break;
      case IFLA_STATS64:
        // Each kernel appends fields: an older one has fewer, a newer one more.
        std::memcpy(&i.stats, a.value.data(), std::min(a.value.size(), sizeof i.stats));
        break;
      case IFLA_LINKINFO:
        for (const Attribute& info : attributes(a.value))
          if (info.type == IFLA_INFO_KIND) i.kind = text_of(info.value);
        break;
      default:
        break;
    }
  }
  return i;
}

std::optional<u32> read_queue_drops(std::span<const u8> body, u32 interface) {
  const auto fixed = head<tcmsg>(body, "a queueing discipline");
  if (static_cast<u32>(fixed.tcm_ifindex) != interface || fixed.tcm_parent != TC_H_ROOT) return std::nullopt;
  u32 drops = 0;
  for (const Attribute& a : attributes(behind(body, sizeof fixed))) {
    if (a.type != TCA_STATS2) continue;
    for (const Attribute& s : attributes(a.value))
      if (s.type == TCA_STATS_QUEUE) drops = head<gnet_stats_queue>(s.value, "counts of a queue").drops;
  }
  return drops;
}

Address read_address(std::span<const u8> body) {
  const auto fixed = head<ifaddrmsg>(body, "an address");
  Address address{.interface = fixed.ifa_index,
                  .ipv4 = fixed.ifa_family == AF_INET,
                  .global = fixed.ifa_scope < RT_SCOPE_LINK,
                  .ip = 0,
                  .prefix = fixed.ifa_prefixlen};
  for (const Attribute& a : attributes(behind(body, sizeof fixed)))
    if (address.ipv4 && a.type == IFA_LOCAL) address.ip = head<u32>(a.value, "an IPv4 address");
  return address;
}

Address parse_address(const std::string& subject, const std::string& text) {
  Address address;
  const std::size_t slash = text.find('/');
  bool good =
      slash != std::string::npos && inet_pton(AF_INET, text.substr(0, slash).c_str(), &address.ip) == 1;
  if (good) {
    const char* const end = text.data() + text.size();
    const auto [stopped, error] = std::from_chars(text.data() + slash + 1, end, address.prefix);
    good = error == std::errc() && stopped == end && address.prefix >= 1 && address.prefix <= 31;
  }
  if (!good)
    throw Error(subject, fmt::format("'{}' is no IPv4 address with a prefix of 1..31 bits", text),
                "write it as 192.0.2.1/30");
  return address;
}

std::string ip_text(u32 ip) {
  std::array<char, INET_ADDRSTRLEN> text{};
  inet_ntop(AF_INET, &ip, text.data(), text.size());
  return text.data();
}

std::string mac_text(const Mac& mac) {
  return fmt::format("{:02x}:{:02x}:{:02x}:{:02x}:{:02x}:{:02x}", mac[0], mac[1], mac[2], mac[3], mac[4],
                     mac[5]);
}

}  // namespace doorbell::net::netlink
