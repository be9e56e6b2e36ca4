// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Threads that call transfer(), each with a buffer and a place on the card of its own, and the data that they
// move: named by its card address, so that data of another place is recognised.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "measure/bench_run.hpp"
#include "qdma/port.hpp"

namespace doorbell::qdma {

/// A buffer's worth of the card's memory, and the host's buffer for it.
struct CardPlace {
  std::string name;  ///< "HBM3"
  MemoryPart memory;
  u64 address = 0;
  Buffer* buffer = nullptr;
  u64 sequence = 0;  ///< of the data that should be there; 0: none was written
};

/// What one thread does: the same transfer over and over.
struct Job {
  CardPlace* place = nullptr;
  Direction direction = Direction::host_to_card;
  ChannelDescriptor* descriptor = nullptr;
};

struct JobLimits {
  u64 iterations = 1;     ///< of each job, if there is no duration
  double duration_s = 0;  ///< a transfer that has begun then is finished, and its time counts
  double deadline_s = 10;
  double late_after_s = 1;
  const measure::StopFlag* stop = nullptr;
};

/// What the jobs of each direction did, and all of them: each from its first start to its last end.
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
pattern::Verdict check(const CardPlace& place, u64 seed, OpStats& stats);

}  // namespace doorbell::qdma
