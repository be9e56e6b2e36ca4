// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// An Ethernet port of DPDK, from adding its device to removing it.
#pragma once

#include <rte_ethdev.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "net/dpdk/plugin/pool.hpp"

namespace doorbell::net::dpdk {

/// Wishes for a port; a driver gives what it has of them.
struct PortWishes {
  u16 rx_queues = 1, tx_queues = 1;
  u32 mtu = 0;           ///< 0: as it is
  bool scatter = false;  ///< frames may be longer than a buffer
  bool split = false;    ///< headers and data into buffers of their own
};

/// Set-up only, in the network namespace that the device's sockets shall be in.
class Port {
 public:
  /// Adds the device.
  Port(const DeviceSpec& device, bool packet_sockets);
  /// Removes the device. Everything that uses the port has ended.
  ~Port();
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;

  void configure(const PortWishes& wishes);
  void set_up_rx(u16 queue, rte_mempool* pool);
  /// Header-data split: the first `head_bytes` of a frame go to `head`.
  void set_up_split_rx(u16 queue, rte_mempool* head, u16 head_bytes, rte_mempool* data);
  void set_up_tx(u16 queue);
  /// 0, or why it has not been started.
  [[nodiscard]] int try_start();
  void start();
  /// It may be started again.
  void stop();
  /// Stops it and gives back every buffer that it has; only removing the device is left.
  void close();

  [[nodiscard]] u16 id() const { return id_; }
  [[nodiscard]] bool link_up() const;
  [[nodiscard]] Mac mac() const;
  [[nodiscard]] rte_eth_stats stats() const;
  [[nodiscard]] u16 tx_descriptors() const { return tx_descriptors_; }
  /// AF_PACKET sockets that the driver has opened, in the order of its queues: for the counters of dropped
  /// packets that it does not read.
  [[nodiscard]] const std::vector<int>& sockets() const { return sockets_; }
  [[nodiscard]] nlohmann::ordered_json facts() const;

 private:
  /// Does what ends connections where the driver can bear it.
  void end(const std::function<void()>& work) const;

  DeviceSpec device_;
  std::string name_;
  u16 id_ = 0;
  bool added_ = false, open_ = false;
  rte_eth_dev_info info_{};
  rte_eth_conf conf_{};
  u16 rx_descriptors_ = 1024, tx_descriptors_ = 512;
  std::vector<int> sockets_;
};

}  // namespace doorbell::net::dpdk
