// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Results as files, which anybody may have written: what counts as a run, and what is refused.
#include <gtest/gtest.h>

#include <doorbell/error.hpp>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <sys/stat.h>

#include "sweep/compare.hpp"
#include "sweep/process.hpp"
#include "sweep/record.hpp"
#include "sweep_result.hpp"

namespace doorbell::sweep {
namespace {

class SweepFiles : public testing::Test {
 protected:
  void SetUp() override {
    path_ = testing::TempDir() + "sweep_files_" + std::to_string(getpid());
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  void TearDown() override { std::filesystem::remove_all(path_); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ + "/" + name) << text;
  }
  std::string path_;
};

TEST_F(SweepFiles, EachFileOfAFolderIsARun) {
  for (int i = 0; i < 5; ++i) write(fmt::format("{}.json", i), result_of({100.0 + i}).dump());
  write("other.json", "{\"schema\": \"other\"}");
  write("notes.txt", "doorbell.results/1");
  ASSERT_EQ(mkfifo((path_ + "/fifo.json").c_str(), 0600), 0);
  const Measured m = load_measured(path_);
  EXPECT_EQ(m.runs, 5u);
  EXPECT_EQ(m.files.size(), 5u);
  EXPECT_EQ(m.cells.begin()->second.metrics.at("ops_per_s").size(), 5u);
}

TEST_F(SweepFiles, TheSameRunTwiceIsOne) {
  write("0.json", result_of({100}).dump());
  write("1.json", result_of({101}).dump(2));
  std::filesystem::create_symlink(path_ + "/0.json", path_ + "/2.json");
  std::filesystem::copy_file(path_ + "/1.json", path_ + "/3.json");
  const Measured files = load_measured(path_);
  EXPECT_EQ(files.runs, 2u);
  EXPECT_EQ(files.warnings.at("twice").count, 2u);

  write("other.json", result_of({102}).dump());
  const auto warnings = [&](const char* other) {
    return compare(files, load_measured(path_ + other), {"ops_per_s"}, 0.05).warnings;
  };
  EXPECT_EQ(warnings("/2.json").front(), "1 of the runs are on both sides");
  EXPECT_EQ(warnings("/other.json").size(), 1u) << "what the first side has twice";

  Record r;
  r.result = result_of({100});
  std::string text = to_line(r) + to_line(r);
  r.round = 1;
  write("sweep.jsonl", text + to_line(r));
  EXPECT_EQ(load_measured(path_ + "/sweep.jsonl").runs, 2u) << "equal figures of another round are a run";
  text = result_of({100}).dump() + "\n";
  write("results.jsonl", text + text);
  EXPECT_EQ(load_measured(path_).runs, 1u);
}

TEST_F(SweepFiles, WhatIsNoResultNamesTheFileInPlainWords) {
  const std::string deep(1'000'000, '[');
  nlohmann::ordered_json odd = result_of({100});
  odd["cells"][0]["path"] = 7;
  nlohmann::ordered_json old = odd;
  old["schema"] = 7;
  const std::string line = to_line({});
  const std::pair<std::string, const char*> cases[] = {
      {"a.json", "a.json: no result: it is no JSON (column 1)"},
      {"{\n \"\xff\"}", "a.json: no result: it is no JSON in UTF-8 (line 2, column 3)"},
      {deep, "a.json: no result: it is more than 100 levels deep"},
      {"[1e999]", "a.json: no result: a number in it is too large"},
      {"7", "a.json: its schema is not doorbell.results/1"},
      {odd.dump(), "a.json: a cell's 'path' is no text"},
      {old.dump(), "a.json: its schema is not doorbell.results/1"},
      {"7\n", "a.jsonl:1: its schema is not"},
      {"{\"schema\": 7}\n", "a.jsonl:1: its schema is not"},
      {result_of({1}).dump() + "\n\n{x\n", "a.jsonl:3: no result: it is no JSON (column 2)"},
      {line + "{}\n" + line, "a.jsonl:2: no line of a sweep: 'schema' is missing"},
      {line + "7\n" + line, "a.jsonl:2: no line of a sweep: it is no object"},
  };
  for (const auto& [text, says] : cases) {
    const std::string name = std::string(says).substr(0, std::string(says).find(':'));
    write(name, text);
    try {
      (void)load_measured(path_ + "/" + name);
      ADD_FAILURE() << says;
    } catch (const Error& e) {
      EXPECT_TRUE(std::string(e.what()).starts_with(path_ + "/" + says)) << e.what();
    }
  }
}

TEST_F(SweepFiles, ARunWhoseResultIsNoJsonHasNone) {
  // Stands for doorbell, and leaves this as its Result.
  write("program", "#!/bin/sh\nfor w; do case $w in --json=*) printf '{x' >\"${w#--json=}\";; esac; done\n");
  std::filesystem::permissions(path_ + "/program", std::filesystem::perms::owner_all);
  const Outcome o = run_process({"nvme"}, path_ + "/r.json", 60, path_ + "/program", {});
  EXPECT_EQ(o.exit_code, 0);
  EXPECT_TRUE(o.result.is_null());
  EXPECT_EQ(o.error, "its result cannot be read: it is no JSON (column 2)");
}

TEST(SweepRecords, MembersOfOtherTypesAreSaidInPlainWords) {
  const std::pair<const char*, const char*> cases[] = {
      {"schema", "'schema' is no text"},
      {"cell", "'cell' is no whole number in 0..4294967295"},
      {"round", "'round' is no whole number"},
      {"options", "'options' or 'result' is no object"},
      {"exit_code", "'exit_code' is no whole number in 0..255"},
      {"wall_s", "'wall_s' is no number"},
      {"ended", "'ended' is no text"},
      {"error", "'error' is no text"},
      {"result", "'options' or 'result' is no object"},
  };
  for (const auto& [key, says] : cases) {
    nlohmann::ordered_json line = nlohmann::ordered_json::parse(to_line({}));
    line[key] = nlohmann::ordered_json::array();
    try {
      (void)parse_records(line.dump() + "\n" + to_line({}), "f");
      ADD_FAILURE() << key;
    } catch (const Error& e) {
      EXPECT_TRUE(std::string(e.what()).starts_with(std::string("f:1: no line of a sweep: ") + says))
          << e.what();
    }
  }
}

TEST_F(SweepFiles, ARunOfASweepWithoutAResultIsKnown) {
  std::string lines, lost, stopped;
  for (u32 round = 0; round < 7; ++round) {
    Record r;
    r.round = round;
    r.options = {{"batch-size", "1"}};
    r.result = result_of({100});
    lines += to_line(r);
    if (round < 6) stopped += to_line(r);
    r.result = nullptr;
    r.ended = "timeout";
    r.exit_code = 137;
    lost += to_line(r);
  }
  Record r;
  r.options = {{"batch-size", "1"}};
  r.result = result_of({100});
  r.ended = "timeout";
  write("good.jsonl", lines);
  write("lost.jsonl", lost);
  write("partly.jsonl", stopped + lost.substr(0, lost.find('\n') + 1));
  write("stopped.jsonl", stopped + to_line(r));
  const Measured good = load_measured(path_ + "/good.jsonl");
  EXPECT_EQ(good.runs, 7u);
  EXPECT_EQ(compare(good, good, {"ops_per_s"}, 0.05).exit_code(), 0);
  for (const char* bad : {"lost", "partly", "stopped"}) {
    const Comparison c =
        compare(good, load_measured(fmt::format("{}/{}.jsonl", path_, bad)), {"ops_per_s"}, 0.05);
    EXPECT_EQ(c.exit_code(), 3) << bad;
    EXPECT_EQ(c.not_comparable(), 1u) << bad;
  }
  const Measured none = load_measured(path_ + "/lost.jsonl");
  EXPECT_EQ(compare(none, none, {"ops_per_s"}, 0.05).exit_code(), 3);
  EXPECT_NE(
      to_text(compare(good, none, {"ops_per_s"}, 0.05), "a", "b").find("7 runs without a result (timeout)"),
      std::string::npos);
}

}  // namespace
}  // namespace doorbell::sweep
