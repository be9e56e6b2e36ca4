// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>
#include <unistd.h>

#include "net/bench/bench.hpp"
#include "net/cli/parts.hpp"
#include "net/links/namespaces.hpp"
#include "system/sysfs.hpp"

namespace doorbell::cli {

namespace {

std::vector<BackendState> streams() {
  std::vector<BackendState> states;
  for (const net::StreamKind* k : net::stream_kinds()) states.push_back({k->name, k->status()});
  return states;
}

Check check_namespaces(const Machine& m) {
  // Only this machine's kernel can be asked.
  const BackendStatus s =
      m.root == "/" ? net::namespaces_status() : BackendStatus{false, "not known of another machine"};
  Check c{.name = "network namespaces", .finding = s.detail};
  if (!s.usable) {
    c.level = Level::warn;
    c.finding += "; --link veth needs them";
  }
  return c;
}

/// A receiver that is away for a moment needs room for what arrives meanwhile.
Check check_socket_buffers(const Machine& m) {
  constexpr i64 kEnough = i64{64} << 20;
  Check c{.name = "socket buffers"};
  const auto most = read_number(m.root / "proc/sys/net/core/rmem_max");
  if (!most) {
    c.finding = "net.core.rmem_max cannot be read";
  } else if (*most < kEnough && geteuid() != 0) {
    c.level = Level::warn;
    c.finding = fmt::format(
        "a socket may have {} bytes for received data; UDP at full rate loses packets then", *most);
    c.fix = fmt::format("sudo sysctl -w net.core.rmem_max={}", kEnough);
  } else {
    c.finding = *most < kEnough ? fmt::format("limited to {} bytes, but not for root", *most)
                                : fmt::format("up to {} bytes", *most);
  }
  return c;
}

}  // namespace

PathDescription net_path() {
  return {.title = "Network",
          .work = "packets",
          .command = net_command(),
          .tools = {net_link_command()},
          .backends = streams,
          .models = {{"ring", "link in memory; raw Ethernet frames, flows and queues"}},
          .devices_title = "Network interfaces",
          .devices = [](const std::filesystem::path& root) { return network_interfaces(root); },
          .checks = {check_namespaces, check_socket_buffers},
          .demo_steps = net_demo_steps,
          .check_fault = check_net_fault};
}

}  // namespace doorbell::cli
