// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/run_bench.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/export_option.hpp"
#include "cli/output.hpp"
#include "cli/progress.hpp"

namespace doorbell::cli {

int run_and_report(const Options& options, Context& context, const measure::RunOptions& run,
                   const std::vector<std::string>& inputs, const Bench& bench, View view,
                   const RunPlan& plan) {
  check_outputs(options, inputs, context.host == nullptr);
  const bool silent = options.flag("quiet") || context.host != nullptr;
  Progress progress(context.stderr_tty && !silent);
  report::Result result = new_result(context);
  measure::LiveBoard live(options.has("export"));
  const auto server = export_figures(options, context, live);
  // A run that is refused when the device is open is not announced.
  std::string coming = silent ? "" : text_of(plan, run);
  const auto announce = [&] {
    if (!coming.empty()) fmt::print(stderr, "{}\n", std::exchange(coming, ""));
  };
  const measure::RunWatch watch = {.stop = &context.stop,
                                   .progress =
                                       [&](double fraction, const std::string& what) {
                                         announce();
                                         progress.update(fraction, what, live.operations());
                                         if (context.host != nullptr && context.host->progress)
                                           context.host->progress(std::min(fraction, 1.0), what,
                                                                  live.operations());  // NaN stays
                                       },
                                   .live = &live};
  measure::BenchResult outcome;
  try {
    outcome = bench(watch);
  } catch (const Error& e) {
    // With the hardware it would have run.
    if (e.code() != ExitCode::usage) announce();
    throw;
  }
  progress.clear();
  for (report::Cell& cell : outcome.cells) {
    const nlohmann::ordered_json resolved = std::move(cell.options);
    cell.options = options.echo();
    cell.options["repeats"] = run.repeats;
    cell.options["warmup_s"] = run.warmup_s;
    if (resolved.is_object()) cell.options.update(resolved);
    result.cells.push_back(std::move(cell));
  }
  result.stop_reason = outcome.stop_reason;
  // The machine's warnings come first, because they show whether the figures mean anything.
  for (std::string& warning : outcome.warnings)
    if (std::ranges::find(result.warnings, warning) == result.warnings.end())
      result.warnings.push_back(std::move(warning));
  result.exit_code = outcome.exit_code();
  return deliver(result, options, context, view);
}

}  // namespace doorbell::cli
