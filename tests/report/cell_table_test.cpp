// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The table with one row a cell.
#include "report/cell_table.hpp"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <sstream>

#include "report/json.hpp"
#include "report/notable.hpp"
#include "report/text.hpp"
#include "report_sample.hpp"

namespace doorbell::report {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::size_t characters_of(const std::string& line) {
  return static_cast<std::size_t>(
      std::ranges::count_if(line, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

void expect_fits(const std::string& table) {
  for (const std::string& line : lines_of(table)) {
    EXPECT_LE(characters_of(line), kTableColumns) << line;
    EXPECT_TRUE(line.empty() || line.back() != ' ') << line;
  }
}

/// A sound cell of some path.
Cell sound(u64 size, double ops_per_s) {
  Cell c;
  c.path = "some";
  c.cell = {{"op", "put"}, {"size_bytes", size}, {"batch", 4}};
  c.initiator_kind = "cpu";
  c.device_kind = "model";
  c.device_name = "dev0";
  c.metrics.ops = 1000;
  c.metrics.bytes = 1000 * size;
  c.metrics.ops_per_s = ops_per_s;
  c.metrics.bytes_per_s = ops_per_s * static_cast<double>(size);
  c.metrics.latency_ns.p50 = 1500;
  c.metrics.latency_ns.p99 = 25'000;
  c.verify.mode = "full";
  c.verify.checked = 1000;
  c.verify.checked_bytes = 1000 * size;
  c.errors = {{"completion", 0}, {"timeout", 0}};
  return c;
}

Result of(std::vector<Cell> cells) {
  Result r;
  r.cells = std::move(cells);
  return r;
}

TEST(CellTable, OneRow) {
  EXPECT_EQ(to_short_text(of({sound(4096, 1e6)})),
            "some, dev0 (software model), initiator cpu\n"
            "  op=put  batch=4\n"
            "  what  size B  kIOPS   GB/s  p50 us  p99 us  checked  verdict\n"
            "  some    4096   1000  4.096   1.500   25.00  all      OK\n"
            "\n"
            "verified 1000 operations (4.096 MB)\n"
            "OK\n");
}

TEST(CellTable, WhatVariesNamesTheRowsAndTheRestIsSaidOnce) {
  std::vector<Cell> cells;
  for (const u64 size : {64u, 65536u})
    for (const char* part : {"latency", "rate"}) {
      cells.push_back(sound(size, 2e5));
      cells.back().cell["part"] = part;
      // Follows from the part alone, and not from the size.
      cells.back().cell["in_flight"] = std::string(part) == "rate" ? 64 : 1;
      cells.back().cell["slots"] = size == 64 ? 8 : 2;
    }
  EXPECT_EQ(cell_table(of(cells)),
            "some, dev0 (software model), initiator cpu\n"
            "  op=put  batch=4\n"
            "  latency:  in_flight=1\n"
            "  rate:  in_flight=64\n"
            "  what                  size B  kIOPS    GB/s  p50 us  p99 us  checked  verdict\n"
            "  some latency slots=8      64  200.0  0.0128   1.500   25.00  all      OK\n"
            "  some rate slots=8         64  200.0  0.0128   1.500   25.00  all      OK\n"
            "  some latency slots=2   65536  200.0   13.11   1.500   25.00  all      OK\n"
            "  some rate slots=2      65536  200.0   13.11   1.500   25.00  all      OK\n");
}

TEST(CellTable, ManyRowsOfAnyMagnitudeFit) {
  std::vector<Cell> cells;
  for (u64 i = 0; i < 60; ++i) {
    cells.push_back(sound(u64{1} << (i % 31), i % 2 == 0 ? 72e6 : 0.024));
    cells.back().cell["queue"] = i;
    cells.back().metrics.latency_ns.p99 = i % 3 == 0 ? 9.87e9 : 12;
    cells.back().verify.mode = i % 5 == 0 ? "sample=0.001" : "full";
  }
  const std::string table = cell_table(of(cells));
  expect_fits(table);
  EXPECT_EQ(std::ranges::count_if(lines_of(table), [](const auto& l) { return l.starts_with("  some "); }),
            60);
  // One unit a column: it is in the header, and no cell has another.
  EXPECT_EQ(table.find("MIOPS"), std::string::npos);
  EXPECT_NE(table.find("72000"), std::string::npos);
}

TEST(CellTable, ALongNameTakesMoreLinesAndLosesNothing) {
  std::vector<Cell> cells = {sound(4096, 1e6), sound(4096, 1e6)};
  const std::string title =
      "a title of many words which goes on and on until no table of one hundred columns could hold it";
  cells[0].cell["title"] = title;
  cells[1].cell["title"] = std::string(300, 'x') + " end";
  const std::string table = cell_table(of(cells));
  std::string words;
  for (const std::string& line : lines_of(table)) {
    if (line.find("xxx") == std::string::npos) {
      EXPECT_LE(line.size(), kTableColumns) << line;
    }
    words += line + " ";
  }
  std::istringstream in(title);
  for (std::string word; in >> word;) EXPECT_NE(words.find(word), std::string::npos) << word;
  EXPECT_NE(words.find(std::string(300, 'x')), std::string::npos);
}

TEST(CellTable, WhatIsNotKnownIsADash) {
  Cell c = sound(4096, 1e6);
  c.cell = nlohmann::ordered_json::object();
  c.metrics = {};
  c.metrics.ops_per_s = std::numeric_limits<double>::quiet_NaN();
  const std::vector<std::string> lines = lines_of(cell_table(of({c})));
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[2], "  some       -      -     0       -       -  all      OK");
  c.metrics.ops = 3;
  c.metrics.bytes = 3 * 80;
  EXPECT_NE(cell_table(of({c})).find("80"), std::string::npos) << "bytes an operation";
  EXPECT_EQ(cell_table(Result{}), "");
}

TEST(CellTable, LatenciesBeyondTheBucketsAreSaid) {
  Cell c = sound(4096, 1e6);
  c.metrics.latency_ns.count = 60;
  c.metrics.latency_ns.bins = {{1000, 4}, {u64{1} << 33, 5}};
  EXPECT_EQ(cell_table(of({c})).find("17.2 s"), std::string::npos);
  EXPECT_FALSE(to_json(c.metrics)["latency_ns"].contains("beyond_range"));
  c.metrics.latency_ns.bins.emplace_back(u64{1} << 34, 51);
  EXPECT_NE(cell_table(of({c})).find("51 of 60 operations took 17.2 s or more"), std::string::npos)
      << cell_table(of({c}));
  EXPECT_NE(to_text(c, false).find("51 of 60 operations took 17.2 s or more"), std::string::npos);
  EXPECT_EQ(to_json(c.metrics)["latency_ns"]["beyond_range"], 51);
}

TEST(CellTable, ParametersOfAnyKindDoNoHarm) {
  std::vector<Cell> cells(4, sound(64, 1e6));
  cells[0].cell["list"] = "host";
  cells[1].cell["list"] = nullptr;
  cells[1].cell["title"] = 5;
  cells[2].cell = nullptr;
  cells[3].cell["list"] = {1, 2};
  cells[3].extra["beside"] = "no object";
  EXPECT_NE(cell_table(of(cells)).find("some host"), std::string::npos) << cell_table(of(cells));
}

TEST(CellTable, IsAsciiUnlessANameIsNotAndThenStillLinesUp) {
  EXPECT_TRUE(std::ranges::all_of(to_short_text(test::sample_result()), [](char c) {
    return static_cast<unsigned char>(c) < 0x80 && (c >= ' ' || c == '\n');
  }));
  std::vector<Cell> cells = {sound(64, 1e6), sound(64, 1e6)};
  cells[0].device_name = "caf\xc3\xa9 \x1b[2J";
  const std::vector<std::string> lines = lines_of(cell_table(of(cells)));
  ASSERT_GE(lines.size(), 5u);
  const std::string &a = lines[lines.size() - 2], &b = lines[lines.size() - 1];
  EXPECT_NE(a.find("caf\xc3\xa9 ?[2J"), std::string::npos) << a;
  EXPECT_EQ(characters_of(a), characters_of(b)) << a << "\n" << b;
}

TEST(CellTable, FailuresAreInTheRowAndTheirReasonsBelow) {
  Cell bad = sound(4096, 1e6);
  bad.verify.corrupt = 3;
  bad.verify.first.push_back({"corrupt", 0x1000, 41});
  bad.errors["timeout"] = 2;
  bad.extra["model"] = {{"reads", 5}, {"dma_faults", 7}, {"injected", {{"drop", 2}, {"delay", 0}}}};
  Cell odd = sound(64, 1e6);
  odd.extra["stream"] = {{"rnr_events", 4}, {"rnr_time_ns", 99}, {"calls", 12}};
  Cell blind = sound(64, 1e6);
  blind.verify = {};
  Cell part = sound(64, 1e6);
  part.verify.unverifiable = 6;
  const std::string text = to_short_text(of({bad, odd, blind, part, sound(64, 1e6)}));
  EXPECT_EQ(
      text.substr(text.find("  what")),
      "  what  size B  kIOPS    GB/s  p50 us  p99 us  checked  verdict\n"
      "  some    4096   1000   4.096   1.500   25.00  all      FAILED [1]\n"
      "  some      64   1000  0.0640   1.500   25.00  all      OK [2]\n"
      "  some      64   1000  0.0640   1.500   25.00  nothing  unverified\n"
      "  some      64   1000  0.0640   1.500   25.00  99.4 %   OK [3]\n"
      "  some      64   1000  0.0640   1.500   25.00  all      OK\n"
      "[1] verify    verified 1000 I/Os (4.096 MB): 3 corrupt, 0 misplaced, 0 stale, 0 duplicated, 0 missing\n"
      "            corrupt at byte 0x1000, sequence 41 was due\n"
      "  errors    2 timeout\n"
      "  counters  model dma_faults 7, model injected drop 2\n"
      "[2] counters  stream rnr_events 4\n"
      "[3] verify    6 of data not known to be written\n"
      "\n"
      "verified 4000 operations (4.288 MB)\n"
      "FAILED: 3 corrupt, 2 timeout\n");
}

TEST(CellTable, ReadsOfDataOfUnknownOriginSayWhyNothingWasChecked) {
  Cell c = sound(64, 1e6);
  c.verify = {};
  c.verify.mode = "full";
  c.verify.unverifiable = 7;
  const std::string text = to_short_text(of({c}));
  EXPECT_NE(
      text.find("nothing  unverified [1]\n[1] verify    NOT verified: 7 I/Os read data that doorbell is not "
                "known to have written; a run that writes it first makes it known\n"),
      std::string::npos)
      << text;
}

TEST(CellTable, AllErrorClassesShow) {
  for (const char* kind : {"completion", "timeout", "removal", "late", "a class of some path"}) {
    Cell c = sound(64, 1e6);
    c.errors[kind] = 1;
    const std::string text = to_short_text(of({sound(64, 1e6), c}));
    EXPECT_NE(text.find("FAILED [1]"), std::string::npos) << kind;
    EXPECT_NE(text.find(fmt::format("errors    1 {}\n", kind)), std::string::npos) << text;
  }
  for (u64 Verify::*field :
       {&Verify::corrupt, &Verify::misplaced, &Verify::stale, &Verify::duplicated, &Verify::missing}) {
    Cell c = sound(64, 1e6);
    c.verify.*field = 1;
    EXPECT_NE(to_short_text(of({c})).find("FAILED [1]"), std::string::npos);
  }
}

TEST(CellTable, ASpreadOfRepeatsIsNoted) {
  Cell c = sound(64, 1e6);
  c.repeats.resize(7);
  c.spread["ops_per_s"].noisy = true;
  const std::string text = to_short_text(of({c}));
  EXPECT_NE(text.find("OK, noisy"), std::string::npos);
  EXPECT_NE(text.find("\nnoisy: "), std::string::npos);
}

TEST(CellTable, PartsOfALoneCellAreRows) {
  const std::string one = cell_table(of({test::sample_nvme_cell()}));
  EXPECT_NE(one.find("\n    write  "), std::string::npos) << one;
  EXPECT_NE(one.find("\n    read  "), std::string::npos) << one;
  const std::string two = cell_table(of({test::sample_nvme_cell(), test::sample_nvme_cell()}));
  EXPECT_EQ(two.find("write"), std::string::npos) << two;
}

TEST(CellTable, WarningsOfOneKindAreOneLine) {
  Result r = of({sound(64, 1e6)});
  r.warnings = {"load 1.50 on 2 CPUs", "step a: put 64 B: waited 10 % of the time",
                "step b: put 128 B: waited 7.5 % of the time", "step c: put 256 B: waited 30 % of the time",
                "step c: something else"};
  const std::string text = to_short_text(r);
  EXPECT_NE(text.find("warning: load 1.50 on 2 CPUs\n"
                      "warning: step a: put 64 B: waited 10 % of the time (and 2 more of this kind)\n"
                      "warning: step c: something else\n"),
            std::string::npos)
      << text;
}

TEST(CellTable, ColoursChangeNothingElse) {
  const Result r = test::sample_result();
  std::string plain, coloured = to_short_text(r, true);
  EXPECT_NE(coloured.find("\x1b[1;31mFAILED, noisy [1]\x1b[0m"), std::string::npos) << coloured;
  for (std::size_t i = 0; i < coloured.size(); ++i) {
    if (coloured[i] == '\x1b') i = coloured.find('m', i);
    else plain += coloured[i];
  }
  EXPECT_EQ(plain, to_short_text(r));
}

TEST(CellTable, WaysMeasuredInTurnsFit) {
  std::vector<Cell> cells = {sound(64, 1e6), sound(64, 1e6)};
  const nlohmann::ordered_json ratio = {{"median", 1.068}, {"ci_low", 1.0}, {"ci_high", 1.235}};
  cells[0].extra["beside"] = {{"label", "io_uring"}};
  cells[1].extra["beside"] = {
      {"label", "fio libaio"}, {"ops_per_s_ratio", ratio}, {"mean_latency_ratio", ratio}};
  const std::string text = to_short_text(of(cells));
  expect_fits(text);
  EXPECT_NE(text.find("some fio libaio"), std::string::npos) << text;
  EXPECT_NE(text.find("1.068 [1.000 to 1.235]"), std::string::npos) << text;
}

TEST(NotableCounters, AreThoseOfTroubleThatAreNotZero) {
  EXPECT_EQ(notable_counters({{"model",
                               {{"reads", 9},
                                {"empty_polls", 4},
                                {"short_reads", 3},
                                {"lost", 2},
                                {"lost_percent", 0.5},
                                {"dma_faults", 0},
                                {"removed", true},
                                {"broken", false},
                                {"cq_overflows", 1}}},
                              {"drops", {{"socket", 5}, {"ring", 0}}},
                              {"rdma", {{"completion_statuses", {{"remote operation error", 3}}}}},
                              {"list", {1, 2}}}),
            (std::vector<std::string>{"model lost 2", "model cq_overflows 1", "drops socket 5",
                                      "rdma completion_statuses remote operation error 3"}));
  EXPECT_TRUE(notable_counters(nullptr).empty());
}

}  // namespace
}  // namespace doorbell::report
