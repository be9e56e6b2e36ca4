// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/dpdk/engine.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <utility>

#include "net/dpdk/loader.hpp"
#include "net/dpdk/socket_file.hpp"
#include "net/raw/tx_frames.hpp"
#include "net/settings.hpp"

namespace doorbell::net {

namespace {

using namespace dpdk;  // NOLINT(google-build-using-namespace): the engine's own parts

BackendStatus status() {
  try {
    const PluginTable& plugin = load_plugin();
    return {true, fmt::format("{}; devices without hardware: ring, memif, null, interfaces by AF_PACKET",
                              plugin.dpdk_version)};
  } catch (const Error& e) {
    return {false, fmt::format("{}; {}", e.what(), e.hint())};
  }
}

PluginMemory memory_of(Region&& region) {
  const auto owner = std::make_shared<Region>(std::move(region));
  return {owner, owner->host(), owner->device(), owner->bytes()};
}

std::unique_ptr<Stream> open(const StreamRequest& request, Link& link) {
  raw::check_request(request, link);
  const Plan plan = make_plan(request, link);
  if (!plan.socket.empty() && request.has_rx) clear_socket(plan.socket, setting::link);
  OpenRequest open_request{
      .stream = request,
      .link = link,
      .plan = plan,
      .flows = {},
      .allocate = [&](Place place, u64 bytes) { return memory_of(Region(place, bytes, request.gpu)); },
      .link_setting = setting::link,
      .memory_setting = setting::memory};
  for (u32 flow = 0; flow < request.flows; ++flow)
    open_request.flows.push_back(raw::flow_address(link, request, flow));
  return load_plugin().open(open_request);
}

}  // namespace

const StreamKind& dpdk_engine() {
  static const StreamKind kind = raw::frames_kind({.name = "dpdk", .status = status, .open = open});
  return kind;
}

}  // namespace doorbell::net
