// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <doorbell/error.hpp>
#include <doorbell/net/packet.hpp>
#include <fmt/format.h>

#include <algorithm>

#include "net/roce/roce.hpp"
#include "net/settings.hpp"

namespace doorbell::net {

namespace {

constexpr u32 kMostWindow = 63;
constexpr u32 kDepth = 512;          ///< receives posted ahead
constexpr u32 kMostDepth = 32768;    ///< of either queue
constexpr u64 kBuffers = 256 << 20;  ///< bytes of a flow's slots, and of its receive buffers, if not given

u32 in_range(const std::string& setting, u32 value, u32 low, u32 high) {
  if (value < low || value > high) throw Error(setting, fmt::format("{} is not in {}..{}", value, low, high));
  return value;
}

}  // namespace

RoceShape roce_shape(const StreamRequest& r) {
  constexpr u64 kLine = 64;
  RoceShape s;
  s.payload_bytes = in_range(setting::payload, r.payload_bytes, kHeaderBytes, rdma::kMaxMessage);
  s.stride = (u64{r.payload_bytes} + kLine - 1) / kLine * kLine;
  const u64 fit = kBuffers / s.stride;
  s.tx_depth = in_range("depth of send queues", r.tx_depth, 2, kMostDepth);
  const u32 deep = static_cast<u32>(std::clamp<u64>(fit, 2, kDepth));
  s.rx_depth = r.rx_depth == 0 ? deep : in_range("depth of receive queues", r.rx_depth, 1, kMostDepth);
  // One request beyond the window is that of the flow's end.
  const u32 most = std::min(kMostWindow, s.tx_depth - 1);
  const u32 window = std::clamp(s.rx_depth / 2, 1u, 32u);
  s.window = r.window == 0 ? std::min(window, most) : in_range("window", r.window, 1, most);
  s.signal_every = r.signal_every == 0 ? std::max(s.window / 4, 1u)
                                       : in_range("messages a completion", r.signal_every, 1, s.window);
  s.slots = static_cast<u32>(std::clamp<u64>(fit, s.window + 1, kTemplates));
  if (!(r.timeout_s > 0 && r.timeout_s <= 86400))
    throw Error("timeout", fmt::format("{} s are not in 0..86400", r.timeout_s));
  s.timeout_ns = static_cast<u64>(r.timeout_s * 1e9);
  return s;
}

}  // namespace doorbell::net
