// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The members of OpCounters by their names and by what they count: a list of them is a class of this table.
// (lane_counters.hpp, which kernels include, has what each lane counts for itself.)
#pragma once

#include <algorithm>
#include <array>
#include <iterator>
#include <span>

#include "loop/op_stats.hpp"
#include "report/result.hpp"

namespace doorbell::measure {

enum class CounterClass : u32 {
  operations,  ///< that were posted, and that succeeded
  error,       ///< operations that went wrong: a class of a Result's errors
  check,       ///< operations by whether their data could be checked
  failure,     ///< operations with wrong data: a class of failed verification
  work,        ///< polls and doorbells, and the time that goes by in each step
  own          ///< figures of one queue in one phase, which are not added up
};

struct OpCounter {
  const char* name = nullptr;
  u64 OpCounters::*field = nullptr;
  CounterClass is = {};
  u64 report::Verify::*verify = nullptr;  ///< where a Result's verification has it
  const char* result_name = name;         ///< the class's name in a Result
};

inline constexpr OpCounter kCounters[] = {
    {"posted", &OpCounters::posted, CounterClass::operations},
    {"succeeded", &OpCounters::succeeded, CounterClass::operations},
    {"failed", &OpCounters::failed, CounterClass::error, nullptr, "completion"},
    {"timed_out", &OpCounters::timed_out, CounterClass::error, nullptr, "timeout"},
    {"late", &OpCounters::late, CounterClass::error},
    {"aborted", &OpCounters::aborted, CounterClass::error},
    {"skipped", &OpCounters::skipped, CounterClass::error},
    {"protocol", &OpCounters::protocol, CounterClass::error},
    {"unchecked", &OpCounters::unchecked, CounterClass::error},
    {"checked", &OpCounters::checked, CounterClass::check, &report::Verify::checked},
    {"old_version", &OpCounters::old_version, CounterClass::check},
    {"unverifiable", &OpCounters::unverifiable, CounterClass::check, &report::Verify::unverifiable},
    {"corrupt", &OpCounters::corrupt, CounterClass::failure, &report::Verify::corrupt},
    {"misplaced", &OpCounters::misplaced, CounterClass::failure, &report::Verify::misplaced},
    {"stale", &OpCounters::stale, CounterClass::failure, &report::Verify::stale},
    {"duplicated", &OpCounters::duplicated, CounterClass::failure, &report::Verify::duplicated},
    {"missing", &OpCounters::missing, CounterClass::failure, &report::Verify::missing},
    {"polls", &OpCounters::polls, CounterClass::work},
    {"empty_polls", &OpCounters::empty_polls, CounterClass::work},
    {"sq_doorbells", &OpCounters::sq_doorbells, CounterClass::work},
    {"cq_doorbells", &OpCounters::cq_doorbells, CounterClass::work},
    {"register_writes", &OpCounters::register_writes, CounterClass::work},
    {"timed", &OpCounters::timed, CounterClass::work},
    {"payload_ticks", &OpCounters::payload_ticks, CounterClass::work},
    {"total_ticks", &OpCounters::total_ticks, CounterClass::work},
    {"build_ticks", &OpCounters::build_ticks, CounterClass::work},
    {"enqueue_ticks", &OpCounters::enqueue_ticks, CounterClass::work},
    {"sq_doorbell_ticks", &OpCounters::sq_doorbell_ticks, CounterClass::work},
    {"cq_poll_ticks", &OpCounters::cq_poll_ticks, CounterClass::work},
    {"cq_doorbell_ticks", &OpCounters::cq_doorbell_ticks, CounterClass::work},
    {"begin_ns", &OpCounters::begin_ns, CounterClass::own},
    {"end_ns", &OpCounters::end_ns, CounterClass::own},
    {"min_ns", &OpCounters::min_ns, CounterClass::own},
    {"max_ns", &OpCounters::max_ns, CounterClass::own},
    {"sum_ns", &OpCounters::sum_ns, CounterClass::own},
    {"busy_ticks", &OpCounters::busy_ticks, CounterClass::own}};

/// The counters of these classes, as an array.
template <CounterClass... classes>
[[nodiscard]] constexpr auto counters_of() {
  constexpr auto among = [](const OpCounter& c) { return (... || (c.is == classes)); };
  std::array<OpCounter,
             static_cast<std::size_t>(std::count_if(std::begin(kCounters), std::end(kCounters), among))>
      out{};
  std::copy_if(std::begin(kCounters), std::end(kCounters), out.begin(), among);
  return out;
}

/// Each member is a row, but for sum_sq_ns, which is no integer; the failures are those of a Result.
consteval bool counters_are_complete() {
  for (const OpCounter& c : kCounters)
    if (std::ranges::count(kCounters, c.field, &OpCounter::field) != 1) return false;
  return sizeof(OpCounters) == std::size(kCounters) * sizeof(u64) + sizeof(OpCounters::sum_sq_ns) &&
         std::ranges::equal(counters_of<CounterClass::failure>(), report::Verify::kFailures, {},
                            &OpCounter::verify, &report::Verify::Failure::second);
}
static_assert(counters_are_complete());

/// Operations that went wrong: errors, and data that failed its check.
[[nodiscard]] inline u64 errors_of(const OpCounters& of) {
  u64 sum = 0;
  for (const OpCounter& c : counters_of<CounterClass::error, CounterClass::failure>()) sum += of.*c.field;
  return sum;
}

/// Adds the operations that did not succeed. They are posted in no other sum: each was posted once and ended
/// once.
inline void add_failed(OpStats& into, const OpStats& from) {
  into.failed += from.failed;
  into.timed_out += from.timed_out;
  into.aborted += from.aborted;
  into.posted += from.failed + from.timed_out + from.aborted;
  add_tables(into, from);
}

/// Adds what was found in data that arrived. What failed there is an error of its own: each operation was
/// posted once and ended once.
inline void add_findings(OpStats& into, std::span<const OpStats> queues) {
  for (const OpStats& from : queues) {
    for (const OpCounter& c : counters_of<CounterClass::error, CounterClass::failure>())
      if (c.field != &OpCounters::late && c.field != &OpCounters::timed_out &&
          c.field != &OpCounters::aborted)
        into.*c.field += from.*c.field;
    into.checked += from.checked;
    into.posted += from.failed;
    add_tables(into, from);
  }
}

/// Adds what is wrong in a phase around a measured one, whose operations are counted nowhere else.
inline void add_errors(OpStats& into, std::span<const OpStats> queues) {
  add_findings(into, queues);
  for (const OpStats& from : queues) {
    into.late += from.late;
    into.timed_out += from.timed_out;
    into.aborted += from.aborted;
    into.posted += from.timed_out + from.aborted;
  }
}

}  // namespace doorbell::measure
