// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "sweep/samples.hpp"

#include <algorithm>
#include <doorbell/error.hpp>
#include <filesystem>
#include <fmt/format.h>

#include "report/csv.hpp"
#include "report/json.hpp"
#include "sweep/record.hpp"
#include "sweep/text_file.hpp"

namespace doorbell::sweep {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

std::string word(const Json& cell, const char* object, const char* key) {
  const auto outer = cell.find(object);
  if (outer == cell.end() || !outer->is_object()) return "";
  const auto inner = outer->find(key);
  return inner != outer->end() && inner->is_string() ? inner->get<std::string>() : "";
}

double count_in(const Json& cell, const char* object) {
  const auto counts = cell.find(object);
  double sum = 0;
  if (counts == cell.end() || !counts->is_object()) return sum;
  for (const auto& [name, count] : counts->items()) {
    const bool failure = name != "checked" && name != "checked_bytes" && name != "unverifiable";
    if (failure && count.is_number()) sum += count.get<double>();
  }
  return sum;
}

/// Path, parameters and the way ("beside"): the device is not part of it, so that two devices can be
/// compared.
std::string key_of(const Json& cell, const Json& options) {
  const Json parameters = options.is_null() ? cell.value("cell", Json::object()) : options;
  std::string key = fmt::format("{} {}", cell.value("path", ""), report::parameters_of(parameters, " "));
  const std::string way = word(cell, "beside", "label");
  return way.empty() ? key : fmt::format("{} way={}", key, way);
}

void add_repeats(const Json& cell, Samples* to) {
  const auto repeats = cell.find("repeats");
  if (repeats == cell.end() || !repeats->is_array()) return;
  for (const Json& repeat : *repeats) {
    for (const std::string& metric : metric_names()) {
      const bool there = repeat.is_object() && repeat.contains(metric) && repeat[metric].is_number();
      to->metrics[metric].push_back(there ? std::optional(repeat[metric].get<double>()) : std::nullopt);
    }
  }
}

void add_lines(const std::string& path, Measured* to) {
  const std::string text = read_text(path);
  const Json first = Json::parse(text.substr(0, text.find('\n')), nullptr, false);
  if (first.is_object() && first.value("schema", "") == kRecordSchema) {
    std::vector<Record> records = parse_records(text, path).list;
    // By round, so that the same repeats meet whatever the order was.
    std::ranges::stable_sort(records, {}, [](const Record& r) { return std::pair(r.round, r.cell); });
    for (const Record& r : records) {
      if (r.result.is_object()) add_result(r.result, path, to, r.options);
      else ++to->without_result;
    }
    return;
  }
  int number = 0;
  for (std::size_t at = 0; at < text.size(); ++number) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    if (end > at)
      add_result(Json::parse(text.substr(at, end - at)), fmt::format("{}:{}", path, number + 1), to);
    at = end + 1;
  }
}

void add_file(const std::string& path, Measured* to) {
  try {
    if (path.ends_with(".jsonl")) add_lines(path, to);
    else add_result(Json::parse(read_text(path)), path, to);
  } catch (const Json::exception& e) {
    throw Error(path, fmt::format("no result file: {}", e.what()));
  }
}

void add_folder(const std::string& path, Measured* to) {
  std::error_code ignored;
  const std::string sweep = path + "/results.jsonl";
  if (fs::exists(sweep, ignored)) return add_file(sweep, to);
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(path, ignored)) {
    const std::string file = entry.path().string();
    if (!entry.is_regular_file(ignored) || !(file.ends_with(".json") || file.ends_with(".jsonl"))) continue;
    if (read_text(file).find(report::kSchema) != std::string::npos) files.push_back(file);
  }
  std::ranges::sort(files);
  for (const std::string& file : files) add_file(file, to);
}

}  // namespace

const std::vector<std::string>& metric_names() {
  static const std::vector<std::string> names = {"ops_per_s", "bytes_per_s", "mean_ns",
                                                 "p50_ns",    "p99_ns",      "p99_9_ns"};
  return names;
}

bool more_is_better(const std::string& metric) {
  return metric.ends_with("_per_s");
}

void add_result(const Json& result, const std::string& name, Measured* to, const Json& options) {
  if (!result.is_object() || result.value("schema", "") != report::kSchema)
    throw Error(name, fmt::format("its schema is not {}", report::kSchema));
  const auto cells = result.find("cells");
  if (cells == result.end() || !cells->is_array()) throw Error(name, "it has no cells");
  for (const Json& cell : *cells) {
    if (!cell.is_object()) throw Error(name, "a cell is no object");
    const std::string key = key_of(cell, options);
    const auto [at, fresh] = to->cells.try_emplace(key);
    Samples& samples = at->second;
    if (fresh) {
      to->order.push_back(key);
      samples.label = key;
      samples.measured_on =
          fmt::format("{}, initiator {}", word(cell, "device", "kind"), word(cell, "initiator", "kind"));
      samples.git = word(result, "tool", "git");
    }
    add_repeats(cell, &samples);
    samples.errors += count_in(cell, "errors") + count_in(cell, "verify");
  }
}

Measured load_measured(const std::string& path) {
  Measured measured;
  measured.name = path;
  std::error_code error;
  if (fs::is_directory(path, error)) add_folder(path, &measured);
  else add_file(path, &measured);
  if (measured.cells.empty()) throw Error(path, "it holds no measured cell");
  return measured;
}

}  // namespace doorbell::sweep
