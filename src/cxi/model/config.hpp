// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// What a software Cassini is asked to be.
#pragma once

#include <doorbell/cxi/types.hpp>

#include "model/config.hpp"

namespace doorbell::cxi {

struct ModelConfig : model::Config {
  u32 number = 0;          ///< N of cxi-modelN
  bool own_thread = true;  ///< false: whoever holds the device calls ModelCassini::poll()
  u64 overhead = 0;        ///< bytes that a packet takes on the link beside its payload
  u64 jitter_ns = 0;       ///< added to the latency, a random share of it
  u64 doorbell_ns = 0;     ///< from a doorbell to its first command
  u32 window = 0;          ///< operations on their way at most; 0: no limit
  u32 pid_bits = 9;
  u32 max_list_entries = 16384;                 ///< of all portals entries together
  ReturnCode nack = ReturnCode::undeliverable;  ///< of Fault::error
  /// How long a low-latency window may take to be written: a busy machine keeps a writer from its second half
  /// for a while. After that, what lies at another place is rejected.
  u64 slow_writer_ns = 1'000'000'000;
  u64 eq_full = 0;      ///< each event queue has room for so many events only; 0: for as many as it has
  u64 stuck_read = 0;   ///< the read pointer of a transmit queue stays after so many operations; 0: never
  u64 pte_disable = 0;  ///< a portals entry is disabled by the NIC after so many operations; 0: never
};

}  // namespace doorbell::cxi
