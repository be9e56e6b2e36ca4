// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Comparisons: what counts as a run, what the runs show, and which cells cannot be compared.
#include <gtest/gtest.h>

#include <cmath>
#include <doorbell/error.hpp>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <numeric>
#include <random>
#include <set>

#include "measure/statistics.hpp"
#include "sweep/compare.hpp"
#include "sweep/csv_file.hpp"
#include "sweep/shift.hpp"
#include "sweep/text_file.hpp"
#include "sweep_result.hpp"

namespace doorbell::sweep {
namespace {

using Json = nlohmann::ordered_json;
using Maybe = std::vector<std::optional<double>>;

TEST(SweepCompare, RegressionNeedsSizeAndCertainty) {
  const Maybe seven = {100, 101, 99, 100, 102, 98, 100};
  const auto scaled = [&](double f) {
    Maybe out;
    for (const auto& v : seven) out.emplace_back(*v * f);
    return out;
  };
  const auto change = [&](const std::string& metric, double f, double threshold = 0.05) {
    return ratio_of(metric, seven, scaled(f), threshold).change;
  };
  EXPECT_EQ(change("ops_per_s", 0.9), Change::regression);
  EXPECT_EQ(change("ops_per_s", 1.1), Change::better);
  EXPECT_EQ(change("p50_ns", 1.1), Change::regression);
  EXPECT_EQ(change("p50_ns", 0.9), Change::better);
  EXPECT_EQ(change("ops_per_s", 0.96), Change::slightly_worse) << "certain, but within the threshold";
  EXPECT_EQ(change("ops_per_s", 1.04), Change::slightly_better);
  EXPECT_EQ(change("ops_per_s", 1.0), Change::same);
  // 20 % in one direction is a factor of 1.2 up and of 1 / 1.2 down.
  EXPECT_EQ(change("ops_per_s", 1 / 1.19, 0.2), Change::slightly_worse);
  EXPECT_EQ(change("ops_per_s", 1 / 1.21, 0.2), Change::regression);
  EXPECT_EQ(change("p50_ns", 1.19, 0.2), Change::slightly_worse);
  EXPECT_EQ(change("p50_ns", 1.21, 0.2), Change::regression);
  EXPECT_EQ(change("ops_per_s", 1.19, 0.2), Change::slightly_better);
  EXPECT_EQ(change("p50_ns", 1 / 1.21, 0.2), Change::better);
  const Maybe noisy = {50, 150, 80, 130, 60, 100, 110};
  EXPECT_EQ(ratio_of("ops_per_s", seven, noisy, 0.05).change, Change::undecided)
      << "an interval that holds 1 and 30 % shows neither";
  const Maybe three(seven.begin(), seven.begin() + 3), four(seven.begin(), seven.begin() + 4);
  EXPECT_EQ(ratio_of("ops_per_s", three, Maybe(3, 1.0), 0.05).change, Change::undecided) << "too few";
  EXPECT_EQ(ratio_of("ops_per_s", four, Maybe(4, 1.0), 0.05).change, Change::regression);
}

TEST(SweepCompare, RunsWithoutAFigureAreLeftOut) {
  const Ratio r = ratio_of("p99_ns", {1, std::nullopt, 2, 0}, {3, -5, std::nullopt, 3, 0}, 0.05);
  EXPECT_EQ(r.runs_before, 2u);
  EXPECT_EQ(r.runs_after, 2u);
  EXPECT_DOUBLE_EQ(r.before, 1.5);
  EXPECT_DOUBLE_EQ(r.after, 3);
  EXPECT_NEAR(r.median, std::sqrt(3.0 * 1.5), 1e-9);
  EXPECT_FALSE(ratio_of("p99_ns", {std::nullopt}, {1}, 0.05).known());
  EXPECT_FALSE(ratio_of("p99_ns", {1}, {0}, 0.05).known());
}

TEST(SweepCompare, RepeatsOfOneProcessDecideOnlyWhatProcessesDoNotExplain) {
  const std::vector<double> a = {100, 101, 99, 100, 102};
  const auto change = [&](double f) {
    std::vector<double> b;
    for (const double v : a) b.push_back(v * f);
    return ratio_of_repeats(ratio_of("ops_per_s", {100}, {100 * f}, 0.05), a, b, 0.05);
  };
  EXPECT_EQ(change(139).change, Change::better);
  EXPECT_EQ(change(0.3).change, Change::regression);
  EXPECT_TRUE(change(0.3).by_repeats);
  EXPECT_EQ(change(0.3).repeats_before, 5u);
  EXPECT_NEAR(change(0.3).median, 0.3, 1e-9);
  EXPECT_EQ(change(2).change, Change::undecided) << "another process may differ by as much";
  EXPECT_EQ(change(0.5).change, Change::undecided);
  EXPECT_EQ(change(1).change, Change::undecided) << "equal repeats do not show equal processes";
  EXPECT_FALSE(
      ratio_of_repeats(ratio_of("ops_per_s", {1}, {9}, 0.05), {1, 1, 1}, {9, 9, 9}, 0.05).by_repeats);
  const Maybe runs = {1, 1, 1, 1};
  const Ratio enough = ratio_of_repeats(ratio_of("ops_per_s", runs, runs, 0.05), a, {9, 9, 9, 9}, 0.05);
  EXPECT_FALSE(enough.by_repeats) << "runs are better";
  EXPECT_EQ(enough.change, Change::same);
}

TEST(SweepCompare, AVerdictByRepeatsIsNamedApart) {
  const Measured a = one_run({100, 101, 99, 100}), b = one_run({10, 10.1, 9.9, 10});
  const Comparison c = compare(a, b, {"ops_per_s"}, 0.05);
  EXPECT_EQ(c.exit_code(), 3);
  EXPECT_NE(verdict(c, 5).find("by repeats of too few processes"), std::string::npos) << verdict(c, 5);
  EXPECT_NE(to_text(c, "a", "b").find("by 4 and 4 repeats"), std::string::npos) << to_text(c, "a", "b");
  const Json json = to_json(c);
  EXPECT_EQ(json.at("decided_by_repeats"), 1);
  EXPECT_EQ(json.at("cells")[0].at("ratios")[0].at("basis"), "repeats");
  EXPECT_EQ(json.at("cells")[0].at("ratios")[0].at("repeats_after"), 4);
  EXPECT_EQ(compare(a, a, {"ops_per_s"}, 0.05).exit_code(), 0);
  EXPECT_EQ(to_json(compare(one_run({1}), one_run({1}), {"ops_per_s"}, 0.05))
                .at("cells")[0]
                .at("ratios")[0]
                .at("basis"),
            nullptr);
}

TEST(SweepCompare, DemandsOfB) {
  const auto with_p99 = [](Json& result) {
    for (Json& repeat : result["cells"][0]["repeats"]) repeat["p99_ns"] = 5000;
  };
  const Measured a = one_run({100, 100, 100, 100}), b = one_run({100, 110, 120, 500}, with_p99);
  const auto code = [&](const Measured& after, const Demands& demands) {
    return compare(a, after, {.metrics = {"ops_per_s"}, .threshold = 0.05, .demands = demands});
  };
  EXPECT_EQ(code(b, {.min_ops_per_s = 115}).exit_code(), 0) << "the median is 115";
  EXPECT_EQ(code(b, {.min_ops_per_s = 116}).exit_code(), 3);
  EXPECT_EQ(code(b, {.max_p99_ns = 5000}).exit_code(), 0);
  EXPECT_EQ(code(b, {.max_p99_ns = 4999}).exit_code(), 3);
  EXPECT_EQ(code(a, {.max_p99_ns = 1e9}).exit_code(), 3) << "a figure that is not there meets nothing";
  EXPECT_EQ(code(b, {.min_bytes_per_s = 1}).exit_code(), 3);
  EXPECT_EQ(code(b, {.decided = true}).exit_code(), 3) << "one run a side";
  EXPECT_EQ(code(b, {}).exit_code(), 0);
  const std::string text = verdict(code(b, {.min_ops_per_s = 116e3}), 5);
  EXPECT_NE(text.find("TOO SLOW: nvme batch=1: ops_per_s of B is 0.115 kIOPS, and at least 116.0 kIOPS"),
            std::string::npos)
      << text;
  EXPECT_NE(verdict(code(b, {.max_p99_ns = 6000}), 5).find("B has what is demanded in every cell"),
            std::string::npos);
}

TEST(SweepCompare, PacketsAreNoOperations) {
  const auto packets = [](Json& result) { result["cells"][0]["operation"] = "packet"; };
  const auto others = [](Json& result) { result["cells"][0]["operation"] = "operation"; };
  const auto none = [](Json& result) { result["cells"][0].erase("operation"); };
  const std::vector<double> rates = {2e6, 2e6, 2e6, 2e6};
  const auto text_of = [&](const Measured& a, const Measured& b) {
    const Comparison c =
        compare(a, b, {.metrics = {"ops_per_s"}, .threshold = 0.05, .demands = {.min_ops_per_s = 4e6}});
    return to_text(c, "a", "b") + verdict(c, 5) + to_json(c).at("cells")[0].at("operations").dump();
  };
  struct Case {
    std::function<void(Json&)> a, b;
    const char *figure, *demand, *operations;
  };
  for (const Case& one :
       {Case{packets, packets, "2.000 Mpps", "at least 4.000 Mpps", R"(["packet"])"},
        Case{others, others, "2000 kIOPS", "at least 4000 kIOPS", R"(["operation"])"},
        Case{none, none, "2000 kIOPS", "at least 4000 kIOPS", R"(["operation"])"},
        Case{packets, others, "2000 k ops/s", "at least 4000 k ops/s", R"(["operation","packet"])"}}) {
    const std::string text = text_of(one_run(rates, one.a), one_run(rates, one.b));
    for (const char* expected : {one.figure, one.demand, one.operations})
      EXPECT_NE(text.find(expected), std::string::npos) << expected << " in " << text;
  }
}

/// As many runs, with rates around `ops`.
Measured runs_of(std::size_t runs, double ops, const std::function<void(Json&)>& change = {}) {
  Measured m;
  m.name = "m";
  for (std::size_t i = 0; i < runs; ++i) {
    Json result = result_of({ops * (1 + static_cast<double>(i) / 1000)});
    if (change) change(result);
    add_result(result, "r", &m);
  }
  return m;
}

TEST(SweepCompare, ARunIsOneObservationHoweverManyRepeatsItHas) {
  Measured a, b;
  std::vector<double> repeats(50, 100);
  add_result(result_of(repeats), "a", &a);
  for (double& r : repeats) r *= 0.5;
  repeats[0] = 1e6;
  add_result(result_of(repeats), "b", &b);
  const Comparison c = compare(a, b, {"ops_per_s"}, 0.05);
  const Ratio& r = c.cells[0].ratios[0];
  EXPECT_EQ(r.runs_before, 1u);
  EXPECT_EQ(r.change, Change::undecided);
  EXPECT_DOUBLE_EQ(r.after, 50) << "the median of its repeats";
  EXPECT_EQ(c.exit_code(), 0);
  const std::string text = verdict(c, 5);
  EXPECT_NE(text.find("UNDECIDED"), std::string::npos) << text;
  EXPECT_NE(text.find("'rounds: 7'"), std::string::npos) << text;
  EXPECT_EQ(compare(runs_of(7, 100), runs_of(7, 50), {"ops_per_s"}, 0.05).exit_code(), 3);
}

TEST(SweepCompare, TooFewRunsAreSaidApartFromRunsThatDiffer) {
  const auto said = [](std::size_t a, std::size_t b) {
    const Comparison c = compare(runs_of(a, 100), runs_of(b, 50), {"ops_per_s"}, 0.05);
    return to_text(c, "a", "b") + verdict(c, 5);
  };
  for (const auto& [a, b] : {std::pair{3u, 3u}, {3u, 4u}, {3u, 5u}, {1u, 30u}}) {
    EXPECT_NE(said(a, b).find("  undecided: too few runs\n"), std::string::npos) << said(a, b);
    EXPECT_NE(said(a, b).find("1 of them with too few runs: a verdict takes 4 or more"), std::string::npos);
  }
  for (const auto& [a, b] : {std::pair{4u, 4u}, {4u, 7u}})
    EXPECT_NE(said(a, b).find("REGRESSION"), std::string::npos) << said(a, b);
  const Comparison wide = compare(runs_of(4, 100),
                                  runs_of(4, 100,
                                          [n = 0](Json& result) mutable {
                                            result["cells"][0]["repeats"][0]["ops_per_s"] =
                                                ++n % 2 == 0 ? 50 : 200;
                                          }),
                                  {"ops_per_s"}, 0.05);
  EXPECT_EQ((to_text(wide, "a", "b") + verdict(wide, 5)).find("too few"), std::string::npos);
  EXPECT_EQ(wide.figures(Change::undecided), 1u);
}

TEST(SweepCompare, CellsMeetByParameters) {
  Measured other;
  add_result(result_of({50}), "c", &other, {{"size", "1"}});
  const Measured a = runs_of(7, 100);
  EXPECT_FALSE(compare(a, a, {"ops_per_s"}, 0.05).regressed());
  EXPECT_THROW((void)compare(a, other, {"ops_per_s"}, 0.05), Error);
  EXPECT_THROW(add_result({{"schema", "other"}}, "d", &other), Error);
  EXPECT_THROW(add_result({{"schema", 5}}, "d", &other), Error);
}

TEST(SweepCompare, CellsThatAPlansOptionsDoNotTellApartKeepTheirParameters) {
  Json both = result_of({100});
  both["cells"].push_back(cell_of(both));
  both["cells"][1]["cell"]["batch"] = 2;
  Measured m;
  add_result(both, "m", &m, {{"size", "1:2"}});
  EXPECT_EQ(m.order.size(), 2u);
}

TEST(SweepCompare, TheMostUnpairedRunsOfAllMetricsAreKept) {
  const auto with_p99 = [](Json& r) { cell_of(r)["repeats"][0]["p99_ns"] = 5; };
  Measured a = runs_of(7, 100, with_p99), b = runs_of(4, 100);
  const Comparison c = compare(a, b, {"p99_ns", "ops_per_s"}, 0.05);
  EXPECT_EQ(c.cells[0].unpaired, 7u) << "7 and 0, then 7 and 4";
  EXPECT_FALSE(c.cells[0].ratios[0].known());
}

struct NotComparable {
  const char* title;
  std::function<void(Json&)> change;
  int exit_code;
  const char* says;
};

TEST(SweepCompare, WhatIsNotValidOnBothSidesIsNotCompared) {
  const std::vector<NotComparable> all = {
      {"corrupt", [](Json& r) { cell_of(r)["verify"]["corrupt"] = 3; }, 2, "21 corrupt"},
      {"timeouts", [](Json& r) { cell_of(r)["errors"]["timeout"] = 1; }, 2, "7 timeout"},
      {"partial", [](Json& r) { r["complete"] = false; }, 3, "7 incomplete runs"},
      {"failed", [](Json& r) { r["exit_code"] = 1; }, 3, "7 runs with exit code 1"},
      {"a figure above a limit", [](Json& r) { r["exit_code"] = 2; }, 2, "7 runs with exit code 2"},
      {"no repeat", [](Json& r) { cell_of(r)["repeats"] = Json::array(); }, 3, "7 runs without a repeat"},
      {"no cell", [](Json& r) { r["cells"] = Json::array(); }, 3, "7 runs without a measured cell"},
  };
  const Measured good = runs_of(7, 100);
  for (const NotComparable& u : all) {
    const Measured bad = runs_of(7, 100, u.change);
    const Comparison c = compare(good, bad, {"ops_per_s"}, 0.05);
    EXPECT_EQ(c.exit_code(), u.exit_code) << u.title;
    EXPECT_EQ(c.not_comparable(), 1u) << u.title;
    for (const Ratio& r : c.cells[0].ratios) EXPECT_EQ(r.change, Change::not_comparable) << u.title;
    const std::string text = to_text(c, "a", "b") + verdict(c, 5);
    EXPECT_NE(text.find(u.says), std::string::npos) << text;
    EXPECT_NE(text.find("not comparable: B: "), std::string::npos) << text;
    EXPECT_NE(text.find("NOT COMPARABLE: 1 of 1 cells"), std::string::npos) << text;
    EXPECT_EQ(to_json(c)["not_comparable"], 1);
    EXPECT_EQ(compare(bad, good, {"ops_per_s"}, 0.05).exit_code(), 3) << u.title << " on the other side";
    EXPECT_EQ(compare(bad, bad, {"ops_per_s"}, 0.05).exit_code(), 3) << u.title << " on both sides";
  }
  EXPECT_EQ(compare(good, good, {"ops_per_s"}, 0.05).exit_code(), 0)
      << "what was checked and what was never written are no failures";
}

TEST(SweepCompare, AMissingCellIsNotComparable) {
  Measured a = runs_of(7, 100), more = runs_of(7, 100);
  for (int i = 0; i < 7; ++i) {
    Json second = result_of({100});
    cell_of(second)["cell"]["batch"] = 2;
    add_result(second, "r", &more);
  }
  for (const auto& [x, y] : {std::pair(&a, &more), std::pair(&more, &a)}) {
    const Comparison c = compare(*x, *y, {"ops_per_s"}, 0.05);
    EXPECT_EQ(c.exit_code(), 3);
    EXPECT_EQ(c.not_comparable(), 1u);
    EXPECT_EQ(c.only_before.size() + c.only_after.size(), 1u);
    EXPECT_EQ(c.figures(Change::same), 1u);
    EXPECT_NE(to_text(c, "a", "b").find("no such cell"), std::string::npos);
  }
}

TEST(SweepCompare, WhatElseIsDifferentComesFirst) {
  const Measured a = runs_of(7, 100, [](Json& r) {
    r["tool"] = {{"git", "abc"}, {"version", "1"}};
    r["environment"] = {{"kernel", "6.1"}, {"load_average", {1.5}}, {"date_utc", "now"}};
  });
  int n = 0;
  const Measured b = runs_of(7, 100, [&](Json& r) {
    r["tool"] = {{"git", "def"}, {"version", "1"}};
    r["environment"] = {{"kernel", "6.2"}, {"load_average", {2.5}}, {"date_utc", "later"}};
    cell_of(r)["device"]["kind"] = "hardware";
    cell_of(r)["initiator"] = {{"kind", "gpu"}, {"gpu", 0}};
    cell_of(r)["verify"]["mode"] = "none";
    cell_of(r)["options"] = {{"verify", "off"}, {"json", "y"}};
    if (++n <= 3) r["warnings"] = {fmt::format("the machine is busy: load average {}.5", n)};
  });
  const Comparison c = compare(a, b, {"ops_per_s"}, 0.05);
  std::set<std::string> named;
  for (const Difference& d : c.differences) named.insert(d.what);
  EXPECT_EQ(named,
            (std::set<std::string>{"git", "kernel", "device", "initiator", "verify mode", "option verify"}));
  const std::string text = to_text(c, "a", "b");
  const std::size_t table = text.find("metric");
  for (const char* first : {"abc", "6.2", "hardware", "gpu 0", "none", "load average 1.5 (3 of 7 runs)"})
    EXPECT_LT(text.find(first), table) << first << text;
  EXPECT_EQ(c.warnings.size(), 1u) << "one, whatever its numbers";
  EXPECT_EQ(c.exit_code(), 0) << "named, not judged";
  const auto busy = [](Json& r) { r["warnings"] = {"the machine is busy"}; };
  EXPECT_NE(verdict(compare(a, runs_of(7, 50, busy), {"ops_per_s"}, 0.05), 5).find("in turns"),
            std::string::npos);
  EXPECT_EQ(verdict(compare(a, runs_of(7, 50), {"ops_per_s"}, 0.05), 5).find("in turns"), std::string::npos);
  EXPECT_TRUE(compare(a, a, {"ops_per_s"}, 0.05).differences.empty());
}

/// Rates of real runs, each a process of its own, in the order in which they ran: `doorbell nvme --write-io
/// 0` on the model, on a virtual machine with two processors and ten other busy threads. Two states of its
/// host differ by a factor of three (fast, slow) and last for seconds to half a minute. The third series ran
/// size by size, the others in turns. Empty words take all.
std::vector<double> recorded(const std::string& io_bytes, const std::string& series = "",
                             const std::string& state = "", const std::string& name = "nvme_read_runs") {
  const std::string path = fmt::format("{}/{}.csv", DOORBELL_TEST_DATA, name);
  const CsvFile file = parse_csv(read_text(path), path);
  const auto is = [&](const CsvRow& row, const char* column, const std::string& wanted) {
    return wanted.empty() || row.fields[*file.column(column)] == wanted;
  };
  std::vector<double> rates;
  for (const CsvRow& row : file.rows)
    if (is(row, "io_bytes", io_bytes) && is(row, "series", series) && is(row, "state", state))
      rates.push_back(std::stod(row.fields[*file.column("ops_per_s")]));
  return rates;
}

/// The same runs on a machine of 16 processors with nothing else to do, all of them.
std::vector<double> recorded_on_16_cores(const std::string& io_bytes) {
  return recorded(io_bytes, "", "", "nvme_read_runs_16_cores");
}

constexpr std::size_t kRounds = 7;  // what docs/sweep.md asks for

/// The verdict on two sweeps of these rounds, the second one's rates times `factor`.
Change verdict_of(const std::vector<double>& a, const std::vector<double>& b, double factor) {
  Measured before, after;
  for (const double rate : a) add_result(result_of({rate}), "a", &before);
  for (const double rate : b) add_result(result_of({rate * factor}), "b", &after);
  return compare(before, after, {"ops_per_s"}, 0.05).cells[0].ratios[0].change;
}

/// Draws two sweeps from what was recorded: rounds at random, or rounds that followed each other, A and B in
/// turns, which keeps what the machine did meanwhile.
class Draw {
 public:
  Draw(std::vector<double> rates, bool in_turns, std::size_t rounds = kRounds)
      : rates_(std::move(rates)), in_turns_(in_turns), rounds_(rounds) {}
  std::pair<std::vector<double>, std::vector<double>> operator()() {
    std::vector<double> order = rates_;
    if (in_turns_) {
      const std::size_t first = below(order.size() - 2 * rounds_ + 1);
      std::ranges::rotate(order, order.begin() + static_cast<std::ptrdiff_t>(first));
    } else {
      for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[below(i)]);
    }
    std::vector<double> a, b;
    for (std::size_t i = 0; i < rounds_; ++i) {
      a.push_back(order[2 * i]);
      b.push_back(order[2 * i + 1]);
    }
    return {a, b};
  }

