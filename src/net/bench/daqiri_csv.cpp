// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/bench/daqiri_csv.hpp"

#include <fmt/format.h>

#include "net/stream.hpp"

namespace doorbell::net {

namespace {

using Json = nlohmann::ordered_json;

/// Their names of what carries the packets.
std::string backend_of(const Json& cell) {
  const StreamKind& kind = find_kind(cell.at("stream"), cell.value("engine", ""), "");
  return kind.rdma ? "rdma" : kind.sockets ? "socket-" + kind.name : kind.name;
}

std::string layers_of(const Json& drops) {
  std::string layers;
  for (const auto& [layer, n] : drops.items())
    if (n.is_number() && n.get<double>() > 0) layers += (layers.empty() ? "" : "+") + layer;
  return layers.empty() ? "none" : layers;
}

/// Empty where it was not measured.
std::string percent_of(const Json& repeat, const char* key) {
  const auto at = repeat.find(key);
  return at != repeat.end() && at->is_number() ? fmt::format("{:.1f}", at->get<double>()) : "";
}

}  // namespace

std::string daqiri_csv(const std::vector<report::Cell>& cells) {
  std::string out =
      "lang,backend,post_process,payload,batch,pairs,target_gbps,rep,seconds,packets,bytes,pps,gbps,rx_gbps,drops,drops_kind,"
      "cpu_master_pct,cpu_tx_pct,cpu_rx_pct,gpu_sm_pct,gpu_mem_pct,post_process_batch\n";
  for (const report::Cell& cell : cells) {
    const Json net = cell.extra.value("net", Json::object());
    if (!net.contains("repeats")) continue;
    const u64 payload = cell.cell.at("payload_bytes");
    u32 rep = 0;
    for (const Json& r : net.at("repeats")) {
      const u64 sent = r.at("sent"), unique = r.at("unique");
      const double seconds = r.at("seconds");
      out += fmt::format(
          "cpp,{},{},{},{},{},{:g},{},{:.6f},{},{},{:.1f},{:.4f},{:.4f},{},{},{},{:.1f},{:.1f},{},{},{}\n",
          backend_of(cell.cell), cell.cell.value("workload", "none"), payload,
          cell.cell.at("batch_packets").get<u64>(), cell.cell.at("tx_queues").get<u64>(),
          cell.cell.value("target_gbps", 0.0), ++rep, seconds, sent, sent * payload,
          seconds > 0 ? static_cast<double>(sent) / seconds : 0, r.at("tx_gbps").get<double>(),
          r.at("rx_gbps").get<double>(), sent > unique ? sent - unique : 0, layers_of(cell.extra.at("drops")),
          percent_of(r, "master_busy_percent"), r.at("tx_busy_percent").get<double>(),
          r.at("rx_busy_percent").get<double>(), percent_of(r, "gpu_sm_percent"),
          percent_of(r, "gpu_memory_percent"),
          cell.cell.contains("workload_batch_bytes") ? cell.cell["workload_batch_bytes"].dump() : "");
    }
  }
  return out;
}

}  // namespace doorbell::net
