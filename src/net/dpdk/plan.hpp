// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Which DPDK devices a stream uses: decided by the program from the names of engine and link, without DPDK.
#pragma once

#include <string>
#include <string_view>

#include "net/stream.hpp"

namespace doorbell::net::dpdk {

enum class Driver { ring, null, memif, af_packet, af_xdp, tap, pci };
/// As users write it. Inline, because the plugin needs it too.
[[nodiscard]] constexpr std::string_view name(Driver d) {
  constexpr std::string_view kNames[] = {"ring", "null", "memif", "af_packet", "af_xdp", "tap", "pci"};
  return kNames[static_cast<std::size_t>(d)];
}

/// One device as rte_eal_hotplug_add() takes it.
struct DeviceSpec {
  std::string bus = "vdev";
  /// "net_memif", to which a number is added that makes it unique; a PCI address as it is.
  std::string name;
  std::string arguments;
};

struct Plan {
  Driver driver = Driver::ring;
  DeviceSpec tx, rx;
  /// memif: the file of the Unix socket at which the receiving end listens.
  std::string socket;
  /// One device is both ends.
  bool loop = false;
  /// Every flow has a device queue of its own at the receiving end too, so that a receive queue polls those
  /// of its flows. Otherwise a receive queue is a device queue, and the device chooses.
  bool queue_of_each_flow = false;
  /// Data bytes of a receive buffer. Longer frames come in several.
  u32 buffer_bytes = 0;
  /// The whole frame, Ethernet's header included.
  u32 frame_bytes = 0;
  u32 header_bytes = 0;  ///< of it, in front of the payload
};

/// Throws Error: an engine or key that does not exist, a link that the driver does not work on, more queues
/// than it has, an end that must lie in this process and does not. memif's socket gets the name of the link's
/// and `socket_suffix`.
[[nodiscard]] Plan make_plan(const StreamRequest& request, const Link& link,
                             const std::string& socket_suffix = "");

/// The syntax of the engine's name.
inline constexpr const char* kEngineSyntax = "dpdk[:af_packet|af_xdp|tap][,buffer=BYTES]";

}  // namespace doorbell::net::dpdk
