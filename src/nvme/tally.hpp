// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// From what the queues counted in each phase to the cell of a Result.
#pragma once

#include <doorbell/nvme/controller.hpp>

#include <functional>
#include <string>
#include <utility>
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

class Tally {
 public:
  /// `status_text` names a completion's status.
  Tally(const NamespaceInfo& ns, u64 io_bytes, std::function<std::string(u16)> status_text)
      : ns_(ns), io_bytes_(io_bytes), status_text_(std::move(status_text)) {}

  /// Its errors count, its figures do not.
  void warm_up(const RepeatTally& r) { others_.add(r.both()); }
  void add(u64 seed, RepeatTally r) { repeats_.push_back({seed, std::move(r)}); }
  /// What came after the last repeat: late and repeated completions.
  void after(const RepeatTally& r) { others_.add(r.both()); }

  /// Works out the cell. `stop`: what ended the run.
  void finish(double ns_per_tick, StopReason stop, bool substeps);
  void floor(double ns_per_op) { cell_.extra["nvme"]["harness_floor_ns_per_op"] = ns_per_op; }
  /// What the device itself counted, under its kind.
  void device(const std::string& kind, nlohmann::ordered_json counters);
  void controller(const ControllerInfo& info);

  [[nodiscard]] const report::Cell& cell() const { return cell_; }
  [[nodiscard]] std::vector<std::string> warnings() const { return warnings_; }

 private:
  struct Seeded {
    u64 seed;
    RepeatTally tally;
  };
  void measure_median(bool substeps, double ns_per_tick);
  void count_errors(StopReason stop);
  void list_repeats();

  NamespaceInfo ns_;
  u64 io_bytes_;
  std::function<std::string(u16)> status_text_;
  std::vector<Seeded> repeats_;
  PhaseTally others_;
  report::Cell cell_;
  std::vector<std::string> warnings_;
};

}  // namespace doorbell::nvme
