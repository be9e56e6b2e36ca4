// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "measure/in_turns.hpp"

#include <doorbell/error.hpp>

#include <algorithm>

#include "measure/statistics.hpp"

namespace doorbell::measure {

namespace {

/// Ratios of the first contender to this one, repeat by repeat.
nlohmann::ordered_json ratios(const report::Cell& first, const report::Cell& other) {
  const std::size_t n = std::min(first.repeats.size(), other.repeats.size());
  std::vector<double> rate, mean;
  for (std::size_t i = 0; i < n; ++i) {
    if (other.repeats[i].ops_per_s > 0)
      rate.push_back(first.repeats[i].ops_per_s / other.repeats[i].ops_per_s);
    if (first.repeats[i].mean_ns && other.repeats[i].mean_ns.value_or(0) > 0)
      mean.push_back(*first.repeats[i].mean_ns / *other.repeats[i].mean_ns);
  }
  auto j = nlohmann::ordered_json::object();
  const auto add = [&](const char* name, const std::vector<double>& samples) {
    if (samples.empty()) return;
    const report::Spread s = spread_of(samples);
    j[name] = {{"median", s.median},
               {"ci_low", s.ci_low},
               {"ci_high", s.ci_high},
               {"ci_level", s.ci_level},
               {"samples", samples}};
  };
  add("ops_per_s_ratio", rate);
  add("mean_latency_ratio", mean);
  return j;
}

}  // namespace

std::vector<BenchResult> run_in_turns(const RunOptions& o, const RunWatch& watch,
                                      const std::vector<Contender*>& all) {
  std::string broken;  // what ended the measurement, and in which way
  std::size_t broken_in = 0;
  const auto going = [&] {
    if (!broken.empty()) return false;
    return std::ranges::all_of(all, [](const auto& c) { return c->going(); });
  };
  const auto turn = [&](auto&& what) {
    for (std::size_t i = 0; i < all.size() && going(); ++i) {
      try {
        what(*all[i]);
      } catch (const Error& e) {
        broken = e.what();
        broken_in = i;
      }
    }
  };
  if (o.warmup_s > 0) turn([](Contender& c) { c.warm_up(); });
  for (u32 r = 0; r < o.repeats && going(); ++r) turn([r](Contender& c) { c.repeat(r); });

  std::vector<BenchResult> results;
  for (Contender* c : all) {
    results.push_back(c->finish());
    report::Cell& cell = results.back().cell();
    cell.extra["beside"] = {{"label", c->label()}};
    if (results.size() > 1) cell.extra["beside"].update(ratios(results.front().cell(), cell));
    if (watch.stop != nullptr && watch.stop->requested() && cell.repeats.size() < o.repeats)
      results.back().stopped(StopReason::requested);
  }
  if (!broken.empty()) {
    results[broken_in].stopped(StopReason::broken);
    results[broken_in].failed = true;
    ++results[broken_in].cell().errors["admin"];
    results[broken_in].warnings.push_back(broken);
  }
  return results;
}

}  // namespace doorbell::measure
