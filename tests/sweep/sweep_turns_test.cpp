// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Two settings in turns: when it ends, what it says, and that looking often finds nothing that is not there.
// The program that is run is a script.
#include <gtest/gtest.h>

#include <cmath>
#include <doorbell/error.hpp>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <random>

#include "report/json.hpp"
#include "sweep/in_turns.hpp"
#include "sweep/shift.hpp"
#include "sweep_result.hpp"

namespace doorbell::sweep {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

/// How often equal settings are called unequal at one of the looks.
double false_alarms(double level, double spread_of_b) {
  std::mt19937_64 random(31);
  std::normal_distribution<double> normal;
  constexpr int kTrials = 600;
  int found = 0;
  for (int t = 0; t < kTrials; ++t) {
    std::vector<double> a, b;
    bool any = false;
    for (const std::size_t runs : kLooks) {
      while (a.size() < runs) {
        a.push_back(std::exp(0.01 * normal(random)));
        b.push_back(std::exp(spread_of_b * normal(random)));
      }
      const Factor f = factor_of(a, b, level);
      any = any || f.low > 1 || f.high < 1;
    }
    found += any ? 1 : 0;
  }
  return static_cast<double>(found) / kTrials;
}

TEST(SweepTurnsLooks, LookingOftenFindsNothingThatIsNotThere) {
  constexpr double kBound = 0.05 + 3.3 * 0.0089;  // 3.3 standard errors of a share of 600
  for (const double spread : {0.01, 0.1})
    EXPECT_LT(false_alarms(level_of_each_look(), spread), kBound) << spread;
  EXPECT_GT(false_alarms(kLevel, 0.01), kBound) << "the level must be divided";
}

class SweepTurns : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        fs::temp_directory_path() /
        fmt::format("turns-{}-{}", getpid(), testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(folder_);
    program_ = (folder_ / "program").string();
  }
  void TearDown() override { fs::remove_all(folder_); }

  /// The work of the script when it is called with this word.
  void on(const std::string& word, const std::string& does) {
    cases_ += fmt::format("{}) {} ;;\n", word, does);
    {
      std::ofstream out(program_);
      out << "#!/bin/sh\necho $1 >> " << (folder_ / "log").string() << "\ncase $1 in\n" << cases_ << "esac\n";
    }
    fs::permissions(program_, fs::perms::owner_all);
  }
  std::string print(const Json& result) {
    const fs::path file = folder_ / fmt::format("result-{}", files_++);
    std::ofstream(file) << report::to_line(result);
    return "cat " + file.string();
  }
  std::string rate(double ops, int batch = 1) {
    Json result = result_of({ops});
    result["cells"][0]["cell"]["batch"] = batch;
    result["cells"][0]["metrics"]["ops"] = 100;
    return print(result);
  }
  std::string corrupt() {
    Json result = result_of({100});
    result["cells"][0]["verify"]["corrupt"] = 3;
    result["cells"][0]["metrics"]["ops"] = 100;
    result["exit_code"] = 2;
    return print(result) + "; exit 2";
  }
  Turns run(const std::string& a, const std::string& b, double limit_s = 600, u64 seed = 1,
            std::size_t stop_after = ~0u) {
    what_.words = {std::vector{a}, std::vector{b}};
    what_.programs = {program_, program_};
    what_.limit_s = limit_s;
    what_.seed = seed;
    what_.rules = {.metrics = {"ops_per_s"}, .threshold = 0.05};
    std::size_t runs = 0;
    return run_in_turns(what_, {.stop = [&] { return runs >= stop_after; },
                                .progress = [&](const TurnsState& s) { runs = s.runs[0] + s.runs[1]; }});
  }
  std::string log() {
    std::ifstream in(folder_ / "log");
    std::string all, line;
    while (std::getline(in, line)) all += line;
    fs::remove(folder_ / "log");
    return all;
  }

  fs::path folder_;
  std::string program_, cases_;
  int files_ = 0;
  Turning what_;
};

TEST_F(SweepTurns, ItEndsWhenALookDecides) {
  on("a", rate(100));
  on("b", rate(250, 8));
  const Turns t = run("a", "b");
  EXPECT_EQ(t.end, TurnsEnd::decided);
  EXPECT_EQ(t.looks, 1u);
  EXPECT_EQ(t.runs_of(0), kLooks[0]);
  EXPECT_EQ(t.runs_of(1), kLooks[0]);
  EXPECT_EQ(t.code(), 0);
  EXPECT_EQ(
      sentence(t, 5),
      "B is faster than A by a factor of 2.500 in ops_per_s (2.500 to 2.500 at 95 %, 4 runs of A and 4 of B); "
      "the data was right on both sides");
  const Json json = to_json(t, what_);
  EXPECT_EQ(json.at("complete"), true);
  EXPECT_EQ(json.at("sides")[1].at("figures")[0].at("ops_per_s").size(), 4u);
  EXPECT_EQ(json.at("sides")[0].at("checked"), 200u) << "50 of each run";
  const Turns turned = run("b", "a");
  EXPECT_EQ(turned.code(), 3);
  EXPECT_EQ(sentence(turned, 5).find("A is faster than B by a factor of 2.500"), 0u) << sentence(turned, 5);
}

