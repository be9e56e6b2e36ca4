// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The interfaces of one network namespace: made, configured, looked at and removed through rtnetlink and
// ethtool's calls, without programs of others.
#pragma once

#include "net/links/netlink_message.hpp"
#include "system/descriptor.hpp"

namespace doorbell::net::netlink {

/// One end of a veth pair that is to be made.
struct VethEnd {
  std::string name;
  u32 mtu = 9000;
  u32 queues = 1;  ///< send queues, and as many receive queues
};

/// A socket of the namespace that the constructing thread is in; it stays there, whichever thread uses it.
/// One thread at a time. Every call throws Error when the kernel refuses or does not answer within seconds;
/// its text has the kernel's own words where there are any.
class Interfaces {
 public:
  Interfaces();

  [[nodiscard]] std::optional<Interface> find(const std::string& name);
  [[nodiscard]] std::optional<Interface> find(u32 index);
  /// Throws Error when there is none.
  [[nodiscard]] Interface get(const std::string& name);
  [[nodiscard]] std::vector<Interface> all();

  /// Makes a pair of which `here` lies in this namespace, `there` in that of the descriptor.
  void make_veth(const VethEnd& here, const VethEnd& there, int there_namespace);
  void set_up(const Interface& i, bool up = true);
  void set_mtu(const Interface& i, u32 mtu);
  /// IPv6 sends router solicitations and reports over every interface that is up, unless it gets no address.
  void leave_without_ipv6(const Interface& i);
  void move(const Interface& i, int to_namespace);
  void remove(const Interface& i);

  /// Packets that the queueing discipline of its send queues has dropped, in 32 bits; 0 where it has none.
  [[nodiscard]] u32 queue_drops(const Interface& i);

  /// IPv4 and IPv6.
  [[nodiscard]] std::vector<Address> addresses(const Interface& i);
  void add_address(const Interface& i, const Address& address);
  void remove_address(const Interface& i, const Address& address);
  /// A permanent entry: who has `ip` behind this interface is not asked for.
  void add_neighbour(const Interface& i, u32 ip, const Mac& mac);

  /// Its driver's name, "" where it says none.
  [[nodiscard]] std::string driver(const std::string& interface);
  [[nodiscard]] bool gro(const std::string& interface);
  void set_gro(const std::string& interface, bool on);
  /// One of ethtool's features by its name ("tx-udp-segmentation"); nothing where the kernel knows none such.
  [[nodiscard]] std::optional<bool> feature(const std::string& interface, const std::string& feature);
  /// Throws Error when the interface keeps the feature as it was.
  void set_feature(const std::string& interface, const std::string& feature, bool on);
  /// How many channels it uses; nothing for an interface that has no such setting.
  [[nodiscard]] std::optional<u32> channels(const std::string& interface);
  /// So many combined channels, or send and receive channels, whichever the interface has.
  void set_channels(const std::string& interface, u32 queues);
  /// One of its driver's own counters by its name ("rx_packets_phy"); nothing where it has none such.
  [[nodiscard]] std::optional<u64> counter(const std::string& interface, const std::string& name);

 private:
  /// Sends a request and hands each body that answers it to `take`. Returns an errno; `text` gets the
  /// kernel's words on it.
  template <class Take>
  [[nodiscard]] int ask(Request& request, std::string& text, Take take);
  /// For requests whose answer is success or an error, which it throws.
  void execute(Request& request, const std::string& what);
  [[nodiscard]] std::optional<Interface> look(Request& request, const std::string& what);
  /// 0 or an errno.
  [[nodiscard]] int ethtool(const std::string& interface, void* command);
  /// The names that ethtool has for one kind of thing.
  [[nodiscard]] std::vector<std::string> strings(const std::string& interface, u32 set);

  Descriptor socket_;
  u32 sequence_ = 0;
  std::vector<u8> datagram_;
};

/// Throws Error for names that the kernel would not take.
void check_interface_name(const std::string& subject, const std::string& name);

}  // namespace doorbell::net::netlink
