// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A link: what packets travel over from the sending end to the receiving end, and how each end is reached.
#pragma once

#include <doorbell/config.hpp>

#include <array>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "system/backend.hpp"

namespace doorbell::exchange {
class Exchange;
}

namespace doorbell::net {

enum class End { tx, rx };

using Mac = std::array<u8, 6>;

/// Set-up only; one thread at a time.
class Link {
 public:
  virtual ~Link() = default;
  /// The user's name for the link, resolved: "veth", "lo", "eth0,eth1".
  [[nodiscard]] virtual std::string name() const = 0;
  /// "model" (memory of this program), "kernel" (a software interface) or "hardware".
  [[nodiscard]] virtual std::string kind() const = 0;
  /// Runs `f` in the network namespace of that end and returns when it has. Sockets that `f` opens stay in
  /// that namespace, whichever thread uses them. What `f` throws is passed on.
  virtual void in(End end, const std::function<void()>& f) { static_cast<void>(end), f(); }
  /// A descriptor of that network namespace, for other programs; -1: that of this process.
  [[nodiscard]] virtual int network_namespace(End) const { return -1; }
  /// The interface of that end; "" where a link has none.
  [[nodiscard]] virtual std::string interface(End) const { return {}; }
  /// The IPv4 address of that end, as text; "" where a link has none.
  [[nodiscard]] virtual std::string ip(End) const { return {}; }
  /// All zeros where a link has none.
  [[nodiscard]] virtual Mac mac(End) const { return {}; }
  /// Where raw frames to the receiving end go; all zeros: to an address that nobody has.
  [[nodiscard]] virtual Mac raw_destination() const { return mac(End::rx); }
  /// The process of the other end, where it takes part in opening a stream; nullptr where both ends are here,
  /// and where the other one's program only knows what it was started with.
  [[nodiscard]] virtual exchange::Exchange* other_process() { return nullptr; }
  /// Bytes an IP packet may have.
  [[nodiscard]] virtual u32 mtu() const { return 9000; }
  /// Packets that the interface of that end has dropped by its own counters, since it was made.
  [[nodiscard]] virtual u64 interface_drops(End) { return 0; }
  /// True when a frame that is lost between the ends is in the counters of both, as veth's are.
  [[nodiscard]] virtual bool counts_at_both_ends() { return false; }
  /// Packets that the queueing discipline in front of the sending end's interface has dropped, in 32 bits.
  /// The sender has been told of some of them, and has sent these again.
  [[nodiscard]] virtual u32 queue_drops() { return 0; }
  /// True when nothing but this run uses it.
  [[nodiscard]] virtual bool is_own() const { return kind() == "model"; }
  /// Facts for the Result: interfaces, MTU, namespaces, offloads.
  [[nodiscard]] virtual nlohmann::ordered_json facts() { return nlohmann::ordered_json::object(); }
};

struct LinkRequest {
  std::string spec = "lo";
  u32 queues = 1;  ///< receive queues that the interface should have, where it can
};

/// A kind of link: `accepts` decides by the link's name alone.
using LinkKind = doorbell::Backend<Link, LinkRequest>;

[[nodiscard]] const std::vector<LinkKind>& link_kinds();
/// Opens the link that the request names. Throws Error: an unknown name, a link that is down, no permission.
[[nodiscard]] std::unique_ptr<Link> open_link(const LinkRequest& request);

}  // namespace doorbell::net
