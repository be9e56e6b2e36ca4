// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The part of a Cassini model's configuration that its engine needs, and what it counts. Plain data, for
// kernels too.
#pragma once

#include <doorbell/cxi/types.hpp>

#include "model/count.hpp"

namespace doorbell::cxi {

/// Left of the number of bytes that a buffer must have free, in APPEND commands.
inline constexpr u32 kMinFreeShift = 10;

struct EngineRule {
  u32 nid = 0;
  u32 pid_bits = 9;
  u64 overhead = 0;
  u64 jitter_ns = 0;
  u64 doorbell_ns = 0;
  u32 window = 0;
  u32 max_list_entries = 0;
  ReturnCode nack = ReturnCode::undeliverable;
  u64 slow_writer_ns = 0;
  u64 stuck_read = 0;
  u64 pte_disable = 0;
  u64 seed = 1;
  bool limited = false;        ///< the link has a bandwidth or a latency
  bool faulty = false;         ///< faults are injected
  bool rendezvous_get = true;  ///< the NIC itself gets the rest of a rendezvous put
  /// Acknowledgements may take time, be lost, or be repeated.
  [[nodiscard]] DOORBELL_INLINE bool reports_late() const { return limited || jitter_ns > 0 || faulty; }
  /// Faults or other special behaviour was asked for.
  [[nodiscard]] DOORBELL_INLINE bool careful() const {
    return reports_late() || pte_disable > 0 || stuck_read > 0;
  }
};

struct EngineCounters {
  model::Count commands, puts, gets, idc_puts, atomics, unrestricted, bytes, packets, doorbells,
      invalid_doorbells, window_writes, rejected_windows, command_failures, refused_operations, events,
      dropped_events, triggered;
  model::Count in_bursts;  ///< operations that several lanes executed together
  // Injected faults that only this model has.
  model::Count eq_full, stuck_read, pte_disabled;
};

}  // namespace doorbell::cxi