 private:
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }
  std::vector<double> rates_;
  bool in_turns_;
  std::size_t rounds_;
  std::mt19937_64 random_{2026};
};

/// Regressions that 40 pairs of equal sweeps are said to be: one is due at 2.5 %, and each draw in turns
/// meets the same few windows again.
int alarms_in(const std::vector<double>& rates, bool in_turns) {
  Draw draw(rates, in_turns);
  int alarms = 0;
  for (int i = 0; i < 40; ++i) {
    const auto [a, b] = draw();
    if (verdict_of(a, b, 1) == Change::regression) ++alarms;
  }
  return alarms;
}

TEST(SweepCompareRecorded, EqualSweepsAreEqual) {
  for (const char* io_bytes : {"512", "65536"})
    for (const bool in_turns : {false, true}) {
      const char* how = in_turns ? " in turns" : "";
      EXPECT_LE(alarms_in(recorded(io_bytes), in_turns), 1) << io_bytes << how;
      EXPECT_LE(alarms_in(recorded_on_16_cores(io_bytes), in_turns), 2) << io_bytes << " on 16 cores" << how;
    }
}

/// The same rates about the same median, closer together or further apart: `spread` is the standard deviation
/// of their logarithms, the share by which one run differs from the next.
std::vector<double> with_spread(std::vector<double> rates, double spread) {
  std::vector<double> logs;
  for (const double r : rates) logs.push_back(std::log(r));
  const double scale = spread / *measure::sample_std(logs), middle = measure::median(logs);
  for (double& r : rates) r = std::exp(middle + (std::log(r) - middle) * scale);
  return rates;
}