TEST_F(SweepTurns, EachSideIsFirstEquallyOftenAndTheSeedSaysWhen) {
  on("a", rate(100));
  on("b", rate(250));
  std::set<std::string> orders;
  for (const u64 seed : {1, 2, 3, 4, 5, 6}) {
    (void)run("a", "b", 600, seed);
    const std::string order = log();
    ASSERT_EQ(order.size(), 8u);
    for (std::size_t i = 0; i < 8; i += 4) EXPECT_NE(order[i], order[i + 2]) << order;
    for (std::size_t i = 0; i < 8; i += 2) EXPECT_NE(order[i], order[i + 1]) << order;
    (void)run("a", "b", 600, seed);
    EXPECT_EQ(log(), order) << "the same seed";
    orders.insert(order);
  }
  EXPECT_GT(orders.size(), 1u);
}

TEST_F(SweepTurns, WrongDataOnEitherSideIsSaidAndEndsIt) {
  on("good", rate(100));
  on("bad", corrupt());
  for (const auto& [a, b, side] : {std::tuple{"good", "bad", "B"}, {"bad", "good", "A"}}) {
    const Turns t = run(a, b);
    EXPECT_EQ(t.code(), 2);
    EXPECT_EQ(t.end, TurnsEnd::failed);
    EXPECT_EQ(sentence(t, 5).find(fmt::format("FAILED: run 1 of {} has errors", side)), 0u) << sentence(t, 5);
    EXPECT_NE(sentence(t, 5).find("3 corrupt"), std::string::npos) << sentence(t, 5);
    EXPECT_EQ(to_json(t, what_).at("complete"), false);
  }
}

TEST_F(SweepTurns, ARunWithoutAGoodEndIsNone) {
  on("good", rate(100));
  on("crash", "kill -9 $$");
  on("silent", "exit 0");
  on("usage", "echo no such thing >&2; exit 1");
  on("absent", "echo no card >&2; exit 77");
  Json partial = result_of({100});
  partial["complete"] = false;
  on("partial", print(partial));
  for (const auto& [word, code] :
       {std::pair{"crash", 2}, {"silent", 2}, {"usage", 1}, {"absent", 77}, {"partial", 2}}) {
    const Turns t = run("good", word);
    EXPECT_EQ(t.code(), code) << word << ": " << sentence(t, 5);
    EXPECT_EQ(t.end, TurnsEnd::failed) << word;
  }
  EXPECT_NE(sentence(run("good", "usage"), 5).find("no such thing"), std::string::npos);
  EXPECT_EQ(sentence(run("good", "absent"), 5).find("SKIPPED: B cannot run here: no card"), 0u);
}

TEST_F(SweepTurns, AnInterruptedOneIsPartialAndConcludesNothing) {
  on("a", rate(100));
  on("b", rate(50));
  const Turns t = run("a", "b", 600, 1, 3);
  EXPECT_EQ(t.code(), 130);
  EXPECT_EQ(t.runs_of(0) + t.runs_of(1), 3u);
  EXPECT_EQ(sentence(t, 5).find("INTERRUPTED after"), 0u) << sentence(t, 5);
  EXPECT_EQ(to_json(t, what_).at("ended"), "interrupted");
  const Turns none = run("a", "b", 600, 1, 0);
  EXPECT_EQ(none.code(), 130);
  EXPECT_TRUE(none.comparison.cells.empty());
}

TEST_F(SweepTurns, ARunThatTheTimeDoesNotSufficeForIsLeftOut) {
  on("a", rate(100));
  on("slow", "exec sleep 300");
  const Turns t = run("a", "slow", 1);
  EXPECT_EQ(t.end, TurnsEnd::time);
  EXPECT_EQ(t.code(), 1) << "nothing can be said";
  EXPECT_EQ(t.runs_of(1), 0u);
  EXPECT_NE(sentence(t, 5).find("the time is over"), std::string::npos);
}

TEST_F(SweepTurns, WhatIsNotShownStaysUndecided) {
  // Each side is fast and slow in turns.
  const std::string log = (folder_ / "log").string();
  on("a",
     fmt::format("if [ $(($(grep -c a {}) % 2)) = 0 ]; then {}; else {}; fi", log, rate(100), rate(300)));
  on("b",
     fmt::format("if [ $(($(grep -c b {}) % 2)) = 0 ]; then {}; else {}; fi", log, rate(110), rate(290)));
  const Turns t = run("a", "b", 600, 1, 2 * kLooks[1] + 1);
  EXPECT_EQ(t.looks, 3u) << "after 4 and 8 runs, and at the end";
  EXPECT_EQ(t.comparison.figures(Change::undecided), 1u);
  EXPECT_NE(sentence(t, 5).find("undecided"), std::string::npos);
}

TEST_F(SweepTurns, DataThatNobodyCheckedIsSaid) {
  Json blind = result_of({100});
  blind["cells"][0]["verify"]["checked"] = 0;
  blind["cells"][0]["metrics"]["ops"] = 100;
  on("a", rate(50));
  on("blind", print(blind));
  EXPECT_NE(sentence(run("a", "blind"), 5).find("the data was NOT verified on B"), std::string::npos);
}

TEST_F(SweepTurns, CellsThatDoNotMeetAreAnErrorAtOnce) {
  Json two = result_of({100});
  two["cells"].push_back(two["cells"][0]);
  two["cells"][0]["cell"]["batch"] = 2;
  two["cells"][1]["cell"]["batch"] = 4;
  for (Json& cell : two["cells"]) cell["metrics"]["ops"] = 1;
  on("a", rate(100));
  on("two", print(two));
  EXPECT_THROW((void)run("a", "two"), Error);
  EXPECT_EQ(log().size(), std::string("atwo").size());
}

}  // namespace
}  // namespace doorbell::sweep
