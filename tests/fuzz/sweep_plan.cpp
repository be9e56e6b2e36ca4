// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A sweep's plan: accepted with cells that its command takes, or refused with an Error. Also its records and
// CSV.

#include <doorbell/error.hpp>

#include <set>
#include <string>

#include "fuzz/fuzz.hpp"
#include "sweep/cells.hpp"
#include "sweep/csv_file.hpp"
#include "sweep/record.hpp"
#include "sweep/sweep_subject.hpp"

using namespace doorbell;
using fuzz::require;

namespace {

void plan(const std::string& text) {
  static const std::vector<sweep::Subject> subjects = {sweep::sample_subject()};
  try {
    const sweep::Plan p = sweep::parse_plan(text, "plan", subjects);
    require(!p.name.empty() && p.name.find('/') == std::string::npos && p.name[0] != '.');
    require(p.rounds >= 1 && p.rounds <= sweep::kMaxRounds);
    std::size_t product = 1;
    for (const sweep::Axis& axis : p.matrix) product *= axis.values.size();
    if (product > 64) return;  // the size is checked; expanding it takes long
    const std::vector<sweep::Cell> cells = sweep::expand(p);
    require(!cells.empty() && cells.size() <= sweep::kMaxCells);
    for (const sweep::Cell& cell : cells) (void)sweep::label_of(p, cell);
  } catch (const Error& e) {
    require(!e.subject().empty());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const u8* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  plan(text);
  plan("name: n\ncommand: rdma\n" + text);
  try {
    const sweep::Records records = sweep::parse_records(text, "records");
    for (const sweep::Record& r : records.list) (void)sweep::csv_rows(r);
  } catch (const Error& e) {
    require(!e.subject().empty());
  }
  try {
    const sweep::CsvFile csv = sweep::parse_csv(text, "csv");
    for (const sweep::CsvRow& row : csv.rows) require(row.fields.size() == csv.header.size());
  } catch (const Error& e) {
    require(!e.subject().empty());
  }
  return 0;
}
