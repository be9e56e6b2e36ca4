// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "sweep/record.hpp"

#include <algorithm>
#include <doorbell/error.hpp>
#include <fmt/format.h>

#include "exchange/fields.hpp"
#include "report/csv.hpp"
#include "report/json.hpp"
#include "sweep/json_text.hpp"

namespace doorbell::sweep {

namespace {

using Json = nlohmann::ordered_json;

constexpr u32 kMaxExitCode = 255;
constexpr double kMaxWall_s = 1e9;
constexpr const char* kNoLine = "no line of a sweep";

const Json& member(const Json& object, const char* key) {
  static const Json none;
  const auto found = object.find(key);
  return found == object.end() ? none : *found;
}

Record record_of(const Json& line) {
  const auto whole = [&](const char* key, u32 most = ~u32{0}) {
    return exchange::small(line, key, 0, most, kNoLine);
  };
  const auto text = [&](const char* key) { return exchange::text(line, key, ~std::size_t{0}, kNoLine); };
  if (!line.is_object()) throw Error(kNoLine, "it is no object");
  Record r;
  if (text("schema") != kRecordSchema) throw Error(kNoLine, "its schema is another one");
  r.cell = whole("cell");
  r.round = whole("round");
  r.options = exchange::member(line, "options", kNoLine);
  r.exit_code = static_cast<int>(whole("exit_code", kMaxExitCode));
  r.wall_s = exchange::real(line, "wall_s", 0, kMaxWall_s, kNoLine);
  r.ended = text("ended");
  if (!exchange::member(line, "error", kNoLine).is_null()) r.error = text("error");
  r.result = exchange::member(line, "result", kNoLine);
  if (!r.options.is_object() || (!r.result.is_null() && !r.result.is_object()))
    throw Error(kNoLine, "'options' or 'result' is no object");
  return r;
}

}  // namespace

bool Record::complete() const {
  return ended == "exit" && result.is_object() && member(result, "complete") == true;
}

int Record::code() const {
  // An older doorbell, or one that was stopped before it measured, ends with another exit code.
  if (ended == "interrupted" && (exit_code == 0 || exit_code == kInterrupted)) return kInterrupted;
  // A run that reports success but left no Result has failed.
  const bool known = ended == "timeout" ? false
                     : exit_code == 0   ? result.is_object()
                                        : exit_code == 1 || exit_code == 77;
  return known ? exit_code : static_cast<int>(ExitCode::data);
}

std::string to_line(const Record& r) {
  return report::to_line({{"schema", kRecordSchema},
                          {"cell", r.cell},
                          {"round", r.round},
                          {"options", r.options},
                          {"exit_code", r.exit_code},
                          {"wall_s", r.wall_s},
                          {"ended", r.ended},
                          {"error", r.error.empty() ? Json(nullptr) : Json(r.error)},
                          {"result", r.result}});
}

Records parse_records(std::string_view text, const std::string& name) {
  Records records;
  int number = 0;
  while (!text.empty()) {
    ++number;
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    std::string why;
    try {
      if (end == std::string_view::npos) throw Error(kNoLine, "it has no end");
      records.list.push_back(record_of(parse_json(line, kNoLine)));
      continue;
    } catch (const Error& e) {
      why = e.what();
    }
    // After a crash the end of the file may be missing.
    if (!text.empty())
      throw Error(fmt::format("{}:{}", name, number), why,
                  "only the last line may be damaged; take the bad one out, its cell is run again");
    records.torn = true;
  }
  return records;
}

std::string csv_header() {
  return "cell,round,exit_code,ended,wall_s," + report::csv_header();
}

std::string csv_rows(const Record& r) {
  const std::string own = fmt::format("{},{},{},{},{},", r.cell, r.round, r.exit_code, r.ended, r.wall_s);
  std::string out;
  const Json& cells = member(r.result, "cells");
  const std::string warnings = report::warnings_field(member(r.result, "warnings"));
  std::size_t index = 0;
  if (cells.is_array())
    for (const Json& cell : cells) out += report::csv_rows(cell, index++, own, warnings);
  if (!out.empty()) return out;
  const std::string header = report::csv_header();
  return own + std::string(static_cast<std::size_t>(std::ranges::count(header, ',')), ',') + '\n';
}

}  // namespace doorbell::sweep
