// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "measure/bench_run.hpp"

#include "system/clock.hpp"

namespace doorbell::measure {

std::string BenchRun::stop_name() const {
  switch (stop_) {
    case StopReason::removed:
      return "removed";
    case StopReason::reset:
      return "reset";
    case StopReason::timeout:
      return "timeout";
    default:
      return interrupted() ? "signal" : "done";
  }
}

Watch BenchRun::watching(const PhaseGoal& goal, const std::function<bool()>& leaving) {
  return [this, &goal, &leaving, begin = wall_ns()](u64 done) {
    if (watch_.progress) {
      const double elapsed = static_cast<double>(wall_ns() - begin) * 1e-9;
      watch_.progress(goal.seconds > 0 ? elapsed / goal.seconds : static_cast<double>(done) / goal.operations,
                      goal.what);
    }
    if (leaving && leaving()) stopped(StopReason::removed);
    return interrupted() || stop_ == StopReason::removed;
  };
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
  into.failed = into.failed || cell.verify.failed() > 0;
  for (const auto& [kind, count] : cell.errors) into.failed = into.failed || count > 0;
  for (const std::string& w : tally_.warnings()) into.warnings.push_back(title + w);
  into.cells.push_back(std::move(cell));
}

}  // namespace doorbell::measure
