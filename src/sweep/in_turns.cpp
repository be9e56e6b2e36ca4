// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "sweep/in_turns.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <random>
#include <utility>

#include "report/junit.hpp"
#include "report/layout.hpp"
#include "sweep/across.hpp"
#include "sweep/process.hpp"
#include "sweep/shift.hpp"
#include "system/clock.hpp"

namespace doorbell::sweep {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kNames[] = {"A", "B"};

class Turner {
 public:
  Turner(const Turning& what, const TurnsWatch& watch) : what_(what), watch_(watch), random_(what.seed) {
    for (std::size_t side = 0; side < 2; ++side) t_.measured[side].name = kNames[side];
  }

  Turns run() {
    std::size_t first = 0;
    for (std::size_t round = 0;; ++round) {
      first = round % 2 == 0 ? random_() & 1 : 1 - first;
      if (!round_of(first)) break;
      if (round == 0) (void)compared();  // cells that do not meet are an error now, not after a minute
      if (std::ranges::find(kLooks, round + 1) == kLooks.end()) continue;
      look();
      if (t_.comparison.figures() > 0 && t_.comparison.figures(Change::undecided) == 0) {
        t_.end = TurnsEnd::decided;
        break;
      }
    }
    if (t_.end != TurnsEnd::decided) look();
    t_.elapsed_s = elapsed_s();
    return std::move(t_);
  }

 private:
  [[nodiscard]] double elapsed_s() const { return static_cast<double>(wall_ns() - begin_) / 1e9; }

  /// False if there is no next round.
  bool round_of(std::size_t first) {
    const double pair_s = mean_s(0) + mean_s(1);
    t_.end = TurnsEnd::time;
    if (elapsed_s() + pair_s > what_.limit_s || t_.runs_of(0) >= kMostRuns) return false;
    for (const std::size_t side : {first, 1 - first})
      if (!run_of(side)) return false;
    return true;
  }

  bool run_of(std::size_t side) {
    const auto stopped = [&] { return watch_.stop && watch_.stop(); };
    const auto tick = [&](double) {
      if (watch_.progress)
        watch_.progress(
            {elapsed_s(), side, {t_.runs_of(0), t_.runs_of(1)}, t_.looks > 0 ? &t_.comparison : nullptr});
    };
    tick(0);
    t_.end = TurnsEnd::interrupted;
    if (stopped()) return false;
    const double left_s = std::max(what_.limit_s - elapsed_s(), 0.0);
    Outcome o =
        run_process(what_.words[side], "", left_s, what_.programs[side], {.stop = stopped, .tick = tick});
    const bool cut = o.ended == "timeout" || stopped();
    Record r;
    r.cell = static_cast<u32>(side);
    r.round = static_cast<u32>(t_.runs_of(side));
    r.exit_code = o.exit_code;
    r.wall_s = o.wall_s;
    r.ended = o.ended;
    r.error = std::move(o.error);
    r.result = std::move(o.result);
    // A run that was cut short is no observation, but what it found wrong is wrong.
    if (cut && !has_failures(r)) {
      t_.end = o.ended == "timeout" ? TurnsEnd::time : TurnsEnd::interrupted;
      return false;
    }
    const bool good = r.code() == 0 && r.complete();
    keep(side, std::move(r), good);
    t_.end = TurnsEnd::failed;
    return good;
  }

  static bool has_failures(const Record& r) {
    return r.result.is_object() && std::ranges::any_of(report::cases_of(r.result), [](const auto& c) {
             return c.end == report::TestCase::End::failed;
           });
  }

  void keep(std::size_t side, Record r, bool good) {
    if (r.result.is_object()) {
      if (r.ended != "exit") r.result["complete"] = false;
      add_result(r.result, kNames[side], &t_.measured[side]);
      for (const Json& cell : r.result.at("cells")) {
        const Json::json_pointer at("/verify/checked");
        const bool known = cell.contains(at) && cell.at(at).is_number_unsigned();
        const u64 checked = known ? cell.at(at).get<u64>() : 0;
        t_.checked[side] += checked;
        if (checked == 0) ++t_.unchecked[side];
      }
      if (good) r.result = nullptr;
    }
    t_.runs.push_back({side, std::move(r)});
  }

  [[nodiscard]] double mean_s(std::size_t side) const {
    double sum = 0;
    for (const Turns::Run& run : t_.runs)
      if (run.side == side) sum += run.record.wall_s;
    return sum / static_cast<double>(std::max<std::size_t>(t_.runs_of(side), 1));
  }

