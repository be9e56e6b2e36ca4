// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Links whose ends are interfaces of the kernel.
#pragma once

#include "net/link.hpp"
#include "net/links/namespaces.hpp"
#include "net/links/netlink.hpp"

namespace doorbell::net {

/// One end: an interface, and the namespace that it lies in.
struct Side {
  Side(Namespace in, const std::string& interface_name);

  Namespace space;
  netlink::Interfaces interfaces;  ///< of that namespace
  std::string interface;
  netlink::Interface state;  ///< when it was last looked at
  std::string ip;            ///< "" for an end that has no IPv4 address

  /// Looks at it again.
  void look() { state = interfaces.get(interface); }
};

/// The calls for interfaces of `space`, from any thread.
[[nodiscard]] netlink::Interfaces interfaces_in(const Namespace& space);

/// Its first IPv4 address, "" without one.
[[nodiscard]] std::string ip_of(Side& side);

/// Waits until the interface is on and its other end answers; throws Error, which begins with `subject`, when
/// that takes longer than `limit_s`.
void await_carrier(const std::string& subject, Side& side, double limit_s);

/// Sends a datagram from `a` to `b` and one back, then two as long as the MTU allows, without fragments.
/// Throws Error, which begins with `subject`, when one is not there within `limit_s`.
void check_datagrams(const std::string& subject, const Side& a, const Side& b, double limit_s);

class InterfaceLink : public Link {
 public:
  InterfaceLink(std::string name, Side tx, Side rx)
      : tx_(std::move(tx)), rx_(std::move(rx)), name_(std::move(name)) {}

  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] std::string kind() const override { return "kernel"; }
  void in(End end, const std::function<void()>& f) override { side(end).space.run(f); }
  [[nodiscard]] int network_namespace(End end) const override { return side(end).space.fd(); }
  [[nodiscard]] std::string interface(End end) const override { return side(end).interface; }
  [[nodiscard]] std::string ip(End end) const override { return side(end).ip; }
  [[nodiscard]] Mac mac(End end) const override { return side(end).state.mac; }
  [[nodiscard]] u32 mtu() const override { return std::min(tx_.state.mtu, rx_.state.mtu); }
  /// Packets that the sending end's interface did not send, and that the receiving end's did not receive.
  [[nodiscard]] u64 interface_drops(End end) override;
  [[nodiscard]] bool counts_at_both_ends() override;
  [[nodiscard]] u32 queue_drops() override { return tx_.interfaces.queue_drops(tx_.state); }
  [[nodiscard]] nlohmann::ordered_json facts() override;

 protected:
  [[nodiscard]] Side& side(End end) { return end == End::tx ? tx_ : rx_; }
  [[nodiscard]] const Side& side(End end) const { return end == End::tx ? tx_ : rx_; }
  Side tx_, rx_;

 private:
  std::string name_;
};

/// Both ends on this machine's loopback interface.
[[nodiscard]] std::unique_ptr<Link> open_lo(const LinkRequest& request);
/// A pair of virtual interfaces, each in a namespace of its own, for as long as the link lives.
[[nodiscard]] std::unique_ptr<Link> open_veth(const LinkRequest& request);
/// Two interfaces that are there already: "eth0,eth1", or "db_tx/eth0,db_rx/eth1".
[[nodiscard]] std::unique_ptr<Link> open_interfaces(const LinkRequest& request);
/// By the text alone.
[[nodiscard]] bool is_interface_pair(const std::string& spec);

}  // namespace doorbell::net
