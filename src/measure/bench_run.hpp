// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The steps that the benches of all paths share: warm up, repeat, run phases, drain, stop, and turn counts
// into a Result.
#pragma once

#include <doorbell/error.hpp>

#include <algorithm>

#include "measure/run_options.hpp"
#include "measure/tally.hpp"

namespace doorbell::measure {

struct BenchResult {
  std::vector<report::Cell> cells;
  StopReason stop_reason = StopReason::done;
  bool failed = false;  ///< data, completion or timeout errors: exit 2
  /// Of an Error that ended the run behind its first cell; its text is the last warning.
  ExitCode code = ExitCode::ok;
  std::vector<std::string> warnings;

  /// Takes a cell, and whether it has failed.
  void add(report::Cell cell);
  /// Takes the cells and warnings of a part of the run behind its own, and what ended it.
  void append(BenchResult part);
  /// Notes what ended the run, or a part of it: of several the last in StopReason's order.
  void stopped(StopReason why) { stop_reason = std::max(stop_reason, why); }
  [[nodiscard]] int exit_code() const { return static_cast<int>(failed ? ExitCode::data : code); }
  /// Of a bench that measures one.
  [[nodiscard]] report::Cell& cell() { return cells.front(); }
  [[nodiscard]] const report::Cell& cell() const { return cells.front(); }
};

/// An error has ended a run behind some cells: those that have been measured are its result. Throws it again
/// if there are none. For a handler of it.
void ended_by(const Error& error, const RunWatch& watch, BenchResult& result);

/// The duration of a run that goes on until it is stopped.
inline constexpr double kEndlessS = 1e15;

/// The goal of a phase, for the progress display: so many seconds, or so many operations when that is 0.
struct PhaseGoal {
  double seconds = 0;
  double operations = 0;
  std::string what;
  /// False: its operations only prepare or check what is measured. Of these, live figures have what went
  /// wrong.
  bool measured = true;
};

/// Warms `bench` up and repeats it for as long as it goes on.
template <class Bench>
void run_repeats(const RunOptions& o, Bench&& bench) {
  if (o.warmup_s > 0) bench.warm_up();
  for (u32 r = 0; r < o.repeats && bench.going(); ++r) bench.repeat(r);
}

/// One cell of a Result, from its first phase on. A path says how a repeat is made of phases.
class BenchRun {
 public:
  /// `path` and `op_bytes`: as Tally's. `recovers`: the path mends queue pairs that an error has stopped
  /// before the next repeat, and says so with recovered().
  BenchRun(const RunOptions& o, const RunWatch& watch, std::string path, u64 op_bytes, bool recovers = false)
      : o_(o), watch_(watch), recovers_(recovers), op_bytes_(op_bytes), tally_(std::move(path), op_bytes) {}

  /// The limits of every phase.
  template <class Phase, class Item>
  void limit(Phase& phase, const Runner<Phase, Item>& runner) const {
    phase.timeout_ticks = runner.ticks(o_.timeout_s);
    phase.late_ticks = runner.ticks(o_.late_after_s);
    phase.check_ticks = runner.ticks(kCheckIntervalS);
  }

  /// Runs a phase. `leaving`: asked while it lasts; true ends the run, because the device is to be unplugged.
  template <class Phase, class Item>
  PhaseOutcome phase(Runner<Phase, Item>& runner, Phase phase, std::span<const Item> items, bool substeps,
                     const PhaseGoal& goal, const std::function<bool()>& leaving = {}) {
    phase.duration_ticks = runner.limit_ticks(goal.seconds);
    std::function<bool(OpCounters*, Histogram*)> look;
    if (watch_.live != nullptr && watch_.live->detailed())
      look = [&](OpCounters* counters, Histogram* latency) { return runner.look(counters, latency); };
    PhaseOutcome out = runner.run(phase, items, substeps, watching(goal, leaving, look));
    ended(out, goal.measured);
    for (const OpStats& q : out.queues) stopped(q.stop);
    return out;
  }

  void warm_up(const RepeatTally& t) { tally_.warm_up(t); }
  void repeat(u32 number, RepeatTally t) { tally_.add(o_.seed + number, std::move(t)); }
  /// Takes late and repeated completions, behind the last phase.
  template <class Phase, class Item>
  void drain(Runner<Phase, Item>& runner, Phase phase, std::span<Item> items) {
    phase.drain = true;
    for (Item& item : items) item.count = 0;
    PhaseTally rest;
    rest.add(runner.run(phase, items, false, {}), op_bytes_);
    tally_.after(rest);
  }

  /// Notes why a phase ended. What the run itself asked for says nothing of the device.
  void stopped(StopReason why) {
    if (why > StopReason::duration) stop_ = std::max(stop_, why);
  }
  void recovered() { stop_ = StopReason::done; }
  [[nodiscard]] StopReason stop() const { return stop_; }
  /// The queues are no more: the device went away or was reset.
  [[nodiscard]] bool lost() const { return stop_ >= StopReason::reset; }
  [[nodiscard]] bool interrupted() const { return watch_.stop != nullptr && watch_.stop->requested(); }
  [[nodiscard]] bool going() const {
    const bool usable = stop_ == StopReason::done || (stop_ == StopReason::broken && recovers_);
    return usable && !interrupted();
  }
  /// Why the run ended, as a Result has it.
  [[nodiscard]] StopReason stop_reason() const {
    return stop_ == StopReason::done && interrupted() ? StopReason::requested : stop_;
  }

  [[nodiscard]] report::Cell& cell() { return tally_.cell(); }
  /// Says in the cell what was measured on, and by whom.
  report::Cell& describe(const std::string& device_kind, const std::string& device_name, bool verified);
  /// Works out the cell's figures.
  void finish(double ns_per_tick, bool substeps, StatusName status_name) {
    tally_.finish(ns_per_tick, stop_, substeps, status_name);
  }
  /// Latencies of all repeats.
  [[nodiscard]] Histogram latency() const { return tally_.latency(); }
  /// Hands the cell over, with its warnings behind `title`, and what ended the run.
  void deliver(BenchResult& into, const std::string& title = {});

 private:
  [[nodiscard]] Watch watching(const PhaseGoal& goal, const std::function<bool()>& leaving,
                               const std::function<bool(OpCounters*, Histogram*)>& look);
  void publish(u64 done, const OpCounters* counters, const Histogram* latency);
  /// Adds a phase to the live figures.
  void ended(const PhaseOutcome& outcome, bool measured);

  const RunOptions& o_;
  const RunWatch& watch_;
  bool recovers_;
  u64 op_bytes_;
  Tally tally_;
  StopReason stop_ = StopReason::done;
  LiveFigures before_;  ///< of the phases that are over
};

}  // namespace doorbell::measure
