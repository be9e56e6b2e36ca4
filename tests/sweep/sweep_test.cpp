// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Plans, their cells, the records on the disk, published rows and ratios.
#include <gtest/gtest.h>

#include <doorbell/error.hpp>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <set>
#include <sys/stat.h>

#include "report/verdict.hpp"
#include "sweep/cells.hpp"
#include "sweep/folder.hpp"
#include "sweep/record.hpp"
#include "sweep/reference.hpp"
#include "sweep/table.hpp"
#include "sweep/text_file.hpp"
#include "sweep/units.hpp"
#include "sweep_subject.hpp"

namespace doorbell::sweep {
namespace {

const std::vector<Subject>& subjects() {
  static const std::vector<Subject> all = {sample_subject()};
  return all;
}

Plan plan_of(const std::string& text) {
  return parse_plan(text, "p.yaml", subjects());
}

std::string refusal(const std::string& text) {
  try {
    (void)expand(plan_of(text));
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ExitCode::usage);
    return e.what();
  }
  return "";
}

constexpr const char* kHead = "name: n\ncommand: rdma\n";

TEST(SweepPlan, ReadsEveryKey) {
  const Plan p = plan_of(
      "name: xio-1\ntitle: a title\ncommand: rdma\noptions: {op: read, inline-data: false}\nmatrix:\n"
      "  provider: [bnxt, ionic]\n  bytes: [256, 1KiB]\ncells:\n  - {size: 2Ki, op: write}\norder: shuffled\n"
      "rounds: 3\nreference:\n  file: x.csv\n  where: {table: [a, b], device: d}\n"
      "  match: {provider: provider, size: {column: s, values: {1Ki: k}}}\n"
      "  columns: {mean: avg, unit: us}\n  ours: latency_ns.mean\n  note: hello\n");
  EXPECT_EQ(p.name, "xio-1");
  EXPECT_EQ(p.title, "a title");
  EXPECT_EQ(p.subject->name, "rdma");
  ASSERT_EQ(p.matrix.size(), 2u);
  EXPECT_EQ(p.matrix[1].name, "size") << "an alias becomes the option's own name";
  EXPECT_TRUE(p.shuffled);
  EXPECT_EQ(p.rounds, 3u);
  ASSERT_EQ(p.references.size(), 1u);
  const Reference& r = p.references[0];
  EXPECT_EQ(r.where[0].second, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(r.where[1].second, (std::vector<std::string>{"d"}));
  EXPECT_EQ(r.match[1].column, "s");
  EXPECT_EQ(r.match[1].values, (std::vector<std::pair<std::string, std::string>>{{"1Ki", "k"}}));
  EXPECT_EQ(r.unit, "us");
  EXPECT_EQ(r.note, "hello");
}

struct Bad {
  std::string text;
  std::vector<std::string> says;
};

TEST(SweepPlan, RefusesWithLineKeyAndReason) {
  const std::string head = kHead;
  const std::string reference = head + "reference:\n  file: x.csv\n";
  const std::vector<Bad> all = {
      {"", {"p.yaml"}},
      {"[1, 2", {"p.yaml:1", "not YAML"}},
      {"- 1\n", {"p.yaml:1", "must be a map"}},
      {"name: a\n---\nname: b\n", {"more than one YAML document"}},
      {"command: rdma\n", {"'name' is missing"}},
      {"name: a\n", {"'command' is missing"}},
      {"name: ../a\ncommand: rdma\n", {"p.yaml:1: name", "letters"}},
      {"name: .a\ncommand: rdma\n", {"name"}},
      {"name: a\ncommand: rmda\n", {"p.yaml:2: command", "'rmda'", "did you mean 'rdma'?"}},
      {head + "matrx: {size: [1]}\n", {"p.yaml:3", "unknown key 'matrx'", "did you mean 'matrix'?"}},
      {"name: -a\ncommand: rdma\n", {"p.yaml:1: name", "begins with none"}},
      {"name: " + std::string(65, 'a') + "\ncommand: rdma\n", {"at most 64 letters"}},
      {head + "options:\n  sise: 1\n", {"p.yaml:4: options.sise", "did you mean 'size'?"}},
      {head + "options: {size: 0}\n", {"p.yaml:3: options.size", "not in 1..1Gi"}},
      {head + "options: {op: wirte}\n", {"options.op", "did you mean 'write'?"}},
      {head + "options: {size: [1]}\n", {"must be one value"}},
      {head + "options: {size: }\n", {"has no value"}},
      {head + "options: {size: 1, bytes: 2}\n", {"given twice"}},
      {head + "options: {size: 1, size: 2}\n", {"given twice, first in line 3"}},
      {head + "options: {json: x}\n", {"options.json", "the sweep sets it itself"}},
      {head + "options: {quiet: true}\n", {"the sweep sets it itself"}},
      {head + "options: {inline-data: yes}\n", {"'yes' is neither true nor false"}},
      {head + "matrix: {size: 4}\n", {"p.yaml:3: matrix.size", "must be a list"}},
      {head + "matrix: {size: []}\n", {"must be a list of one item or more"}},
      {head + "matrix: {}\n", {"it has no option"}},
      {head + "matrix:\n  size:\n    - 1\n    - 1q\n", {"p.yaml:6: matrix.size", "'1q' is not a size"}},
      {head + "options: {size: 1}\nmatrix: {size: [2]}\n", {"stands under 'options', too"}},
      {head + "matrix: {size: [1024, 1Ki]}\n",
       {"p.yaml:3: matrix.size", "'1Ki' is the same value as '1024'"}},
      {head + "matrix: {device: ['8,1Ki:2Ki', '8,1024:2048']}\n",
       {"p.yaml:3: matrix.device", "the same value"}},
      {head + "cells:\n  - {device: 1Ki}\n  - {device: 1024}\n", {"p.yaml:5: cell 2", "the same as cell 1"}},
      {head + "matrix: {size: [4096, 8192]}\noptions: {inline-data: true}\n",
       {"cell 2", "--size=8192", "at most 4Ki"}},
      {head + "rounds: 0\n", {"rounds", "1..1000"}},
      {head + "rounds: 2x\n", {"'2x'"}},
      {head + "order: random\n", {"unknown order 'random'"}},
      {head + "cells: {size: 1}\n", {"must be a list"}},
      {reference, {"'match' is missing"}},
      {reference + "  match: {size: s}\n  columns: {mean: m, unit: us}\n  ours: bytes_per_s\n",
       {"bandwidth", "in us"}},
      {reference + "  match: {size: s}\n  columns: {mean: m, unit: lightyears}\n  ours: a_ns\n",
       {"unknown unit"}},
      {reference + "  match: {size: s}\n  columns: {mean: m}\n  ours: a_ns\n", {"'unit' is missing"}},
      {reference + "  match: {sise: s}\n  columns: {mean: m, unit: us}\n  ours: a_ns\n",
       {"did you mean 'size'?"}},
      {reference +
           "  match: {size: {column: s, values: {x: 1}}}\n  columns: {mean: m, unit: us}\n  ours: a_ns\n",
       {"'x' is not a size"}},
      {reference + "  match: {size: {column: s, values: {1Ki: k, 1024: m}}}\n"
                   "  columns: {mean: m, unit: us}\n  ours: a_ns\n",
       {"'1024' is the same value as '1Ki'"}},
  };
  for (const Bad& bad : all) {
    const std::string why = refusal(bad.text);
    EXPECT_NE(why, "") << bad.text;
    for (const std::string& part : bad.says) EXPECT_NE(why.find(part), std::string::npos) << bad.text << why;
  }
}

TEST(SweepPlan, SizeIsLimited) {
  std::string list;
  for (int i = 1; i <= 200; ++i) list += fmt::format("{}{}", i == 1 ? "" : ", ", i);
  const std::string text = fmt::format("{}matrix: {{size: [{}], iterations: [{}]}}\n", kHead, list, list);
  EXPECT_NE(refusal(text).find("more than 10000 cells"), std::string::npos);
  EXPECT_NE(refusal(std::string(kHead) + std::string(2 << 20, ' ')).find("bytes, more than"),
            std::string::npos);
}

TEST(SweepPlan, ANameMayHave64Letters) {
  EXPECT_EQ(plan_of("name: " + std::string(64, 'a') + "\ncommand: rdma\n").name.size(), 64u);
}

TEST(SweepPlan, EveryRoundOfEveryCellCounts) {
  std::string list;
  for (int i = 1; i <= 99; ++i) list += fmt::format("{}{}", i == 1 ? "" : ", ", i);
  // 99 of the matrix and one listed cell, 100 times.
  const std::string text = fmt::format("{}matrix: {{size: [{}]}}\ncells:\n  - {{op: read}}\n", kHead, list);
  EXPECT_EQ(plan_of(text + "rounds: 100\n").rounds, 100u);
  EXPECT_NE(refusal(text + "rounds: 101\n").find("more than 10000 cells"), std::string::npos);
  EXPECT_NE(refusal(text + "  - {op: write}\nrounds: 100\n").find("more than 10000 cells"),
            std::string::npos);
}

TEST(SweepCells, LastKeyOfTheMatrixIsFastest) {
  const Plan p =
      plan_of(std::string(kHead) +
              "options: {iterations: 5, op: read}\nmatrix: {provider: [bnxt, ionic], size: [1, 2, 3]}\n"
              "cells:\n  - {op: write, inline-data: true}\n");
  const std::vector<Cell> cells = expand(p);
  ASSERT_EQ(cells.size(), 7u);
  EXPECT_EQ(label_of(p, cells[0]), "provider=bnxt size=1 op=read inline-data=false");
  EXPECT_EQ(label_of(p, cells[2]), "provider=bnxt size=3 op=read inline-data=false");
  EXPECT_EQ(label_of(p, cells[3]), "provider=ionic size=1 op=read inline-data=false");
  EXPECT_EQ(cells[3].arguments,
            (std::vector<std::string>{"--iterations=5", "--op=read", "--provider=ionic", "--size=1"}));
  EXPECT_EQ(cells[6].arguments, (std::vector<std::string>{"--iterations=5", "--op=write", "--inline-data"}));
  EXPECT_EQ(value_of(cells[6], "provider"), "bnxt");
}

TEST(SweepCells, APlanWithoutCellsIsOneCell) {
  EXPECT_EQ(expand(plan_of(kHead)).size(), 1u);
}

TEST(SweepCells, OnlySelectsByValue) {
  const Plan p = plan_of(std::string(kHead) + "matrix: {provider: [bnxt, ionic], size: [256, 1KiB, 4KiB]}\n");
  const std::vector<Cell> cells = expand(p);
  using Indices = std::vector<u32>;
  EXPECT_EQ(select(p, cells, "").size(), 6u);
  EXPECT_EQ(select(p, cells, "provider=ionic"), (Indices{3, 4, 5}));
  EXPECT_EQ(select(p, cells, "size=1024"), (Indices{1, 4})) << "the value counts, not its spelling";
  EXPECT_EQ(select(p, cells, "size=256,size=4Ki,provider=bnxt"), (Indices{0, 2}));
  for (const char* bad : {"sise=1", "size", "size=x", "size=8Ki", "op=read"})
    EXPECT_THROW((void)select(p, cells, bad), Error) << bad;
}

TEST(SweepCells, ValuesAreTheSameHoweverTheyAreWritten) {
  const options::OptionTable& t = subjects()[0].table;
  EXPECT_TRUE(same_value(*t.find("size"), "1KiB", "1024"));
  EXPECT_FALSE(same_value(*t.find("size"), "1KiB", "1000"));
  EXPECT_FALSE(same_value(*t.find("size"), "1KiB", "many"));
  EXPECT_TRUE(same_value(*t.find("device"), "64Ki", "65536")) << "text that holds sizes";
  EXPECT_TRUE(same_value(*t.find("device"), "1:64Ki,8", "1:65536,8")) << "a list of them";
  EXPECT_FALSE(same_value(*t.find("device"), "1:64Ki,8", "1:65536:8"));
  EXPECT_FALSE(same_value(*t.find("device"), "model", "models"));
  EXPECT_TRUE(same_value(*t.find("inline-data"), "true", "true"));
  EXPECT_FALSE(same_value(*t.find("inline-data"), "true", "false"));
}

TEST(SweepCells, RoundsAreInterleavedAndShuffledEach) {
  Plan p = plan_of(std::string(kHead) + "matrix: {size: [1, 2, 3, 4, 5, 6, 7, 8]}\nrounds: 3\n");
  const std::vector<u32> all = {0, 1, 2, 3, 4, 5, 6, 7};
  const auto order = [&](u64 seed) {
    std::vector<std::vector<u32>> rounds(3);
    for (const Turn& t : turns(p, all, seed)) rounds[t.round].push_back(t.cell);
    return rounds;
  };
  EXPECT_EQ(order(1), (std::vector<std::vector<u32>>{all, all, all}));
  const std::vector<Turn> listed = turns(p, all, 1);
  EXPECT_EQ(listed[8].round, 1u);
  p.shuffled = true;
  const auto shuffled = order(1);
  EXPECT_EQ(shuffled, order(1)) << "the seed decides";
  EXPECT_NE(shuffled, order(2));
  EXPECT_NE(shuffled[0], shuffled[1]);
  for (std::vector<u32> round : shuffled) {
    std::ranges::sort(round);
    EXPECT_EQ(round, all);
  }
}

Record record_of(u32 cell, u32 round, bool complete, int exit_code = 0) {
  Record r;
  r.cell = cell;
  r.round = round;
  r.exit_code = exit_code;
  r.options = {{"size", "1"}};
  r.result = {{"complete", complete}, {"cells", nlohmann::ordered_json::array()}};
  return r;
}

TEST(SweepRecord, LinesReadBack) {
  Record r = record_of(3, 1, true, 2);
  r.error = "two\nlines";
  r.wall_s = 1.5;
  const std::string text = to_line(r) + to_line(record_of(4, 0, false));
  const Records back = parse_records(text, "f");
  EXPECT_FALSE(back.torn);
  ASSERT_EQ(back.list.size(), 2u);
  EXPECT_EQ(to_line(back.list[0]), to_line(r));
  EXPECT_TRUE(back.list[0].complete());
  EXPECT_FALSE(back.list[1].complete());
}

TEST(SweepRecord, ATornLastLineIsLeftOutWhereverItIsTorn) {
  const std::string whole = to_line(record_of(0, 0, true));
  const std::string last = to_line(record_of(1, 0, true));
  for (std::size_t cut = 1; cut < last.size(); ++cut) {
    const Records r = parse_records(whole + last.substr(0, cut), "f");
    EXPECT_TRUE(r.torn) << cut;
    EXPECT_EQ(r.list.size(), 1u) << cut;
  }
  EXPECT_TRUE(parse_records(whole + std::string(100, '\0'), "f").torn) << "a hole of zeros";
  EXPECT_THROW((void)parse_records(last.substr(0, 20) + "\n" + whole, "f"), Error) << "damage in the middle";
  EXPECT_THROW((void)parse_records("{}\n" + whole, "f"), Error);
}

TEST(SweepRecord, WorstExitCodeWins) {
  EXPECT_EQ(report::worse_of(0, 77), 77);
  EXPECT_EQ(report::worse_of(77, 1), 1);
  EXPECT_EQ(report::worse_of(1, 77), 1);
  EXPECT_EQ(report::worse_of(1, 2), 2);
  EXPECT_EQ(report::worse_of(2, 1), 2);
  EXPECT_EQ(report::worse_of(1, 130), 130) << "what is missing was not asked for any more";
  EXPECT_EQ(report::worse_of(130, 77), 130);
  EXPECT_EQ(report::worse_of(130, 2), 2);
  EXPECT_EQ(report::worse_of(2, 130), 2);
  EXPECT_EQ(record_of(0, 0, true, 139).code(), 2) << "a crash";
  EXPECT_EQ(record_of(0, 0, true, 77).code(), 77);
  Record hung = record_of(0, 0, false);
  hung.ended = "timeout";
  EXPECT_EQ(hung.code(), 2);
  hung.exit_code = 130;
  EXPECT_EQ(hung.code(), 2) << "the sweep stopped it";
  for (const int asked : {0, 130}) {
    Record stopped = record_of(0, 0, false, asked);
    stopped.ended = "interrupted";
    EXPECT_EQ(stopped.code(), 130);
  }
  Record stopped_bad = record_of(0, 0, false, 2);
  stopped_bad.ended = "interrupted";
  EXPECT_EQ(stopped_bad.code(), 2);
  Record empty = record_of(0, 0, false);
  empty.result = nullptr;
  EXPECT_EQ(empty.code(), 2) << "success without a result";
}

TEST(SweepRecord, CsvHasARowForARunWithoutResult) {
  Record r = record_of(2, 1, false, 139);
  r.result = nullptr;
  r.ended = "signal";
  const std::string header = csv_header(), row = csv_rows(r);
  EXPECT_EQ(std::ranges::count(row, ','), std::ranges::count(header, ','));
  EXPECT_TRUE(row.starts_with("2,1,139,signal,0,,"));
  EXPECT_TRUE(header.starts_with("cell,round,exit_code,ended,wall_s,path,cell_index,repeat,"));
}

class SweepFolder : public testing::Test {
 protected:
  void SetUp() override {
    path_ = testing::TempDir() + "sweep_folder_" + std::to_string(getpid());
    std::filesystem::remove_all(path_);
  }
  void TearDown() override { std::filesystem::remove_all(path_); }
  std::string path_;
};

TEST_F(SweepFolder, KeepsWhatIsAppended) {
  EXPECT_EQ(look(path_, "a"), Found::nothing);
  {
    Folder folder(path_, "a");
    folder.keep({});
    folder.append(record_of(0, 0, true));
    folder.append(record_of(1, 0, true));
    EXPECT_THROW(Folder(path_, "a"), Error) << "one sweep at a time";
  }
  EXPECT_EQ(look(path_, "a"), Found::same);
  EXPECT_EQ(look(path_, "b"), Found::another);
  std::ofstream(path_ + "/results.jsonl", std::ios::app) << "{\"schema\":\"door";
  Folder folder(path_, "a");
  Records records = folder.read();
  EXPECT_TRUE(records.torn);
  ASSERT_EQ(records.list.size(), 2u);
  folder.keep(records.list);
  EXPECT_FALSE(folder.read().torn);
}

TEST_F(SweepFolder, ForeignFoldersAreLeftAlone) {
  std::filesystem::create_directories(path_);
  std::ofstream(path_ + "/precious") << "x";
  EXPECT_EQ(look(path_, "a"), Found::foreign);
}

TEST(SweepText, OnlyRegularFilesOfABoundedSize) {
  const std::string path = testing::TempDir() + "sweep_text_" + std::to_string(getpid());
  std::ofstream(path) << "0123456789";
  EXPECT_EQ(read_text(path), "0123456789");
  EXPECT_EQ(read_text(path, 10), "0123456789");
  EXPECT_THROW((void)read_text(path, 9), Error);
  EXPECT_EQ(read_start(path, 4), "0123");
  std::filesystem::remove(path);
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_THROW((void)read_text(path), Error) << "it never has a writer";
  EXPECT_EQ(read_start(path, 4), "");
  std::filesystem::remove(path);
  for (const char* other : {"/dev/zero", "/dev/null", "/", ""})
    EXPECT_THROW((void)read_text(other), Error) << other;
}

TEST(SweepCsv, Quotes) {
  const CsvFile f = parse_csv("a,b\r\n\"x, \"\"y\"\"\",\"1\n2\"\n,\n", "f");
  ASSERT_EQ(f.rows.size(), 2u);
  EXPECT_EQ(f.rows[0].fields, (std::vector<std::string>{"x, \"y\"", "1\n2"}));
  EXPECT_EQ(f.rows[1].line, 4);
  EXPECT_EQ(f.column("b"), 1u);
  for (const char* bad : {"", "a,b\n1\n", "a\n\"x\n", "a\n\"x\"y\n", "a\nx\"y\n"})
    EXPECT_THROW((void)parse_csv(bad, "f"), Error) << bad;
}

class SweepReference : public testing::Test {
 protected:
  ReferenceTable match(const std::string& csv, const std::string& more = "where: {table: lat}") {
    plan_ =
        plan_of(std::string(kHead) + "matrix: {provider: [bnxt, ionic], size: [256, 1KiB]}\nreference:\n" +
                "  file: x.csv\n  " + more +
                "\n  match: {provider: provider, size: size_bytes}\n"
                "  columns: {mean: avg, max: max, unit: us}\n  ours: latency_ns.mean\n");
    return match_reference(plan_, plan_.references[0], parse_csv(csv, "x.csv"), expand(plan_));
  }
  std::string refusal_of(const std::string& csv) {
    try {
      (void)match(csv);
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  }
  Plan plan_;
};

TEST_F(SweepReference, FindsRowsByValue) {
  const ReferenceTable t = match(
      "table,provider,size_bytes,avg,max,unit\nlat,ionic,1024,15.5,,us\nlat,bnxt,256,23.8,37.4,us\n"
      "rate,bnxt,1024,9,9,MB/s\n");
  ASSERT_EQ(t.rows.size(), 4u);
  EXPECT_EQ(t.rows[0]->figures.at("mean"), 23.8);
  EXPECT_EQ(t.rows[0]->figures.at("max"), 37.4);
  EXPECT_EQ(t.rows[0]->line, 3);
  EXPECT_FALSE(t.rows[1]) << "its table is another one";
  EXPECT_EQ(t.rows[3]->figures.at("mean"), 15.5) << "1KiB is 1024";
  EXPECT_FALSE(t.rows[3]->figures.contains("max"));
}

TEST_F(SweepReference, RefusesWhatDoesNotFit) {
  const std::string head = "table,provider,size_bytes,avg,max,unit\n";
  const std::vector<std::pair<std::string, std::string>> all = {
      {head, "no row of x.csv fits any cell"},
      {"table,provider,bytes,avg,max\n", "no column 'size_bytes'"},
      {"table,provider,size_bytes,mean,max\n", "no column 'avg'"},
      {head + "lat,bnxt,256,1,1,us\nlat,bnxt,256,2,2,us\n", "x.csv:2 and :3 both fit cell 1"},
      {head + "lat,bnxt,256,1,1,ms\n", "is in 'ms', not in us"},
      {head + "lat,bnxt,256,fast,1,us\n", "'fast' in column avg is not a number"},
  };
  for (const auto& [csv, says] : all)
    EXPECT_NE(refusal_of(csv).find(says), std::string::npos) << csv << refusal_of(csv);
}

TEST_F(SweepReference, PublishedFiguresStayInTheirOwnColumns) {
  const ReferenceTable t = match("table,provider,size_bytes,avg,max,unit\nlat,bnxt,256,23.8,37.4,us\n");
  Record r = record_of(0, 0, true);
  r.result["cells"] = {{{"metrics", {{"ops_per_s", 1000.0}, {"latency_ns", {{"mean", 7000.0}}}}}}};
  const std::string text = summary(plan_, expand(plan_), {0, 1, 2, 3}, {r}, {t});
  const std::size_t at = text.find("published, other machine: x.csv, table lat");
  ASSERT_NE(at, std::string::npos);
  EXPECT_EQ(text.substr(0, at).find("23.8"), std::string::npos) << "not among ours";
  const std::string theirs = text.substr(at);
  EXPECT_NE(theirs.find("ours latency_ns.mean us"), std::string::npos);
  EXPECT_NE(theirs.find("7.000"), std::string::npos) << "in their unit";
  EXPECT_NE(theirs.find("23.8"), std::string::npos);
  EXPECT_NE(text.find("not run"), std::string::npos);
}

TEST(SweepUnits, PathsSayTheirUnit) {
  EXPECT_EQ(unit_of_path("latency_ns.mean").name, "ns");
  EXPECT_EQ(unit_of_path("nvme.read.latency_ns.p99").name, "ns");
  EXPECT_EQ(unit_of_path("spread.ops_per_s.median").name, "ops/s");
  EXPECT_EQ(unit_of_path("bytes_per_s").name, "B/s");
  EXPECT_EQ(unit_of_path("elapsed_s").name, "s");
  EXPECT_EQ(unit_of_path("cost.cpu_ns_per_op").name, "ns");
  EXPECT_EQ(unit_of_path("ops").quantity, "number");
}

}  // namespace
}  // namespace doorbell::sweep
