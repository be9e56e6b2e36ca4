// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// How the lanes of a loop count: each for itself while it runs, together when it ends.
#pragma once

#include <doorbell/warp.hpp>

#include "loop/histogram.hpp"
#include "loop/op_stats.hpp"

namespace doorbell {

/// One lane: an operation took `ns`. `bins` are shared by the lanes.
template <class Warp>
DOORBELL_INLINE void count_latency(OpCounters& mine, u64* bins, u64 ns) {
  const auto real = static_cast<double>(ns);
  ++mine.timed;
  mine.sum_ns += ns;
  mine.sum_sq_ns += real * real;
  if (ns < mine.min_ns) mine.min_ns = ns;
  if (ns > mine.max_ns) mine.max_ns = ns;
  histogram::increment<Warp>(&bins[histogram::bucket_of(ns)]);
}

/// Collective: adds what the lanes counted to `out`; the minimum and maximum replace what is there.
template <class Warp>
DOORBELL_INLINE void add_lanes(const Warp& warp, const OpCounters& mine, OpStats& out) {
  // These are the same on every lane: one of them reports.
  if (warp.lane() == 0) {
    out.polls += mine.polls;
    out.empty_polls += mine.empty_polls;
    out.sq_doorbells += mine.sq_doorbells;
    out.cq_doorbells += mine.cq_doorbells;
    out.register_writes += mine.register_writes;
    out.payload_ticks += mine.payload_ticks;
    out.build_ticks += mine.build_ticks;
    out.enqueue_ticks += mine.enqueue_ticks;
    out.sq_doorbell_ticks += mine.sq_doorbell_ticks;
    out.cq_poll_ticks += mine.cq_poll_ticks;
    out.cq_doorbell_ticks += mine.cq_doorbell_ticks;
  }
  // These every lane counted for itself.
  const auto add = [&](auto OpCounters::*field) {
    const auto sum = reduce_add(warp, mine.*field);
    if (warp.lane() == 0) out.*field += sum;
  };
  add(&OpCounters::succeeded);
  add(&OpCounters::failed);
  add(&OpCounters::late);
  add(&OpCounters::duplicated);
  add(&OpCounters::protocol);
  add(&OpCounters::checked);
  add(&OpCounters::old_version);
  add(&OpCounters::unverifiable);
  add(&OpCounters::corrupt);
  add(&OpCounters::misplaced);
  add(&OpCounters::stale);
  add(&OpCounters::missing);
  add(&OpCounters::timed);
  add(&OpCounters::total_ticks);
  add(&OpCounters::sum_ns);
  add(&OpCounters::sum_sq_ns);
  const u64 low = reduce_min(warp, mine.min_ns);
  const u64 high = reduce_max(warp, mine.max_ns);
  if (warp.lane() == 0) {
    out.min_ns = low;
    out.max_ns = high;
  }
}

}  // namespace doorbell
