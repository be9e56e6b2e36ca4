// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A link that stays: two ends in named network namespaces, for many runs and for programs of others. Its ends
// are a veth pair, or two ports of this machine that a cable connects: between namespaces packets must take
// the cable, where in one namespace the kernel would hand them to itself.
//
// Each part of a link is written down in /run/doorbell before it is made. So link_down() undoes what a killed
// link_up() has left as well, and link_up() does so by itself. Only one of these functions works at a time on
// a machine; the others wait.
#pragma once

#include <doorbell/config.hpp>

#include <optional>
#include <string>
#include <vector>

namespace doorbell::net {

/// The two namespaces, by which a kept link is known.
struct KeptNames {
  std::string tx = "db_tx", rx = "db_rx";
};

struct KeptLink {
  KeptNames names = {};
  /// Interfaces of the namespace of this process; both empty: a veth pair is made.
  std::string tx_port = {}, rx_port = {};
  std::string tx_address = "192.0.2.1/30", rx_address = "192.0.2.2/30";
  u32 mtu = 9000;
  u32 queues = 0;  ///< of each interface; 0: one for a veth pair, as many as it has for a port
  bool gro = true;
  bool gso = true;  ///< of a veth pair; see VethConfig
};

/// Makes the link and checks it with packets. Ports lose their settings until link_down(). Returns its name
/// for --link: "db_tx/eth0,db_rx/eth1". Throws Error, and undoes what it did: no permission, names that are
/// taken, a port that is not there or in use (it has an address, or belongs to a bridge), packets that do not
/// arrive.
[[nodiscard]] std::string link_up(const KeptLink& link);

/// One thing that was looked at.
struct Finding {
  enum class State { good, wrong, unknown } state = State::good;
  std::string text;
  std::string hint = {};
};

/// Looks at namespaces, interfaces, MTU and addresses, sends packets there and back, and compares the ports'
/// counters with them: packets that a NIC's internal switch hands from port to port never reach the cable.
/// Throws Error when link_up() has made no such link.
[[nodiscard]] std::vector<Finding> link_verify(const KeptNames& names);

/// Gives the ports back to the namespace of this process, as they were, and removes the namespaces. Returns
/// what it did, a line each. Throws Error when link_up() has made no such link, or was called in another
/// namespace.
std::vector<std::string> link_down(const KeptNames& names);

/// Whether a port's own count of packets from the cable shows that `sent` packets came that way.
[[nodiscard]] Finding compare_with_cable(const std::string& port, std::optional<u64> before,
                                         std::optional<u64> after, u64 sent);

}  // namespace doorbell::net
