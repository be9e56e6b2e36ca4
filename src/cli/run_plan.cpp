// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/run_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "measure/endless.hpp"

namespace doorbell::cli {

std::string rough_time(double seconds) {
  if (seconds < 0.95) return fmt::format("{:.1g} s", seconds);
  if (seconds < 120) return fmt::format("{:.0f} s", seconds);
  if (seconds < 7200) return fmt::format("{:.0f} min", seconds / 60);
  return fmt::format("{:.1f} h", seconds / 3600);
}

std::string text_of(const RunPlan& plan, const measure::RunOptions& given) {
  if (!plan.once.empty()) return plan.once;
  const measure::RunOptions& run = plan.chosen ? *plan.chosen : given;
  const bool timed = run.duration_s > 0;
  if (plan.cells == 0 || (!timed && plan.work.empty())) return {};
  std::string text;
  if (plan.ways > 1) text += fmt::format("{} {} in turns, ", plan.ways, plan.ways_are);
  if (plan.cells > 1) text += fmt::format("{} cells, each ", plan.cells);
  if (measure::is_endless(run.duration_s)) return text + "until Ctrl-C";
  text += fmt::format("{} {} of ", run.repeats, run.repeats == 1 ? "repeat" : "repeats");
  if (plan.work.empty()) text += fmt::format("{:g} s", run.duration_s);
  else if (timed) text += fmt::format("{}, at most {:g} s", plan.work, run.duration_s);
  else text += plan.work;
  if (run.warmup_s > 0) text += fmt::format(", a warm-up of {:g} s", run.warmup_s);
  constexpr double kUnknown = std::numeric_limits<double>::infinity();
  const double by_work = plan.work.empty() || plan.work_s <= 0 ? kUnknown : plan.work_s;
  const double one_s = timed ? std::min(by_work, run.duration_s) : by_work;
  if (one_s == kUnknown) return text;
  const double repeat_s = one_s + plan.settle_s + plan.check_s;
  double cell_s = plan.search_s + run.repeats * repeat_s + plan.settle_s;
  if (run.warmup_s > 0) cell_s += run.warmup_s + plan.settle_s;
  const u32 times = plan.cells * plan.ways;
  text += ", about " + rough_time(times * cell_s);
  constexpr double kLongS = 10;
  if (!plan.chosen && run.repeats > 1 && times * cell_s > kLongS)
    text += fmt::format("; --repeats 1 takes about {}",
                        rough_time(times * (cell_s - (run.repeats - 1) * repeat_s)));
  return text;
}

}  // namespace doorbell::cli
