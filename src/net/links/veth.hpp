// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Veth pairs, and what joins the ends of any pair of interfaces.
#pragma once

#include "net/links/namespaces.hpp"
#include "net/links/netlink.hpp"
#include "options/option.hpp"

namespace doorbell::net {

struct VethConfig {
  std::string tx_interface = "db_tx", rx_interface = "db_rx";
  std::string tx_address = "192.0.2.1/30", rx_address = "192.0.2.2/30";
  u32 mtu = 9000;
  u32 queues = 1;
  bool gro = true;  ///< at the receiving end
  bool gso = true;  ///< false: the sending end splits datagrams of many segments
};

/// The keys that "veth:..." takes.
[[nodiscard]] options::OptionTable veth_keys();
/// Throws Error for a key or a value that there is not.
/// `title`: of the link in messages.
[[nodiscard]] VethConfig parse_veth_spec(const std::string& spec, const std::string& title = "link veth");

/// Makes the pair with an end in each namespace, configured and switched on; `tx` and `rx` may not be the
/// same. Throws Error, and leaves no interface then.
void make_veth_pair(const VethConfig& config, const Namespace& tx, const Namespace& rx);

struct ToJoin {
  netlink::Interfaces& interfaces;
  const netlink::Interface& state;
  const std::string& address;  ///< with its prefix
};

/// Gives each end its address and a permanent entry of the other, and switches both on, with the loopback
/// interfaces of their namespaces.
void join_ends(const ToJoin& tx, const ToJoin& rx);

}  // namespace doorbell::net
