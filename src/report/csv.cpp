// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "report/csv.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "report/file.hpp"

namespace doorbell::report {

namespace {

constexpr std::array kColumns{"path",        "cell_index",  "repeat",     "initiator",   "gpu",
                              "device_kind", "device_name", "parameters", "verify_mode", "seed",
                              "ops_per_s",   "bytes_per_s", "p50_ns",     "p99_ns",      "p99_9_ns",
                              "errors",      "warnings"};

std::string field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

// The shortest text that reads back as the same double; fmt ignores the locale.
std::string figure(std::optional<double> v) {
  return v && std::isfinite(*v) ? fmt::format("{}", *v) : std::string();
}

std::string line(std::span<const std::string> fields) {
  std::string out;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (i != 0) out += ',';
    out += field(fields[i]);
  }
  return out + '\n';
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == ';' || c == '=' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

using Json = nlohmann::ordered_json;

// A member of a JSON object as T; what is absent, null or of another type is T's zero.
template <typename T>
T get(const Json& object, const char* key) {
  if (!object.is_object()) return {};
  const auto found = object.find(key);
  if (found == object.end()) return {};
  try {
    // An integer beyond 2^53 - 1 is text (json.cpp).
    if constexpr (std::is_same_v<T, u64>)
      if (found->is_string()) {
        const auto& digits = found->template get_ref<const std::string&>();
        u64 value = 0;
        std::from_chars(digits.data(), digits.data() + digits.size(), value);
        return value;
      }
    return found->template get<T>();
  } catch (const Json::exception&) {
    return {};
  }
}
std::optional<double> measured(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

// The parts of a cell that the rows show.
Cell shown(const Json& json) {
  Cell c;
  c.path = get<std::string>(json, "path");
  c.cell = get<Json>(json, "cell");
  c.initiator_kind = get<std::string>(get<Json>(json, "initiator"), "kind");
  const Json gpu = get<Json>(get<Json>(json, "initiator"), "gpu");
  if (gpu.is_number_integer()) c.gpu = gpu.get<int>();
  c.device_kind = get<std::string>(get<Json>(json, "device"), "kind");
  c.device_name = get<std::string>(get<Json>(json, "device"), "name");
  const Json metrics = get<Json>(json, "metrics");
  c.metrics.ops_per_s = get<double>(metrics, "ops_per_s");
  c.metrics.bytes_per_s = get<double>(metrics, "bytes_per_s");
  const Json latency = get<Json>(metrics, "latency_ns");
  c.metrics.latency_ns.p50 = measured(latency, "p50");
  c.metrics.latency_ns.p99 = measured(latency, "p99");
  c.metrics.latency_ns.p99_9 = measured(latency, "p99_9");
  const Json verify = get<Json>(json, "verify");
  c.verify.mode = get<std::string>(verify, "mode");
  for (const auto& [kind, count] : Verify::kFailures) c.verify.*count = get<u64>(verify, kind);
  c.errors = get<Counts>(json, "errors");
  for (const Json& r : get<Json>(json, "repeats")) {
    c.repeats.push_back({.seed = get<u64>(r, "seed"),
                         .ops_per_s = get<double>(r, "ops_per_s"),
                         .bytes_per_s = get<double>(r, "bytes_per_s"),
                         .mean_ns = measured(r, "mean_ns"),
                         .p50_ns = measured(r, "p50_ns"),
                         .p99_ns = measured(r, "p99_ns"),
                         .p99_9_ns = measured(r, "p99_9_ns"),
                         .errors = get<u64>(r, "errors")});
  }
  return c;
}

std::string rows_of(const Cell& c, std::size_t index, const std::string& before, const std::string& warnings);

}  // namespace

std::string csv_header() {
  const std::vector<std::string> names(kColumns.begin(), kColumns.end());
  return line(names);
}

std::string csv_rows(const Cell& c, std::size_t index, const std::string& warnings) {
  return rows_of(c, index, "", warnings);
}

std::string csv_rows(const Json& cell, std::size_t index, const std::string& before,
                     const std::string& warnings) {
  return rows_of(shown(cell), index, before, warnings);
}

std::string warnings_field(const Json& warnings) {
  std::string out;
  if (!warnings.is_array()) return out;
  for (const Json& w : warnings)
    if (w.is_string()) out += (out.empty() ? "" : "; ") + w.get<std::string>();
  return out;
}

namespace {

std::string rows_of(const Cell& c, std::size_t index, const std::string& before,
                    const std::string& warnings) {
  const auto row = [&](const std::string& repeat, const std::string& seed, const Repeat& r) {
    const std::array<std::string, kColumns.size()> fields{c.path,
                                                          std::to_string(index),
                                                          repeat,
                                                          c.initiator_kind,
                                                          c.gpu ? std::to_string(*c.gpu) : "",
                                                          c.device_kind,
                                                          c.device_name,
                                                          parameters_of(c.cell),
                                                          c.verify.mode,
                                                          seed,
                                                          figure(r.ops_per_s),
                                                          figure(r.bytes_per_s),
                                                          figure(r.p50_ns),
                                                          figure(r.p99_ns),
                                                          figure(r.p99_9_ns),
                                                          std::to_string(r.errors),
                                                          warnings};
    return before + line(fields);
  };
  if (c.repeats.empty()) {
    Repeat whole;
    whole.ops_per_s = c.metrics.ops_per_s;
    whole.bytes_per_s = c.metrics.bytes_per_s;
    whole.p50_ns = c.metrics.latency_ns.p50;
    whole.p99_ns = c.metrics.latency_ns.p99;
    whole.p99_9_ns = c.metrics.latency_ns.p99_9;
    whole.errors = c.verify.failed();
    for (const auto& [kind, count] : c.errors) whole.errors += count;
    return row("", "", whole);
  }
  std::string out;
  for (std::size_t i = 0; i < c.repeats.size(); ++i) {
    out += row(std::to_string(i), std::to_string(c.repeats[i].seed), c.repeats[i]);
  }
  return out;
}

}  // namespace

std::string to_csv(const Result& result) {
  std::string out = csv_header();
  const std::string warnings = warnings_field(Json(result.warnings));
  for (std::size_t i = 0; i < result.cells.size(); ++i) out += csv_rows(result.cells[i], i, warnings);
  return out;
}

void write_csv(const Result& result, const std::string& path) {
  write_file(path, to_csv(result));
}

std::string parameters_of(const nlohmann::ordered_json& cell, const std::string& separator) {
  std::string out;
  if (!cell.is_object()) return out;
  for (const auto& [key, value] : cell.items()) {
    if (!out.empty()) out += separator;
    const std::string text =
        value.is_string() ? value.get<std::string>()
                          : value.dump(-1, ' ', true, nlohmann::ordered_json::error_handler_t::replace);
    out += escaped(key) + "=" + escaped(text);
  }
  return out;
}

}  // namespace doorbell::report
