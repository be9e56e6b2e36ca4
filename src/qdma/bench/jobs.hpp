// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Threads that call transfer(), each with a buffer and a place on the card of its own, and the data that they
// move: named by its card address, so that data of another place is recognised.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "measure/bench_run.hpp"
#include "qdma/bench/port.hpp"

namespace doorbell::qdma {

class GpuSide;

/// A buffer's worth of the card's memory, and the host's buffer for it.
struct CardPlace {
  std::string name;  ///< "HBM3"
  MemoryPart memory;
  u64 address = 0;
  Buffer* buffer = nullptr;
  u64 sequence = 0;                             ///< of the data that should be there; 0: none was written
  std::optional<pattern::Identity> found = {};  ///< a whole unit that the last failed check found instead
  u64 found_at = 0;                             ///< card address
  GpuSide* gpu = nullptr;  ///< transfers move GPU memory; the buffer is what is made and checked
};

/// The work of one thread: the same transfer over and over.
struct Job {
  CardPlace* place = nullptr;
  Direction direction = Direction::host_to_card;
  ChannelDescriptor* descriptor = nullptr;
  u64 calls = 0;  ///< in place of JobLimits::iterations; 0: those
};

/// Work of a job's thread between its calls, which may count in the job's counters.
using BetweenCalls = std::function<void(const Job& job, OpStats& stats)>;

struct JobLimits {
  u64 iterations = 1;     ///< of each job, if there is no duration
  double duration_s = 0;  ///< a transfer that has begun then is finished, and its time counts
  double deadline_s = 10;
  double late_after_s = 1;  ///< of time for which this process runs
  const measure::StopFlag* stop = nullptr;
  /// Before each call, and after each that succeeded. Their time is in no figure; with several jobs it is
  /// time in which the others have the card to themselves.
  BetweenCalls before = {}, after = {};
};

/// Takes out of a cell of jobs what only queues count: a call's doorbells and polls are the driver's.
void leave_out_queue_counts(report::Cell& cell);

/// The results of each direction's jobs, and of all jobs: each from its first start to its last end.
struct JobsOutcome {
  measure::PhaseTally read, write, total;
  /// Bytes a second by the card's own clock, of jobs that kept it busy together; 0: not reported.
  double read_card_rate = 0, write_card_rate = 0, total_card_rate = 0;
  StopReason stop = StopReason::done;
  std::vector<OpStats> jobs;
};

/// Runs every job in a thread of its own; all begin together.
[[nodiscard]] JobsOutcome run_jobs(std::span<const Job> jobs, const JobLimits& limits);

/// Makes the buffer's contents what belongs to its place, under a new sequence.
void fill(CardPlace& place, u64 seed, u64 sequence);
/// Marks the buffer: nothing has arrived.
void poison(CardPlace& place);
/// Compares the buffer with what belongs to the place, and counts it in `stats`.
pattern::Verdict check(CardPlace& place, u64 seed, OpStats& stats);
/// Fetches what is at the job's place, and compares it. A transfer that fails is an error in `stats`.
void read_back(const Job& job, u64 seed, double deadline_s, OpStats& stats);

/// The functions of JobLimits that check each call: what is written is new data each time and is read back,
/// what is read is compared.
struct EachCallChecked {
  BetweenCalls before, after;
};
/// `sequence` is counted up for each put. It outlives the calls.
[[nodiscard]] EachCallChecked each_call_checked(u64 seed, double deadline_s, std::atomic<u64>& sequence);

}  // namespace doorbell::qdma
