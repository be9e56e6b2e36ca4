// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "measure/bench_run.hpp"

#include <fmt/format.h>

#include <iterator>
#include <limits>

#include "measure/counters.hpp"
#include "measure/endless.hpp"
#include "system/clock.hpp"

namespace doorbell::measure {

void BenchResult::add(report::Cell cell) {
  failed = failed || cell.verify.failed() > 0 ||
           std::ranges::any_of(cell.errors, [](const auto& e) { return e.second > 0; });
  cells.push_back(std::move(cell));
}

void BenchResult::append(BenchResult part) {
  std::ranges::move(part.cells, std::back_inserter(cells));
  std::ranges::move(part.warnings, std::back_inserter(warnings));
  failed = failed || part.failed;
  stopped(part.stop_reason);
  if (code == ExitCode::ok) code = part.code;
}

void ended_by(const Error& error, const RunWatch& watch, BenchResult& result) {
  if (result.cells.empty()) throw;
  const bool interrupted = watch.stop != nullptr && watch.stop->requested();
  result.stopped(interrupted ? StopReason::requested : StopReason::broken);
  if (!interrupted) result.code = error.code();
  result.warnings.emplace_back(error.what());
  if (!error.hint().empty()) result.warnings.back() += "; " + error.hint();
}

Watch BenchRun::watching(const PhaseGoal& goal, const std::function<bool()>& leaving,
                         const std::function<bool(OpCounters*, Histogram*)>& look) {
  return [this, &goal, &leaving, &look, begin = wall_ns()](u64 done) {
    if (watch_.live != nullptr) {
      OpCounters counters;
      Histogram latency;
      if (!goal.measured) publish(0, nullptr, nullptr);
      else if (!look) publish(done, nullptr, nullptr);
      else if (look(&counters, &latency)) publish(done, &counters, &latency);
    }
    if (watch_.progress) {
      const double elapsed = static_cast<double>(wall_ns() - begin) * 1e-9;
      double fraction = static_cast<double>(done) / goal.operations;
      if (goal.seconds > 0) fraction = elapsed / goal.seconds;
      if (is_endless(goal.seconds)) fraction = std::numeric_limits<double>::quiet_NaN();
      watch_.progress(fraction, goal.what);
    }
    if (leaving && leaving()) stopped(StopReason::removed);
    if (watch_.stop != nullptr && watch_.stop->gave_up()) return Asked::give_up;
    return interrupted() || stop_ == StopReason::removed ? Asked::stop : Asked::nothing;
  };
}

void BenchRun::publish(u64 done, const OpCounters* counters, const Histogram* latency) {
  LiveFigures now = before_;
  now.operations += done;
  now.bytes = now.operations * op_bytes_;
  if (counters != nullptr) add_sums(now.counters, *counters);
  if (latency != nullptr) now.latency.merge(*latency);
  watch_.live->publish(std::move(now));
}

void BenchRun::ended(const PhaseOutcome& outcome, bool measured) {
  if (watch_.live == nullptr) return;
  if (!measured) {
    for (const OpStats& q : outcome.queues)
      for (const OpCounter& c :
           counters_of<CounterClass::error, CounterClass::check, CounterClass::failure>())
        before_.counters.*c.field += q.*c.field;
    publish(0, nullptr, nullptr);
    return;
  }
  for (const OpStats& q : outcome.queues) {
    before_.operations += q.succeeded + q.failed + q.timed_out + q.aborted;
    add_sums(before_.counters, q);
  }
  if (watch_.live->detailed()) before_.latency.merge(outcome.latency);
  publish(0, nullptr, nullptr);
}

report::Cell& BenchRun::describe(const std::string& device_kind, const std::string& device_name,
                                 bool verified) {
  report::Cell& cell = tally_.cell();
  cell.device_kind = device_kind;
  cell.device_name = device_name;
  cell.initiator_kind = o_.initiator == Initiator::gpu ? "gpu" : "cpu";
  if (o_.initiator == Initiator::gpu) cell.gpu = o_.gpu;
  cell.verify.mode = o_.verify_mode(verified);
  return cell;
}

void BenchRun::deliver(BenchResult& into, const std::string& title) {
  report::Cell& cell = tally_.cell();
  for (const std::string& w : tally_.warnings()) into.warnings.push_back(title + w);
  const u64 aborted = cell.errors.at("aborted");
  if (watch_.stop != nullptr && watch_.stop->gave_up() && !lost() && aborted > 0)
    into.warnings.push_back(
        title + fmt::format("a second request to stop ended the wait for {} operation{} in flight "
                            "(aborted)",
                            aborted, aborted == 1 ? "" : "s"));
  into.add(std::move(cell));
  into.stopped(stop_reason());
}

}  // namespace doorbell::measure
