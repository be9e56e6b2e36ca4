// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The report on one phase by a loop that drives one queue, whatever the path. Plain data in memory that host
// and GPU both reach.
#pragma once

#include <doorbell/pattern.hpp>

namespace doorbell {

/// Why a loop stopped posting; of several the last in this order. `broken`: the queue pair is in its error
/// state. `reset`: the device is no longer ready (another program reset it) or reports a fatal state.
enum class StopReason : u32 { done = 0, requested, duration, broken, timeout, reset, removed };

/// One queue's work in one phase, as far as it is plain sums.
struct OpCounters {
  u64 posted = 0;
  u64 succeeded = 0;
  u64 failed = 0;      ///< completed with a status other than success
  u64 timed_out = 0;   ///< no completion within the deadline
  u64 aborted = 0;     ///< in flight when the device went away or was reset, or when the loop gave up
  u64 late = 0;        ///< completed, but after late_ticks or after the deadline
  u64 duplicated = 0;  ///< completions of operations that were not in flight
  u64 skipped = 0;     ///< among the succeeded: their own completion never came, a later one covers them
  u64 protocol = 0;  ///< completions that break the device's protocol: a foreign queue, an index out of range
  u64 checked = 0;
  u64 old_version = 0;  ///< of those: right, but units of an earlier version of the pattern
  u64 unverifiable = 0;
  u64 corrupt = 0;
  u64 misplaced = 0;
  u64 stale = 0;
  u64 missing = 0;
  u64 unchecked = 0;  ///< slots that checkers did not finish by the deadline: data not checked, or not made
  u64 polls = 0;
  u64 empty_polls = 0;
  u64 sq_doorbells = 0;
  u64 cq_doorbells = 0;
  u64 register_writes = 0;
  u64 begin_ns = 0;  ///< first post, in ns of a clock that all queues share
  u64 end_ns = 0;    ///< last completion
  u64 timed = 0;     ///< operations in the figures below
  u64 min_ns = ~u64{0};
  u64 max_ns = 0;
  u64 sum_ns = 0;
  double sum_sq_ns = 0;
  u64 busy_ticks = 0;     ///< begin_ns to end_ns by the loop's own clock
  u64 payload_ticks = 0;  ///< making payloads and marking targets, before an operation's own time begins
  u64 total_ticks = 0;    ///< of every operation, whatever became of it; 0: the path does not count it
  u64 build_ticks = 0;
  u64 enqueue_ticks = 0;
  u64 sq_doorbell_ticks = 0;
  u64 cq_poll_ticks = 0;
  u64 cq_doorbell_ticks = 0;
};

/// The counters, and the tables that rare events go into.
struct OpStats : OpCounters {
  StopReason stop = StopReason::done;

  static constexpr u32 kKept = 8;
  struct StatusCount {
    u16 code = 0;  ///< as the path encodes it
    u64 count = 0;
  };
  StatusCount statuses[kKept];  ///< the last entry also counts what found no place
  struct Failure {
    pattern::Verdict verdict = pattern::Verdict::ok;
    u64 address = 0;
    u64 sequence = 0;
  };
  u32 failures = 0;  ///< entries of first_failures in use
  Failure first_failures[kKept];
};

/// Counts `n` completions of one status; what finds no entry of its own goes to the last one.
DOORBELL_INLINE void count_status(OpStats& into, u16 code, u64 n) {
  u32 at = 0;
  while (at + 1 < OpStats::kKept && into.statuses[at].count > 0 && into.statuses[at].code != code) ++at;
  if (into.statuses[at].count == 0) into.statuses[at].code = code;
  into.statuses[at].count += n;
}

/// Counts a unit that is not ok in `counters`; one that failed its check is kept in the table while there is
/// room.
DOORBELL_INLINE void count_verdict(OpCounters& counters, OpStats& table, pattern::Verdict v, u64 address,
                                   u64 sequence) {
  using pattern::Verdict;
  if (v == Verdict::old_version) {
    ++counters.old_version;
    return;
  }
  if (v == Verdict::corrupt) ++counters.corrupt;
  if (v == Verdict::misplaced) ++counters.misplaced;
  if (v == Verdict::stale) ++counters.stale;
  if (v == Verdict::missing) ++counters.missing;
  if (table.failures < OpStats::kKept) table.first_failures[table.failures++] = {v, address, sequence};
}

/// Adds another queue's tables; its plain sums are the caller's.
inline void add_tables(OpStats& into, const OpStats& from) {
  for (const OpStats::StatusCount& c : from.statuses)
    if (c.count > 0) count_status(into, c.code, c.count);
  for (u32 i = 0; i < from.failures && into.failures < OpStats::kKept; ++i)
    into.first_failures[into.failures++] = from.first_failures[i];
}

}  // namespace doorbell
