// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "cxi/loopback_cell.hpp"

#include <doorbell/gpu.hpp>
#include <fmt/format.h>

#include <algorithm>

#include "measure/tally.hpp"

namespace doorbell::cxi {

namespace {

using Kind = LoopbackFailure::Kind;

report::Metrics metrics_of(const LoopbackOptions& o, const LoopbackPart& part) {
  const u64 ops = part.iterations * o.puts;
  return measure::metrics_of(ops, ops * o.bytes, static_cast<double>(part.elapsed_ns) * 1e-9);
}

const char* place_of(const LoopbackBuffer& b) {
  switch (b.place) {
    case Place::gpu:
      return "vram";
    case Place::huge_2m:
      return "host, 2 MiB pages";
    case Place::huge_1g:
      return "host, 1 GiB pages";
    default:
      return "host";
  }
}

nlohmann::ordered_json gpu_of(const LoopbackBuffer& b) {
  if (b.place != Place::gpu || !b.gpu) return nullptr;
  return {{"index", b.gpu->info().index},
          {"name", b.gpu->info().name},
          {"pci_address", b.gpu->info().pci_address}};
}

void count_errors(report::Cell& cell, const LoopbackResult& r) {
  const auto ended_by = [&](Kind kind) { return r.failure && r.failure->kind == kind ? u64{1} : u64{0}; };
  cell.errors = {{"completion", r.refused + ended_by(Kind::bad_return_code)},
                 {"timeout", std::max(r.lost, ended_by(Kind::timeout))},
                 {"queue_full", ended_by(Kind::queue_full)},
                 {"removal", ended_by(Kind::removed)},
                 {"protocol", r.unexpected}};
}

void describe_failure(nlohmann::ordered_json& extra, const LoopbackFailure& f) {
  extra["acknowledgements"] = {
      {"threshold", f.threshold},
      {"success", f.counts.valid ? nlohmann::ordered_json(f.counts.success) : nullptr},
      {"failure", f.counts.valid ? nlohmann::ordered_json(f.counts.failure) : nullptr},
      {"events_dropped", f.events_dropped}};
}

}  // namespace

StopReason stop_reason(const LoopbackResult& result) {
  if (result.failure) {
    if (result.failure->kind == Kind::removed) return StopReason::removed;
    const bool late = result.failure->kind == Kind::timeout || result.failure->kind == Kind::queue_full;
    return late ? StopReason::timeout : StopReason::broken;
  }
  return result.interrupted ? StopReason::requested : StopReason::done;
}

report::Cell loopback_cell(const LoopbackOptions& o, u32 service, const LoopbackResult& r,
                           CassiniDevice& device, std::vector<std::string>& warnings) {
  report::Cell cell;
  cell.path = "cxi";
  cell.cell = {{"op", "put"},
               {"size_bytes", o.bytes},
               {"puts_per_iteration", o.puts},
               {"by", o.duration_us > 0 ? "duration" : "iterations"},
               {"service", service},
               {"source_memory", place_of(o.source)},
               {"destination_memory", place_of(o.destination)}};
  cell.device_kind = device.kind();
  cell.device_name = device.name();
  nlohmann::ordered_json& extra = cell.extra["cxi"];
  extra["payload_bytes_per_packet"] = kMtu;
  extra["submitted"] = r.submitted;
  extra["source_gpu"] = gpu_of(o.source);
  extra["destination_gpu"] = gpu_of(o.destination);
  std::vector<measure::RepeatFigures> repeats;
  for (const LoopbackPart& p : r.repeats)
    repeats.push_back({o.seed,
                       metrics_of(o, p),
                       0,
                       {{.name = "initiator", .user_s = p.cpu_user_s, .system_s = p.cpu_system_s}}});
  for (std::string& w : measure::add_repeats(cell, repeats)) warnings.push_back(std::move(w));
  if (!r.repeats.empty()) {
    const double packets = o.bytes == 0 ? 0 : (o.bytes - 1) / kMtu + 1;
    extra["iterations"] = r.repeats[measure::median_repeat(cell.repeats)].iterations;
    extra["bits_per_s"] = cell.metrics.bytes_per_s * 8;
    extra["packets_per_s"] = cell.metrics.ops_per_s * packets;
    if (r.submitted > 0) {
      cell.cost.doorbells_per_op = static_cast<double>(r.doorbells) / static_cast<double>(r.submitted);
      cell.cost.polls_per_completion = static_cast<double>(r.polls) / static_cast<double>(r.submitted);
    }
  }
  if (r.steady) {
    const report::Metrics m = metrics_of(o, *r.steady);
    extra["steady"] = {{"iterations", r.steady->iterations},
                       {"elapsed_s", m.elapsed_s},
                       {"ops_per_s", m.ops_per_s},
                       {"bytes_per_s", m.bytes_per_s}};
  }
  if (r.failure) describe_failure(extra, *r.failure);
  extra["completion_statuses"] = r.statuses;
  cell.verify = r.verify;
  cell.verify.mode = !o.verify || r.submitted == 0
                         ? "none"
                         : fmt::format("sample={:.3g}", static_cast<double>(r.verify.checked) /
                                                            static_cast<double>(r.submitted));
  count_errors(cell, r);
  if (auto counters = device.counters(); !counters.is_null()) cell.extra[device.kind()] = std::move(counters);
  return cell;
}

}  // namespace doorbell::cxi
