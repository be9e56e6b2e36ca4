// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// From what the queues counted in each phase to the cell of a Result.
#pragma once

#include <doorbell/nvme/controller.hpp>

#include <string>
#include <vector>

#include "nvme/runner.hpp"
#include "report/result.hpp"

namespace doorbell::nvme {

/// Sums over the phases of one kind in one repeat.
struct PhaseTally {
  IoStats sum;  ///< counters and tables of all queues; begin and end are not used
  measure::Histogram latency;
  double elapsed_s = 0;
  double queue_busy_ns = 0;     ///< over queues: how long each ran by the shared clock,
  double queue_busy_ticks = 0;  ///< and by its own
  u64 bytes = 0;
  std::vector<ThreadCost> threads;

  void add(const PhaseOutcome& outcome, u64 io_bytes);
  void add(const PhaseTally& other);
  [[nodiscard]] report::Metrics metrics() const;
};

struct RepeatTally {
  PhaseTally write;
  PhaseTally read;
  [[nodiscard]] PhaseTally both() const;
};

[[nodiscard]] report::Repeat repeat_of(u64 seed, const report::Metrics& metrics, u64 errors);
/// Fills the cell's spreads from its repeats; returns warnings.
[[nodiscard]] std::vector<std::string> summarise_repeats(report::Cell& cell);

/// What the Result says of a controller.
[[nodiscard]] nlohmann::ordered_json controller_facts(const ControllerInfo& info, const NamespaceInfo& ns);

class Tally {
 public:
  explicit Tally(u64 io_bytes) : io_bytes_(io_bytes) {}

  /// Its errors count, its figures do not.
  void warm_up(const RepeatTally& r) { others_.add(r.both()); }
  void add(u64 seed, RepeatTally r) { repeats_.push_back({seed, std::move(r)}); }
  /// What came after the last repeat: late and repeated completions.
  void after(const RepeatTally& r) { others_.add(r.both()); }

  /// Works out the cell. `stop`: what ended the run; `status_name` names a completion's status.
  void finish(double ns_per_tick, StopReason stop, bool substeps, std::string (*status_name)(u16));

  [[nodiscard]] report::Cell& cell() { return cell_; }
  [[nodiscard]] std::vector<std::string> warnings() const { return warnings_; }

 private:
  struct Seeded {
    u64 seed;
    RepeatTally tally;
  };
  void measure_median(bool substeps, double ns_per_tick);
  void count_errors(StopReason stop, std::string (*status_name)(u16));
  void list_repeats();

  u64 io_bytes_;
  std::vector<Seeded> repeats_;
  PhaseTally others_;
  report::Cell cell_;
  std::vector<std::string> warnings_;
};

}  // namespace doorbell::nvme