struct Trials {
  int slower = 0, faster = 0;
};

/// Of 20 planted changes by 10 % in each direction.
Trials trials_in(const std::vector<double>& rates) {
  Draw draw(rates, false);
  Trials found;
  for (int i = 0; i < 20; ++i) {
    const auto [a, b] = draw();
    if (verdict_of(a, b, 0.9) == Change::regression) ++found.slower;
    if (verdict_of(a, b, 1 / 0.9) == Change::better) ++found.faster;
  }
  return found;
}

TEST(SweepCompareRecorded, TenPercentAreFound) {
  const std::vector<double> small = recorded("512", "3", "slow"), large = recorded("65536", "3", "fast");
  // As they are: runs that differ by 4 % and by 5 %.
  EXPECT_EQ(trials_in(small).slower, 20);
  EXPECT_EQ(trials_in(small).faster, 20);
  EXPECT_GE(trials_in(large).slower, 15);
  EXPECT_GE(trials_in(large).faster, 15);
  // Nothing left out: 512 B differ by 3 % from run to run there, 64 KiB by 11 %.
  const std::vector<double> calm = recorded_on_16_cores("512"), wide = recorded_on_16_cores("65536");
  EXPECT_EQ(trials_in(calm).slower, 20);
  EXPECT_EQ(trials_in(calm).faster, 20);
  EXPECT_EQ(trials_in(with_spread(wide, 0.03)).slower, 20);
  EXPECT_EQ(trials_in(with_spread(wide, 0.03)).faster, 20);
  // Runs that differ by 3 %, as on a machine that has nothing else to do.
  for (const std::vector<double>& rates : {small, large}) {
    EXPECT_EQ(trials_in(with_spread(rates, 0.03)).slower, 20);
    EXPECT_EQ(trials_in(with_spread(rates, 0.03)).faster, 20);
  }
}

/// The worst case of false alarms: noise far above the threshold, in two modes, with outliers.
TEST(SweepCompareRecorded, NoiseOfAnyShapeGivesFewAlarms) {
  std::mt19937_64 random(7);
  const auto uniform = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  const auto run = [&] {
    const double mode = uniform() < 0.4 ? 900 : 2700;
    const double outlier = uniform() < 0.1 ? 0.2 : 1;
    return mode * outlier * (0.9 + 0.2 * uniform());
  };
  int alarms = 0;
  for (int i = 0; i < 1000; ++i) {
    std::vector<double> a(kRounds), b(kRounds);
    std::ranges::generate(a, run);
    std::ranges::generate(b, run);
    if (verdict_of(a, b, 1) == Change::regression) ++alarms;
  }
  EXPECT_LE(alarms, 30) << "1.9 % are due, and three deviations";
}

}  // namespace
}  // namespace doorbell::sweep
