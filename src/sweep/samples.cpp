// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "sweep/samples.hpp"

#include <algorithm>
#include <doorbell/error.hpp>
#include <filesystem>
#include <fmt/format.h>
#include <functional>

#include "measure/statistics.hpp"
#include "report/csv.hpp"
#include "report/json.hpp"
#include "report/result.hpp"
#include "sweep/json_text.hpp"
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

/// A value as one line of text.
std::string plain(const Json& value) {
  return value.is_string() ? value.get<std::string>()
                           : value.dump(-1, ' ', true, Json::error_handler_t::replace);
}

/// Keys of a Result's cells. If a plan's options are the same for several cells (a list of sizes is one
/// option), the cells' own parameters distinguish them.
std::vector<CellKey> keys_of(const Json& cells, const Json& options) {
  std::vector<CellKey> keys;
  std::map<std::string, int> uses;
  for (const Json& cell : cells) {
    keys.push_back({.path = cell.value("path", ""),
                    .parameters = options.is_null() ? cell.value("cell", Json::object()) : options,
                    .way = word(cell, "beside", "label")});
    ++uses[keys.back().text()];
  }
  for (std::size_t i = 0; i < keys.size(); ++i)
    if (!options.is_null() && uses[keys[i].text()] > 1) keys[i].own = cells[i].value("cell", Json::object());
  return keys;
}

/// The options on a Result's command line.
std::set<std::string> given_options(const Json& result) {
  std::set<std::string> given;
  const auto argv = result.find("argv");
  if (argv == result.end() || !argv->is_array()) return given;
  for (const Json& word : *argv) {
    if (!word.is_string() || !word.get<std::string>().starts_with("--")) continue;
    const std::string text = word.get<std::string>().substr(2);
    given.insert(text.substr(0, text.find('=')));
  }
  return given;
}

std::string group_of(const Json& options) {
  return report::parameters_of(options, " ");
}

/// Adds the counters that count failures; true if one is not 0.
bool add_failures(const Json& cell, const char* object, Samples* to) {
  const auto counts = cell.find(object);
  if (counts == cell.end() || !counts->is_object()) return false;
  bool any = false;
  for (const auto& [name, count] : counts->items()) {
    const bool failure = name != "checked" && name != "checked_bytes" && name != "unverifiable";
    if (!failure || !count.is_number() || count.get<double>() == 0) continue;
    to->failures[name] += count.get<double>();
    any = true;
  }
  to->bad_data = to->bad_data || any;
  return any;
}

/// Adds one run: for each metric, the median of its repeats.
void add_run(const std::vector<const Json*>& repeats, Samples* to) {
  ++to->runs;
  for (const std::string& metric : metric_names()) {
    std::vector<double> values;
    for (const Json* repeat : repeats)
      if (repeat->is_object() && repeat->contains(metric) && (*repeat)[metric].is_number())
        values.push_back((*repeat)[metric].get<double>());
    to->metrics[metric].push_back(values.empty() ? std::nullopt : std::optional(measure::median(values)));
    std::vector<double>& all = to->repeats[metric];
    all.insert(all.end(), values.begin(), values.end());
  }
  if (repeats.empty()) ++to->failures["runs without a repeat"];
}

void add_cell_facts(const Json& cell, Facts* to) {
  const auto both = [&](const char* object, const char* first, const char* second) {
    const Json& o = cell.contains(object) ? cell[object] : Json();
    std::string text;
    for (const char* key : {first, second})
      if (o.is_object() && o.contains(key) && !o[key].is_null())
        text += (text.empty() ? "" : " ") + plain(o[key]);
    return text;
  };
  (*to)["device"].insert(both("device", "kind", "name"));
  (*to)["initiator"].insert(both("initiator", "kind", "gpu"));
  (*to)["verify mode"].insert(word(cell, "verify", "mode"));
  const auto options = cell.find("options");
  if (options == cell.end() || !options->is_object()) return;
  for (const auto& [name, value] : options->items())
    if (!is_output(name) && name != "units") (*to)["option " + name].insert(plain(value));
}

