// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Rows of unusual cells, and files that cannot be written completely.

#include <doorbell/error.hpp>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iterator>

#include "file_contents.hpp"
#include "report/csv.hpp"
#include "report/file.hpp"
#include "report/json.hpp"
#include "report_sample.hpp"

namespace doorbell::report {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// A cell whose run was interrupted before its first repeat had ended.
Cell without_repeats() {
  Cell c = test::sample_nvme_cell();
  c.repeats.clear();
  c.metrics.ops_per_s = 1e6;
  c.metrics.bytes_per_s = 512e6;
  c.metrics.latency_ns.p50 = 1;
  c.metrics.latency_ns.p99 = 2;
  c.metrics.latency_ns.p99_9 = 3.5;
  c.verify = {};
  c.verify.mode = "full";
  c.verify.corrupt = 1;
  c.verify.misplaced = 20;
  c.verify.stale = 300;
  c.verify.duplicated = 4'000;
  c.verify.missing = 50'000;
  c.verify.unverifiable = 7;  // no failure
  c.errors = {{"completion", 600'000}, {"timeout", 7'000'000}};
  return c;
}

std::string end_of(const std::string& row, const std::string& from) {
  const auto at = row.find(from);
  return at == std::string::npos ? row : row.substr(at);
}

TEST(Csv, ACellWithoutRepeatsIsARowOfItsMetrics) {
  const std::string row = csv_rows(without_repeats(), 3);
  EXPECT_TRUE(row.starts_with("nvme,3,,gpu,0,")) << row;
  EXPECT_EQ(end_of(row, ",full,"), ",full,,1000000,512000000,1,2,3.5,7654321,\n");
}

TEST(Csv, RowsFromJsonAreTheSame) {
  Result r;
  r.cells = {test::sample_nvme_cell(), test::sample_net_cell(), without_repeats()};
  const Json document = to_json(r);
  for (std::size_t i = 0; i < r.cells.size(); ++i) {
    const Json& cell = document.at("cells").at(i);
    EXPECT_EQ(csv_rows(cell, i), csv_rows(r.cells[i], i));
    EXPECT_EQ(csv_rows(cell, i, "a,b,").substr(0, 9), "a,b," + csv_rows(r.cells[i], i).substr(0, 5));
  }
  // Before every row, not once.
  const std::string rows = csv_rows(document.at("cells").at(0), 0, "x,");
  std::size_t seen = 0;
  for (std::size_t at = rows.find("x,nvme,"); at != std::string::npos; at = rows.find("x,nvme,", at + 1))
    ++seen;
  EXPECT_EQ(seen, r.cells[0].repeats.size());
}

TEST(Csv, EachRowHasItsResultsWarnings) {
  Result r;
  r.cells = {test::sample_nvme_cell(), without_repeats()};
  r.warnings = {"the machine is busy, \"very\"", "and hot"};
  const std::string field = "\"the machine is busy, \"\"very\"\"; and hot\"\n";
  const std::string text = to_csv(r);
  std::size_t rows = 0, warned = 0;
  for (std::size_t at = text.find('\n') + 1; at < text.size(); at = text.find('\n', at) + 1) {
    const std::string row = text.substr(at, text.find('\n', at) + 1 - at);
    ++rows;
    if (row.ends_with(field)) ++warned;
  }
  EXPECT_GT(rows, 1u);
  EXPECT_EQ(warned, rows);
  EXPECT_EQ(csv_rows(to_json(r).at("cells").at(1), 1, "", warnings_field(to_json(r).at("warnings"))),
            csv_rows(r.cells[1], 1, warnings_field(to_json(r).at("warnings"))));
  EXPECT_EQ(warnings_field(Json(nullptr)), "");
}

TEST(Csv, JsonOfAnotherShapeIsEmptyFields) {
  for (const char* text :
       {"{}", "null", "[]", "7", R"({"path": 7, "metrics": [], "repeats": {}, "errors": 1})",
        R"({"initiator": {"gpu": "0"}, "metrics": {"latency_ns": {"p50": "1"}}})"})
    EXPECT_EQ(csv_rows(Json::parse(text), 0), ",0,,,,,,,,,0,0,,,,0,\n") << text;
}

// ---- files

/// An empty directory of its own; removed at the end.
struct CsvFolder {
  CsvFolder() {
    std::string name = (fs::temp_directory_path() / "doorbell-csv-XXXXXX").string();
    path = ::mkdtemp(name.data());
  }
  ~CsvFolder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  CsvFolder(const CsvFolder&) = delete;
  CsvFolder& operator=(const CsvFolder&) = delete;
  [[nodiscard]] auto entries() const {
    return std::distance(fs::directory_iterator(path), fs::directory_iterator());
  }
  fs::path path;
};

/// In a process of its own: what it may write to a file is limited to 4 KiB, so that it stops half way.
int write_too_much(const std::string& name) {
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit most = {4096, 4096};
    if (::setrlimit(RLIMIT_FSIZE, &most) != 0) ::_exit(3);
    try {
      write_file(name, std::string(10'000, 'n'));
    } catch (const Error& e) {
      ::_exit(std::string(e.what()).find("write: File too large") != std::string::npos ? 0 : 1);
    }
    ::_exit(2);
  }
  int status = -1;
  if (child < 0 || ::waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}

TEST(File, WhatCannotBeWrittenToTheEndLeavesTheOldFile) {
  const CsvFolder d;
  const std::string name = d.path / "r.csv";
  write_file(name, "old");
  EXPECT_EQ(write_too_much(name), 0);
  EXPECT_EQ(test::contents(name), "old");
  EXPECT_EQ(d.entries(), 1) << "half a file is left behind";
  EXPECT_EQ(write_too_much(d.path / "new.csv"), 0);
  EXPECT_EQ(d.entries(), 1) << "half a file is left behind";
}

TEST(File, ADirectoryIsNotReplaced) {
  const CsvFolder d;
  fs::create_directory(d.path / "sub");
  EXPECT_THROW(write_file(d.path / "sub", "new"), Error);
  EXPECT_TRUE(fs::is_directory(d.path / "sub"));
  EXPECT_EQ(d.entries(), 1);
}

}  // namespace
}  // namespace doorbell::report
