// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/dpdk/plugin/port.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <rte_dev.h>
#include <rte_errno.h>
#include <sys/socket.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <filesystem>
#include <set>

#include "net/dpdk/plugin/eal.hpp"

namespace doorbell::net::dpdk {

namespace fs = std::filesystem;

namespace {

/// This process's AF_PACKET sockets.
std::set<int> packet_sockets() {
  std::set<int> found;
  std::error_code ignored;
  for (const fs::directory_entry& e : fs::directory_iterator("/proc/self/fd", ignored)) {
    const std::string text = e.path().filename();
    int fd = -1, domain = 0;
    socklen_t bytes = sizeof domain;
    if (std::from_chars(text.data(), text.data() + text.size(), fd).ec != std::errc()) continue;
    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &bytes) == 0 && domain == AF_PACKET) found.insert(fd);
  }
  return found;
}

nlohmann::ordered_json names_of(u64 offloads, const char* (*name)(u64)) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (; offloads != 0; offloads &= offloads - 1) list.push_back(name(offloads & (~offloads + 1)));
  return list;
}

}  // namespace

Port::Port(const DeviceSpec& device, bool with_packet_sockets) : device_(device) {
  // A device's driver is found by the name's begin.
  name_ = device.bus == "vdev" ? unique_name(device.name) : device.name;
  const std::set<int> before = with_packet_sockets ? packet_sockets() : std::set<int>{};
  if (const int failed = rte_eal_hotplug_add(device.bus.c_str(), name_.c_str(), device.arguments.c_str());
      failed != 0)
    dpdk_failed(fmt::format("DPDK device {},{}", device.name, device.arguments), failed,
                device.bus == "vdev" ? "install DPDK's drivers (Debian: librte-meta-net)"
                                     : "is the port bound to vfio-pci, or to mlx5_core for NVIDIA's?");
  added_ = true;
  if (with_packet_sockets)
    std::ranges::set_difference(packet_sockets(), before, std::back_inserter(sockets_));
  if (rte_eth_dev_get_port_by_name(name_.c_str(), &id_) != 0) {
    rte_eal_hotplug_remove(device.bus.c_str(), name_.c_str());
    throw Error(fmt::format("DPDK device {}", name_), "it has no Ethernet port");
  }
  open_ = true;
}

Port::~Port() {
  close();
  if (added_) rte_eal_hotplug_remove(device_.bus.c_str(), name_.c_str());
}

void Port::configure(const PortWishes& wishes) {
  check(rte_eth_dev_info_get(id_, &info_), name_ + ": its facts");
  if (wishes.rx_queues > info_.max_rx_queues || wishes.tx_queues > info_.max_tx_queues)
    throw Error(fmt::format("{}: {} receive and {} send queues", name_, wishes.rx_queues, wishes.tx_queues),
                fmt::format("it has at most {} and {}", info_.max_rx_queues, info_.max_tx_queues));
  const auto want = [&](u64 rx_offload) { conf_.rxmode.offloads |= rx_offload & info_.rx_offload_capa; };
  if (wishes.mtu != 0) conf_.rxmode.mtu = std::clamp<u32>(wishes.mtu, info_.min_mtu, info_.max_mtu);
  if (wishes.scatter || wishes.split) want(RTE_ETH_RX_OFFLOAD_SCATTER);
  if (wishes.split) {
    if ((info_.rx_offload_capa & RTE_ETH_RX_OFFLOAD_BUFFER_SPLIT) == 0)
      throw Error("header-data split",
                  fmt::format("driver {} of {} does not offer it", info_.driver_name, name_),
                  "leave it out, or use a NIC that splits (NVIDIA ConnectX by mlx5)");
    want(RTE_ETH_RX_OFFLOAD_BUFFER_SPLIT);
  }
  check(rte_eth_dev_configure(id_, wishes.rx_queues, wishes.tx_queues, &conf_),
        name_ + ": its configuration");
  if (wishes.mtu != 0 && conf_.rxmode.mtu < wishes.mtu)
    throw Error(fmt::format("{}: packets of {} bytes", name_, wishes.mtu),
                fmt::format("driver {} takes at most {}", info_.driver_name, info_.max_mtu),
                "use a smaller payload");
  check(rte_eth_dev_adjust_nb_rx_tx_desc(id_, &rx_descriptors_, &tx_descriptors_),
        name_ + ": its descriptors");
}