  void look() {
    if (t_.measured[0].cells.empty() || t_.measured[1].cells.empty()) return;
    t_.comparison = compared();
    ++t_.looks;
  }

  [[nodiscard]] Comparison compared() const {
    Measured a = t_.measured[0], b = t_.measured[1];
    pair_by_place(&a, &b);
    Rules rules = what_.rules;
    rules.level = level_of_each_look();
    Comparison c = compare(a, b, rules);
    c.in_turns = true;
    return c;
  }

  const Turning& what_;
  const TurnsWatch& watch_;
  std::mt19937_64 random_;
  u64 begin_ = wall_ns();
  Turns t_;
};

std::string data_of(const Turns& t) {
  std::vector<std::string> unchecked;
  for (std::size_t side = 0; side < 2; ++side)
    if (t.unchecked[side] > 0)
      unchecked.emplace_back(t.checked[side] > 0 ? fmt::format("{} in part", kNames[side]) : kNames[side]);
  if (unchecked.empty()) return "the data was right on both sides";
  return fmt::format("the data was NOT verified on {}", fmt::join(unchecked, " and "));
}

std::string figures_of(const Ratio& r) {
  // The factor is said as one above 1, whichever side is faster.
  const bool turn = r.median < 1;
  const double f = turn ? 1 / r.median : r.median;
  const double low = turn ? 1 / r.ci_high : r.ci_low, high = turn ? 1 / r.ci_low : r.ci_high;
  std::string text = fmt::format("by a factor of {} in {}", report::digits(f), r.metric);
  if (r.ci_level > 0)
    text += fmt::format(" ({} to {} at {:.0f} %, {} {} of A and {} of B)", report::digits(low),
                        report::digits(high), kLevel * 100, r.by_repeats ? r.repeats_before : r.runs_before,
                        r.by_repeats ? "repeats of too few runs" : "runs",
                        r.by_repeats ? r.repeats_after : r.runs_after);
  return text;
}

std::string outcome_of(const Ratio& r, double percent) {
  const bool b_is_faster = (r.median > 1) == more_is_better(r.metric);
  const std::string which = b_is_faster ? "B is faster than A" : "A is faster than B";
  switch (r.change) {
    case Change::better:
    case Change::regression:
      return fmt::format("{} {}", which, figures_of(r));
    case Change::slightly_better:
    case Change::slightly_worse:
      return fmt::format("{} {}, less than the threshold of {} %", which, figures_of(r), percent);
    case Change::same:
      return fmt::format("A and B are equally fast within {} %: {} {}", percent, which, figures_of(r));
    default:
      break;
  }
  if (!r.known()) return fmt::format("which is faster is not known: a side has no {}", r.metric);
  return fmt::format("which is faster is undecided: B/A is {} ({} to {}) in {}", report::digits(r.median),
                     report::digits(r.ci_low), report::digits(r.ci_high), r.metric);
}

/// Of more than one parameter that differs, all: the second is seldom meant.
std::string differing_of(const Comparison& c) {
  constexpr std::string_view kParameter = "parameter ";
  constexpr std::size_t kMost = 4;
  std::vector<std::string> all;
  for (const Difference& d : c.differences)
    if (d.what.starts_with(kParameter))
      all.push_back(fmt::format("{} ({} : {})", d.what.substr(kParameter.size()), d.before, d.after));
  if (all.size() < 2) return {};
  if (all.size() > kMost) return fmt::format("they differ in {} parameters", all.size());
  const std::string last = std::move(all.back());
  all.pop_back();
  return report::printable(fmt::format("they differ in {} and {}", fmt::join(all, ", "), last));
}

}  // namespace

double level_of_each_look() {
  return 1 - (1 - kLevel) / static_cast<double>(kLooks.size() + 1);
}

const char* name(TurnsEnd end) {
  switch (end) {
    case TurnsEnd::decided:
      return "decided";
    case TurnsEnd::time:
      return "time";
    case TurnsEnd::interrupted:
      return "interrupted";
    case TurnsEnd::failed:
      return "failed";
  }
  return "";
}

std::size_t Turns::runs_of(std::size_t side) const {
  return static_cast<std::size_t>(std::ranges::count(runs, side, &Run::side));
}

int Turns::code() const {
  if (end == TurnsEnd::failed) {
    const int code = runs.back().record.code();
    return code == 0 ? static_cast<int>(ExitCode::data) : code;
  }
  if (end == TurnsEnd::interrupted) return static_cast<int>(ExitCode::interrupted);
  return comparison.cells.empty() ? static_cast<int>(ExitCode::usage) : comparison.exit_code();
}