/// Adds the build, and those facts of the machine that do not change between runs.
void add_facts(const Json& result, Facts* to) {
  const auto add = [&](const char* object, const char* key, const char* title) {
    const auto outer = result.find(object);
    if (outer == result.end() || !outer->is_object() || !outer->contains(key)) return;
    (*to)[title].insert(plain((*outer)[key]));
  };
  add("tool", "version", "version");
  add("tool", "git", "git");
  add("tool", "build", "build");
  add("tool", "compiler", "compiler");
  add("tool", "sanitizer", "sanitizer");
  for (const char* key : {"cpu", "sockets", "cores", "cpus_allowed", "cpus_isolated", "smt", "governor",
                          "turbo", "memory_bytes", "transparent_hugepages", "clocksource", "kernel",
                          "kernel_cmdline", "distribution", "container", "hypervisor", "cgroup", "gpu"})
    add("environment", key, key);
}

/// Removes numbers, so that "load average 1.25 on 2 CPUs" and "load average 0.80 on 2 CPUs" are one warning.
std::string without_numbers(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit) out += c;
    else if (out.empty() || out.back() != '#') out += '#';
  }
  return out;
}

void add_warnings(const Json& result, Measured* to) {
  const auto warnings = result.find("warnings");
  if (warnings == result.end() || !warnings->is_array()) return;
  for (const Json& warning : *warnings) {
    const std::string text = plain(warning);
    Warning& w = to->warnings.try_emplace(without_numbers(text), Warning{.text = text}).first->second;
    ++w.count;
  }
}

/// Adds what a Result reports about the whole run. `counted`: one of its cells has counted failures, which
/// explain the exit code. Data errors of one cell do not concern other cells.
void add_verdict(const Json& result, const std::set<std::string>& keys, bool counted, Measured* to) {
  const bool complete = result.value("complete", Json(true)) == true;
  const Json code = result.value("exit_code", Json(0));
  const bool failed = code.is_number_integer() && code.get<i64>() != 0 && !counted;
  for (const std::string& key : keys) {
    Samples& samples = to->cells[key];
    if (!complete) ++samples.failures["incomplete runs"];
    if (!failed) continue;
    ++samples.failures[fmt::format("runs with exit code {}", code.get<i64>())];
    if (code.get<i64>() == static_cast<int>(ExitCode::data)) samples.bad_data = true;
  }
}

void add_record(const Record& r, const std::string& path, Measured* to) {
  if (r.result.is_object()) {
    Json result = r.result;
    // A run that was stopped from outside may have written its Result before the stop.
    if (r.ended != "exit") result["complete"] = false;
    return add_result(result, path, to, r.options);
  }
  ++to->runs;
  Measured::WithoutResult& group = to->without_result[group_of(r.options)];
  group.options = r.options;
  ++group.failures[r.ended == "exit" ? fmt::format("runs without a result (exit code {})", r.exit_code)
                                     : fmt::format("runs without a result ({})", r.ended)];
  group.bad_data = group.bad_data || (r.ended == "exit" && r.exit_code == static_cast<int>(ExitCode::data));
}

/// False for a run that has been read already: a file under a second name, or a line that is there twice.
bool is_new(const std::string& run, Measured* to) {
  if (to->seen.insert(std::hash<std::string>{}(run)).second) return true;
  Warning& w = to->warnings["twice"];
  w.text = "what is there twice counts once";
  ++w.count;
  return false;
}

/// Adds one Result. What is wrong names the file or line.
void add_text(const std::string& text, const std::string& name, Measured* to) {
  const Json result = parse_json(text, name + ": no result");
  if (is_new(report::to_line(result), to)) add_result(result, name, to);
}

bool is_record(const std::string& line) {
  try {
    const Json json = parse_json(line, "");
    return json.is_object() && json.value("schema", Json()) == kRecordSchema;
  } catch (const Error&) {
    return false;
  }
}

void add_lines(const std::string& path, Measured* to) {
  const std::string text = read_text(path);
  if (is_record(text.substr(0, text.find('\n')))) {
    const Records records = parse_records(text, path);
    int line = 0;
    for (const Record& r : records.list) {
      ++line;
      if (is_new(to_line(r), to)) add_record(r, fmt::format("{}:{}", path, line), to);
    }
    if (records.torn)
      to->warnings["torn"] = {.text = "the last line is torn, its run is left out", .count = 1};
    return;
  }
  int number = 0;
  for (std::size_t at = 0; at < text.size(); ++number) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    if (end > at) add_text(text.substr(at, end - at), fmt::format("{}:{}", path, number + 1), to);
    at = end + 1;
  }
}

void add_file(const std::string& path, Measured* to) {
  to->files.push_back(path);
  if (path.ends_with(".jsonl")) add_lines(path, to);
  else add_text(read_text(path), path, to);
}

