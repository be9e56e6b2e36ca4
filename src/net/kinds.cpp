// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The streams, and the engines of raw frames. A new one is a line here, and a folder that says what it is.
#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <algorithm>

#include "net/bench/bench.hpp"
#include "net/dpdk/engine.hpp"
#include "net/raw/engines.hpp"
#include "net/roce/roce.hpp"
#include "net/settings.hpp"
#include "net/sockets/sockets.hpp"
#include "options/enumeration.hpp"

namespace doorbell::net {

const std::vector<const StreamKind*>& stream_kinds() {
  static const std::vector<const StreamKind*> all = {&tcp_stream(),  &udp_stream(),       &roce_stream(),
                                                     &ring_engine(), &af_packet_engine(), &af_xdp_engine(),
                                                     &dpdk_engine()};
  return all;
}

std::vector<std::string> stream_names(const WhichKinds& which) {
  std::vector<std::string> names;
  for (const StreamKind* k : stream_kinds())
    if (const std::string name = k->frames ? kRawFrames : k->name;
        which(*k) && std::ranges::find(names, name) == names.end())
      names.push_back(name);
  return names;
}

std::vector<std::string> engine_names() {
  std::vector<std::string> names;
  for (const StreamKind* k : stream_kinds())
    if (k->frames) names.push_back(k->name);
  return names;
}

std::string kinds_that(const WhichKinds& can) {
  std::vector<std::string> all;
  for (const StreamKind* k : stream_kinds())
    if (can(*k)) all.push_back(fmt::format("{} {}", k->frames ? setting::engine : setting::stream, k->name));
  return options::enumeration(all, "and");
}

namespace {

/// The best engine for raw frames over a link: memory has its own ring, interfaces have AF_PACKET, which on
/// veth is faster than AF_XDP; ports without an interface have only DPDK.
std::string best_engine(const std::string& link) {
  const std::string kind = link.substr(0, link.find(':'));
  if (kind == "ring") return "ring";
  if (kind == "memif" || kind == "null" || kind == "tap" ||
      (link.find(':') != std::string::npos && link.find('.') != std::string::npos && kind != "veth"))
    return "dpdk";
  return "af_packet";
}

const StreamKind& find(bool frames, const std::string& name, const std::string& setting) {
  for (const StreamKind* k : stream_kinds())
    if (k->frames == frames && k->name == name) return *k;
  const auto names = frames ? engine_names() : stream_names([](const StreamKind& k) { return !k.frames; });
  throw Error(setting, fmt::format("'{}' is none of {}", name, options::enumeration(names, "and")));
}

}  // namespace

const StreamKind& find_kind(const std::string& stream, const std::string& engine, const std::string& link) {
  if (stream != kRawFrames) return find(false, stream, setting::stream);
  const std::string named = engine.empty() ? best_engine(link) : engine;
  return find(true, named.substr(0, named.find(':')), setting::engine);
}

void check_abilities(const StreamKind& kind, bool split, Steering steering) {
  if (split && !kind.splits)
    throw Error(setting::split, fmt::format("{} does not put header and data into two places", kind.name),
                fmt::format("these do: {} (dpdk with a NIC that can)", kinds_that(&StreamKind::splits)));
  if (steering == Steering::rss && !kind.rss)
    throw Error(setting::rss, fmt::format("{} has no hash to choose queues by", kind.name),
                "it goes with " + kinds_that(&StreamKind::rss));
}

const StreamKind& kind_of(const BenchOptions& o) {
  return find_kind(o.stream, o.engine, o.link);
}

}  // namespace doorbell::net
