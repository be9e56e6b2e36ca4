// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Turns what the queues counted in each phase into the cell of a Result.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "measure/runner.hpp"
#include "report/result.hpp"

namespace doorbell::measure {

/// Sums over the phases of one kind in one repeat.
struct PhaseTally {
  OpStats sum;  ///< counters and tables of all queues; begin and end are not used
  Histogram latency;
  double elapsed_s = 0;
  double queue_busy_ns = 0;     ///< sum over the queues of their running times by the shared clock,
  double queue_busy_ticks = 0;  ///< and by their own clocks
  u64 bytes = 0;
  std::vector<ThreadCost> threads;
  double counted_s = 0;  ///< for how long the threads' processor time was counted: longer than elapsed_s

  void add(const PhaseOutcome& outcome, u64 op_bytes);
  void add(const PhaseTally& other);
  [[nodiscard]] report::Metrics metrics() const;
};

/// One repeat: its kinds of phases by name ("write", "read"), in the order of their first use.
struct RepeatTally {
  std::vector<std::pair<std::string, PhaseTally>> parts;

  /// Made when it is first asked for.
  [[nodiscard]] PhaseTally& part(const std::string& name);
  [[nodiscard]] PhaseTally whole() const;
};

/// Rates are 0 where no time has passed.
[[nodiscard]] report::Metrics metrics_of(u64 ops, u64 bytes, double elapsed_s);

/// Adds a thread's processor time, and under its name if it has one. That of checking is no initiator's.
void add_thread(report::Cost& cost, const ThreadCost& thread);

/// One repeat as a cell has it, whatever has counted it.
struct RepeatFigures {
  u64 seed = 0;
  report::Metrics metrics;
  u64 errors = 0;
  std::vector<ThreadCost> threads = {};  ///< whose processor time the operations have cost
};

/// The repeat with the median rate; of two in the middle the slower one.
[[nodiscard]] std::size_t median_repeat(const std::vector<report::Repeat>& repeats);

/// Fills a cell's repeats and their spreads; its metrics and its cost are the median repeat's. Returns
/// warnings.
[[nodiscard]] std::vector<std::string> add_repeats(report::Cell& cell,
                                                   const std::vector<RepeatFigures>& repeats);

/// A record's name for data that is wrong in this way.
[[nodiscard]] std::string verdict_name(pattern::Verdict v);

/// Names a completion's status, as OpStats::StatusCount holds it.
using StatusName = std::string (*)(u16 code);

class Tally {
 public:
  /// `path` is the cell's, and the key of its own sub-object.
  Tally(std::string path, u64 op_bytes) : op_bytes_(op_bytes) { cell_.path = std::move(path); }

  /// Counts its errors, and leaves its figures out.
  void warm_up(const RepeatTally& r) { others_.add(r.whole()); }
  void add(u64 seed, RepeatTally r) { repeats_.push_back({seed, std::move(r)}); }
  /// Adds what came after the last repeat: late and repeated completions.
  void after(const PhaseTally& rest) { others_.add(rest); }

  /// Works out the cell. `stop`: what ended the run.
  void finish(double ns_per_tick, StopReason stop, bool substeps, StatusName status_name);

  [[nodiscard]] report::Cell& cell() { return cell_; }
  [[nodiscard]] const std::vector<std::string>& warnings() const { return warnings_; }
  /// Latencies of all repeats.
  [[nodiscard]] Histogram latency() const;

 private:
  struct Seeded {
    u64 seed;
    RepeatTally tally;
  };
  void warn_of_waiting();
  void measure_median(bool substeps, double ns_per_tick);
  void count_errors(StopReason stop, StatusName status_name);

  u64 op_bytes_;
  std::vector<Seeded> repeats_;
  PhaseTally others_;
  report::Cell cell_;
  std::vector<std::string> warnings_;
};

}  // namespace doorbell::measure