Turns run_in_turns(const Turning& what, const TurnsWatch& watch) {
  return Turner(what, watch).run();
}

Json to_json(const Turns& t, const Turning& what) {
  Json sides = Json::array();
  for (std::size_t side = 0; side < 2; ++side) {
    Json figures = Json::array();
    for (const std::string& cell : t.measured[side].order) {
      Json one{{"cell", cell}};
      for (const std::string& metric : what.rules.metrics) {
        Json values = Json::array();
        for (const auto& v : t.measured[side].cells.at(cell).metrics.at(metric))
          values.push_back(v ? Json(*v) : Json(nullptr));
        one[metric] = std::move(values);
      }
      figures.push_back(std::move(one));
    }
    sides.push_back({{"side", kNames[side]},
                     {"program", what.programs[side]},
                     {"words", what.words[side]},
                     {"runs", t.runs_of(side)},
                     {"checked", t.checked[side]},
                     {"unchecked_cells", t.unchecked[side]},
                     {"figures", std::move(figures)}});
  }
  Json runs = Json::array();
  for (const Turns::Run& run : t.runs)
    runs.push_back({{"side", kNames[run.side]},
                    {"exit_code", run.record.exit_code},
                    {"ended", run.record.ended},
                    {"wall_s", run.record.wall_s},
                    {"error", run.record.error.empty() ? Json(nullptr) : Json(run.record.error)},
                    {"result", run.record.result}});
  return {{"complete", t.end == TurnsEnd::decided || t.end == TurnsEnd::time},
          {"ended", name(t.end)},
          {"time_limit_s", what.limit_s},
          {"elapsed_s", t.elapsed_s},
          {"seed", what.seed},
          {"looks_after", kLooks},
          {"looks", t.looks},
          {"level", kLevel},
          {"level_of_each_look", level_of_each_look()},
          {"sides", std::move(sides)},
          {"runs", std::move(runs)}};
}

std::string sentence(const Turns& t, double percent) {
  if (t.end == TurnsEnd::failed) {
    const Turns::Run& run = t.runs.back();
    const char* side = kNames[run.side];
    std::vector<std::string> why;
    if (run.record.result.is_object())
      for (const report::TestCase& c : report::cases_of(run.record.result))
        if (c.end != report::TestCase::End::passed) why.push_back(c.name + ": " + c.message);
    if (!run.record.error.empty() && why.empty()) why.push_back(run.record.error);
    if (why.empty()) why.push_back(fmt::format("exit code {}", run.record.exit_code));
    const std::string text = report::printable(fmt::format("{}", fmt::join(why, "; ")));
    const int code = t.code();
    if (code == static_cast<int>(ExitCode::data))
      return fmt::format("FAILED: run {} of {} has errors, so nothing is compared: {}", t.runs_of(run.side),
                         side, text);
    if (code == static_cast<int>(ExitCode::absent))
      return fmt::format("SKIPPED: {} cannot run here: {}", side, text);
    return fmt::format("FAILED: run {} of {} did not end well: {}", t.runs_of(run.side), side, text);
  }
  const std::string runs = fmt::format("after {} runs of A and {} of B", t.runs_of(0), t.runs_of(1));
  if (t.comparison.figures() == 0)
    return t.end == TurnsEnd::interrupted
               ? fmt::format("INTERRUPTED {}: nothing can be said", runs)
               : fmt::format("FAILED: the time is over {}: nothing can be said", runs);
  std::vector<std::string> parts;
  if (t.comparison.figures() == 1) {
    for (const Compared& cell : t.comparison.cells)
      for (const Ratio& r : cell.ratios) parts.push_back(outcome_of(r, percent));
  } else {
    const auto n = [&](std::initializer_list<Change> all) {
      std::size_t sum = 0;
      for (const Change c : all) sum += t.comparison.figures(c);
      return sum;
    };
    parts.push_back(fmt::format(
        "of {} figures B is faster in {}, slower in {}, equal within {} % in {}, and {} are undecided",
        t.comparison.figures(), n({Change::better, Change::slightly_better}),
        n({Change::regression, Change::slightly_worse}), percent, n({Change::same}),
        n({Change::undecided, Change::not_comparable})));
  }
  if (const std::string more = differing_of(t.comparison); !more.empty()) parts.push_back(more);
  parts.push_back(data_of(t));
  const std::string text = fmt::format("{}", fmt::join(parts, "; "));
  return t.end == TurnsEnd::interrupted ? fmt::format("INTERRUPTED {}, so far: {}", runs, text) : text;
}

}  // namespace doorbell::sweep
