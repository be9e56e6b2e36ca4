// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// What a software Cassini is asked to be.
#pragma once

#include <doorbell/cxi/types.hpp>

#include "model/fault.hpp"

namespace doorbell::cxi {

struct ModelConfig {
  u32 number = 0;          ///< N of cxi-modelN
  bool own_thread = true;  ///< false: whoever holds the device calls ModelCassini::poll()
  double bytes_per_s = 0;  ///< of the link, overhead included; 0: as fast as it goes
  u64 overhead = 0;        ///< bytes that a packet takes on the link beside its payload
  u64 latency_ns = 0;      ///< from a command to its acknowledgement
  u64 jitter_ns = 0;       ///< added to that, a random share of it
  u64 doorbell_ns = 0;     ///< from a doorbell to its first command
  u32 window = 0;          ///< operations on their way at most; 0: no limit
  u32 pid_bits = 9;
  u32 max_entries = 16384;  ///< list entries of all portals entries together
  bool gpu_memory = true;   ///< with a GPU: start the DMA agent that reaches its memory
  model::FaultRates faults;
  u64 seed = 1;
  u64 delay_ns = 1'500'000'000;                 ///< by how much Fault::delay holds an acknowledgement back
  ReturnCode nack = ReturnCode::undeliverable;  ///< of Fault::error
  u64 eq_full = 0;      ///< each event queue has room for so many events only; 0: for as many as it has
  u64 stuck_read = 0;   ///< the read pointer of a transmit queue stays after so many operations; 0: never
  u64 pte_disable = 0;  ///< a portals entry is disabled by the NIC after so many operations; 0: never
};

}  // namespace doorbell::cxi
