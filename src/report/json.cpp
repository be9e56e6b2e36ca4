// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "report/json.hpp"

#include <doorbell/error.hpp>

#include <algorithm>
#include <cmath>

#include "report/file.hpp"
#include "report/notable.hpp"
#include "report/tool.hpp"

namespace doorbell::report {

namespace {

using Json = nlohmann::ordered_json;

Json number(double v) {
  return std::isfinite(v) ? Json(v) : Json(nullptr);
}
Json number(const std::optional<double>& v) {
  return v ? number(*v) : Json(nullptr);
}

// Readers that keep all numbers as doubles (JavaScript, jq, data frames) have no other whole numbers.
constexpr u64 kMostExact = (u64{1} << 53) - 1;

// A copy that any reader of JSON gets right: null for every number that is not finite, and the digits as text
// for every integer that a double would round.
Json readable(const Json& in) {
  if (in.is_number_float()) return number(in.get<double>());
  if (in.is_number_unsigned() && in.get<u64>() > kMostExact) return std::to_string(in.get<u64>());
  if (!in.is_structured()) return in;
  Json out = in.is_array() ? Json::array() : Json::object();
  for (const auto& [key, value] : in.items()) {
    if (in.is_array()) {
      out.push_back(readable(value));
    } else {
      out[key] = readable(value);
    }
  }
  return out;
}

Json object_or_empty(const Json& in) {
  return in.is_null() ? Json::object() : in;
}

Json latency(const Latency& l) {
  Json out{{"count", l.count},           {"min", number(l.min)}, {"mean", number(l.mean)},
           {"std", number(l.std)},       {"p50", number(l.p50)}, {"p90", number(l.p90)},
           {"p95", number(l.p95)},       {"p99", number(l.p99)}, {"p99_9", number(l.p99_9)},
           {"p99_99", number(l.p99_99)}, {"max", number(l.max)}, {"bins", Json::array()}};
  Json& bins = out["bins"];
  for (const auto& [lower, count] : l.bins) bins.push_back(Json::array({lower, count}));
  if (const u64 beyond = beyond_range(l)) out["beyond_range"] = beyond;
  return out;
}

Json substeps(const Substeps& s) {
  return {{"payload", number(s.payload)}, {"build", number(s.build)},
          {"enqueue", number(s.enqueue)}, {"sq_doorbell", number(s.sq_doorbell)},
          {"cq_poll", number(s.cq_poll)}, {"cq_doorbell", number(s.cq_doorbell)},
          {"total", number(s.total)}};
}

Json repeats(const std::vector<Repeat>& list) {
  Json out = Json::array();
  for (const Repeat& r : list) {
    out.push_back({{"seed", r.seed},
                   {"ops_per_s", number(r.ops_per_s)},
                   {"bytes_per_s", number(r.bytes_per_s)},
                   {"mean_ns", number(r.mean_ns)},
                   {"p50_ns", number(r.p50_ns)},
                   {"p99_ns", number(r.p99_ns)},
                   {"p99_9_ns", number(r.p99_9_ns)},
                   {"errors", r.errors}});
  }
  return out;
}

Json spread(const std::map<std::string, Spread>& by_metric) {
  Json out = Json::object();
  for (const auto& [metric, s] : by_metric) {
    out[metric] = {
        {"median", number(s.median)},     {"ci_low", number(s.ci_low)}, {"ci_high", number(s.ci_high)},
        {"ci_level", number(s.ci_level)}, {"min", number(s.min)},       {"max", number(s.max)},
        {"mean", number(s.mean)},         {"std", number(s.std)},       {"noisy", s.noisy},
        {"outliers", s.outliers}};
  }
  return out;
}

Json verify(const Verify& v) {
  Json out{{"mode", v.mode},
           {"checked", v.checked},
           {"checked_bytes", v.checked_bytes},
           {"unverifiable", v.unverifiable}};
  for (const auto& [kind, count] : Verify::kFailures) out[kind] = v.*count;
  out["first"] = Json::array();
  for (const Verify::Occurrence& o : v.first) {
    out["first"].push_back({{"kind", o.kind}, {"address", o.address}, {"sequence", o.sequence}});
  }
  return out;
}

Json errors(const Counts& counts) {
  Json out{{"completion", 0u}, {"timeout", 0u}};
  for (const auto& [kind, count] : counts) out[kind] = count;
  return out;
}

Json cost(const Cost& c) {
  Json out{{"cpu_user_s", number(c.cpu_user_s)},
           {"cpu_system_s", number(c.cpu_system_s)},
           {"cpu_ns_per_op", number(c.cpu_ns_per_op)},
           {"threads", Json::array()},
           {"gpu_sm_percent", number(c.gpu_sm_percent)},
           {"doorbells_per_op", number(c.doorbells_per_op)},
           {"polls_per_completion", number(c.polls_per_completion)}};
  if (c.elapsed_s) out["elapsed_s"] = number(c.elapsed_s);
  if (c.checking)
    out["checking"] = {{"cpu_ns_per_op", number(c.checking->cpu_ns_per_op)},
                       {"useful_share", number(c.checking->useful_share)}};
  for (const Cost::Thread& t : c.threads) {
    out["threads"].push_back({{"name", t.name}, {"cpu_s", number(t.cpu_s)}});
  }
  return out;
}

Json cell(const Cell& c) {
  Json out{{"path", c.path},
           {"operation", c.operation},
           {"cell", object_or_empty(c.cell)},
           {"options", object_or_empty(c.options)},
           {"initiator", {{"kind", c.initiator_kind}, {"gpu", c.gpu ? Json(*c.gpu) : Json(nullptr)}}},
           {"device", {{"kind", c.device_kind}, {"name", c.device_name}}},
           {"metrics", to_json(c.metrics)},
           {"substeps_ns", substeps(c.substeps_ns)},
           {"repeats", repeats(c.repeats)},
           {"spread", spread(c.spread)},
           {"verify", verify(c.verify)},
           {"errors", errors(c.errors)},
           {"cost", cost(c.cost)}};
  const auto refuse = [&](const std::string& key, const std::string& why) {
    throw Error("result of path " + c.path + ", key '" + key + "'", why);
  };
  for (const auto& [key, value] : c.extra.items()) {
    if (out.contains(key)) refuse(key, "is one of the keys that every path shares");
    if (!value.is_object()) refuse(key, "a path's own key holds an object");
    out[key] = value;
  }
  if (!c.parts.empty() && !out.contains(c.path)) out[c.path] = Json::object();
  for (const auto& [name, metrics] : c.parts) {
    if (out[c.path].contains(name)) refuse(c.path + "." + name, "is given twice");
    out[c.path][name] = to_json(metrics);
  }
  return readable(out);
}

constexpr auto kReplace = Json::error_handler_t::replace;  // an argv need not be UTF-8

bool holds_objects(const Json& array) {
  return std::ranges::any_of(
      array, [](const Json& v) { return v.is_object() || (v.is_array() && holds_objects(v)); });
}

void append(std::string& out, const Json& json, std::size_t indent) {
  const bool object = json.is_object();
  if (!json.is_structured() || json.empty() || (!object && !holds_objects(json))) {
    out += json.dump(-1, ' ', true, kReplace);
    return;
  }
  out += object ? '{' : '[';
  bool first = true;
  for (const auto& [key, value] : json.items()) {
    out += first ? "\n" : ",\n";
    first = false;
    out.append(indent + 2, ' ');
    if (object) out += Json(key).dump(-1, ' ', true, kReplace) + ": ";
    append(out, value, indent + 2);
  }
  out += '\n';
  out.append(indent, ' ');
  out += object ? '}' : ']';
}

}  // namespace

Json to_json(const Metrics& m) {
  return {{"ops", m.ops},
          {"bytes", m.bytes},
          {"elapsed_s", number(m.elapsed_s)},
          {"ops_per_s", number(m.ops_per_s)},
          {"bytes_per_s", number(m.bytes_per_s)},
          {"latency_ns", latency(m.latency_ns)}};
}

Json to_json(const Result& r) {
  const Tool& t = tool();
  Json out{{"schema", kSchema},
           {"tool",
            {{"name", t.name},
             {"version", t.version},
             {"git", t.git},
             {"build", t.build},
             {"compiler", t.compiler},
             {"sanitizer", t.sanitizer.empty() ? Json(nullptr) : Json(t.sanitizer)}}},
           {"argv", r.argv},
           {"environment", readable(object_or_empty(r.environment))},
           {"complete", r.complete()},
           {"stop_reason", name(r.stop_reason)},
           {"exit_code", r.exit_code},
           {"warnings", r.warnings},
           {"cells", Json::array()}};
  for (const Cell& c : r.cells) out["cells"].push_back(cell(c));
  for (const FaultFinding& f : r.faults)
    out["faults"].push_back({{"path", f.path},
                             {"fault", f.fault},
                             {"injected", readable(f.injected)},
                             {"found", readable(f.found)},
                             {"found_as", f.found_as}});
  return out;
}

std::string to_string(const Json& json) {
  std::string out;
  append(out, json, 0);
  out += '\n';
  return out;
}

std::string to_line(const Json& json) {
  return json.dump(-1, ' ', true, kReplace) + "\n";
}

void write_json(const Result& result, const std::string& path) {
  write_file(path, to_string(to_json(result)));
}

}  // namespace doorbell::report
