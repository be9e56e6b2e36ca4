// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The bytes of rtnetlink: requests as they are built, answers as they are read. Pure; netlink.hpp has the
// socket.
#pragma once

#include <doorbell/config.hpp>
#include <linux/rtnetlink.h>

#include <array>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace doorbell::net::netlink {

/// A request: header, a fixed part, attributes, some of which hold others.
class Request {
 public:
  /// NLM_F_REQUEST and NLM_F_ACK are set already.
  explicit Request(u16 type, u16 flags = 0);

  template <class T>
  requires std::is_trivially_copyable_v<T>
  void fixed(const T& part) { append(&part, sizeof part); }
  void bytes(u16 type, std::span<const u8> value);
  void number(u16 type, u32 value);
  void byte(u16 type, u8 value);
  void text(u16 type, std::string_view value);  ///< with its terminating 0
  template <class Fill>
  void nest(u16 type, Fill fill) {
    const std::size_t at = open(type);
    fill();
    close(at);
  }
  /// The whole message, which stays the request's own.
  [[nodiscard]] std::span<const u8> finish(u32 sequence);

 private:
  void append(const void* from, std::size_t size);
  [[nodiscard]] std::size_t open(u16 type);
  void close(std::size_t at);
  std::vector<u8> message_;
};

/// Into the datagram that it was read from, which must outlive it.
struct Attribute {
  u16 type = 0;
  std::span<const u8> value;
};

/// The attributes that fill `bytes`. Throws Error when one is longer than what is left.
[[nodiscard]] std::vector<Attribute> attributes(std::span<const u8> bytes);

struct Body {
  u16 type = 0;
  std::span<const u8> bytes;
};

/// The answer of one datagram to a request.
struct Answer {
  bool last = false;  ///< nothing follows: an acknowledgement, an error, the end of a list
  int error = 0;      ///< an errno
  std::string text;   ///< the kernel's own words on the error, where it has any
  std::vector<Body> bodies;
};

/// Reads a datagram that answers the request `sequence`; messages of other requests in it are passed over.
/// Throws Error for one that is cut short or contradicts itself.
[[nodiscard]] Answer read_answer(std::span<const u8> datagram, u32 sequence);

using Mac = std::array<u8, 6>;

/// An interface as RTM_NEWLINK describes it.
struct Interface {
  u32 index = 0;
  std::string name;
  std::string kind;  ///< "veth", "dummy"; "" for an interface of hardware, and for lo
  Mac mac{};
  u32 mtu = 0;
  u32 tx_queues = 0, rx_queues = 0;
  u32 master = 0;         ///< the bridge or bond that it is a port of, by its index
  bool up = false;        ///< by its user
  bool carrier = false;   ///< the other end answers
  bool loopback = false;  ///< it is lo
  rtnl_link_stats64 stats{};
};

/// From the body of an RTM_NEWLINK. Throws Error when it is malformed.
[[nodiscard]] Interface read_interface(std::span<const u8> body);

/// Drops of the queueing discipline at the root of an interface's queues, from the body of an
/// RTM_NEWQDISC; nothing for another interface, and for a discipline below another. Throws Error when it is
/// malformed.
[[nodiscard]] std::optional<u32> read_queue_drops(std::span<const u8> body, u32 interface);

/// An address of an interface.
struct Address {
  u32 interface = 0;
  bool ipv4 = true;
  bool global = true;  ///< not only for this link or this machine
  u32 ip = 0;          ///< of IPv4, in network byte order
  u8 prefix = 32;
};

/// From the body of an RTM_NEWADDR. Throws Error when it is malformed.
[[nodiscard]] Address read_address(std::span<const u8> body);

/// "192.0.2.1/30". Throws Error that begins with `subject`.
[[nodiscard]] Address parse_address(const std::string& subject, const std::string& text);
/// "192.0.2.1"
[[nodiscard]] std::string ip_text(u32 ip);
/// "02:00:00:00:00:01"
[[nodiscard]] std::string mac_text(const Mac& mac);

}  // namespace doorbell::net::netlink