void Port::set_up_rx(u16 queue, rte_mempool* pool) {
  rte_eth_rxconf conf = info_.default_rxconf;
  conf.offloads = conf_.rxmode.offloads;
  check(rte_eth_rx_queue_setup(id_, queue, rx_descriptors_, SOCKET_ID_ANY, &conf, pool),
        fmt::format("{}: receive queue {}", name_, queue));
}

void Port::set_up_split_rx(u16 queue, rte_mempool* head, u16 head_bytes, rte_mempool* data) {
  rte_eth_rxseg segments[2] = {};
  segments[0].split.mp = head;
  segments[0].split.length = head_bytes;
  segments[1].split.mp = data;
  rte_eth_rxconf conf = info_.default_rxconf;
  conf.offloads = conf_.rxmode.offloads;
  conf.rx_seg = segments;
  conf.rx_nseg = 2;
  check(rte_eth_rx_queue_setup(id_, queue, rx_descriptors_, SOCKET_ID_ANY, &conf, nullptr),
        fmt::format("{}: receive queue {} with header-data split", name_, queue));
}

void Port::set_up_tx(u16 queue) {
  check(rte_eth_tx_queue_setup(id_, queue, tx_descriptors_, SOCKET_ID_ANY, &info_.default_txconf),
        fmt::format("{}: send queue {}", name_, queue));
}

int Port::try_start() {
  const int failed = rte_eth_dev_start(id_);
  // Frames for whatever address: both ends are ours. A driver without such a mode takes all of them anyway.
  if (failed == 0) static_cast<void>(rte_eth_promiscuous_enable(id_));
  return failed;
}

void Port::start() {
  check(try_start(), name_ + ": its start");
}

void Port::end(const std::function<void()>& work) const {
  // memif's driver hears of its peer's end in DPDK's interrupt thread, and frees the same memory then without
  // a lock.
  if (device_.name == "net_memif") in_interrupt_thread(work);
  else work();
}

void Port::stop() {
  int failed = 0;
  end([&] { failed = rte_eth_dev_stop(id_); });
  check(failed, name_ + ": its stop");
}

void Port::close() {
  if (!open_) return;
  open_ = false;
  end([&] {
    static_cast<void>(rte_eth_dev_stop(id_));
    static_cast<void>(rte_eth_dev_close(id_));
  });
}

bool Port::link_up() const {
  rte_eth_link link{};
  return rte_eth_link_get_nowait(id_, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
}

Mac Port::mac() const {
  rte_ether_addr address{};
  check(rte_eth_macaddr_get(id_, &address), name_ + ": its address");
  Mac mac;
  std::ranges::copy(address.addr_bytes, mac.begin());
  return mac;
}

rte_eth_stats Port::stats() const {
  rte_eth_stats s{};
  static_cast<void>(rte_eth_stats_get(id_, &s));
  return s;
}

nlohmann::ordered_json Port::facts() const {
  return {{"device", device_.arguments.empty() ? name_ : name_ + "," + device_.arguments},
          {"driver", info_.driver_name},
          {"rx_descriptors", rx_descriptors_},
          {"tx_descriptors", tx_descriptors_},
          {"rx_offloads", names_of(conf_.rxmode.offloads, rte_eth_dev_rx_offload_name)},
          {"rx_offloads_offered", names_of(info_.rx_offload_capa, rte_eth_dev_rx_offload_name)},
          {"tx_offloads", names_of(conf_.txmode.offloads, rte_eth_dev_tx_offload_name)}};
}

}  // namespace doorbell::net::dpdk