void add_folder(const std::string& path, Measured* to) {
  std::error_code ignored;
  const std::string sweep = path + "/results.jsonl";
  if (fs::exists(sweep, ignored)) return add_file(sweep, to);
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(path, ignored)) {
    const std::string file = entry.path().string();
    if (!(file.ends_with(".json") || file.ends_with(".jsonl"))) continue;
    // The first key is the schema.
    const std::string start = read_start(file, 4096);
    for (const char* schema : {report::kSchema, kRecordSchema})
      if (start.find(fmt::format("\"{}\"", schema)) != std::string::npos) {
        files.push_back(file);
        break;
      }
  }
  std::ranges::sort(files);
  for (const std::string& file : files) add_file(file, to);
}

}  // namespace

bool is_output(const std::string& option) {
  static const std::set<std::string> names = {"json",   "csv",     "html",   "junit",
                                              "versus", "details", "export", "quiet"};
  return names.contains(option);
}

std::string CellKey::text() const {
  std::string text = fmt::format("{} {}", path, report::parameters_of(parameters, " "));
  if (!way.empty()) text += " way=" + way;
  if (!own.is_null()) text += " " + report::parameters_of(own, " ");
  return text;
}

std::string CellKey::group() const {
  return group_of(parameters);
}

const std::vector<std::string>& metric_names() {
  static const std::vector<std::string> names = {"ops_per_s", "bytes_per_s", "mean_ns",
                                                 "p50_ns",    "p99_ns",      "p99_9_ns"};
  return names;
}

bool more_is_better(const std::string& metric) {
  return metric.ends_with("_per_s");
}

void add_result(const Json& result, const std::string& name, Measured* to, const Json& options) {
  if (!result.is_object() || result.value("schema", Json()) != report::kSchema)
    throw Error(name, fmt::format("its schema is not {}", report::kSchema));
  const auto cells = result.find("cells");
  if (cells == result.end() || !cells->is_array()) throw Error(name, "it has no cells");
  for (const Json& cell : *cells) {
    if (!cell.is_object()) throw Error(name, "a cell is no object");
    if (!cell.value("path", Json("")).is_string()) throw Error(name, "a cell's 'path' is no text");
  }
  ++to->runs;
  add_facts(result, &to->facts);
  add_warnings(result, to);
  const std::vector<CellKey> identities = keys_of(*cells, options);
  const std::set<std::string> given = given_options(result);
  std::vector<std::string> keys;
  for (const CellKey& key : identities) keys.push_back(key.text());
  // Cells that differ in nothing are repeats of one cell in the same process.
  std::map<std::string, std::vector<const Json*>> repeats;
  bool counted = false;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const Json& cell = (*cells)[i];
    const auto [at, fresh] = to->cells.try_emplace(keys[i]);
    Samples& samples = at->second;
    if (fresh) {
      to->order.push_back(keys[i]);
      samples.label = keys[i];
      samples.key = identities[i];
      if (!options.is_null()) samples.group = group_of(options);
    }
    samples.given.insert(given.begin(), given.end());
    const auto operation = cell.find("operation");
    samples.operations.insert(operation != cell.end() && operation->is_string()
                                  ? operation->get<std::string>()
                                  : report::Cell{}.operation);
    std::vector<const Json*>& own = repeats[keys[i]];
    const auto list = cell.find("repeats");
    if (list != cell.end() && list->is_array())
      for (const Json& repeat : *list) own.push_back(&repeat);
    for (const char* object : {"errors", "verify"}) counted = add_failures(cell, object, &samples) || counted;
    add_cell_facts(cell, &samples.facts);
  }
  for (const auto& [key, own] : repeats) add_run(own, &to->cells[key]);
  add_verdict(result, {keys.begin(), keys.end()}, counted, to);
  // The run ended before it could measure anything: only the plan's options show which cell it was.
  if (cells->empty()) {
    Measured::WithoutResult& group = to->without_result[options.is_null() ? "" : group_of(options)];
    group.options = options;
    ++group.failures["runs without a measured cell"];
  }
}

Measured load_measured(const std::string& path) {
  Measured measured;
  measured.name = path;
  std::error_code error;
  if (fs::is_directory(path, error)) add_folder(path, &measured);
  else add_file(path, &measured);
  if (measured.cells.empty() && measured.without_result.empty())
    throw Error(path, "it holds no measured cell");
  return measured;
}

}  // namespace doorbell::sweep
