// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The configuration of a software Cassini.
#pragma once

#include <doorbell/cxi/types.hpp>

#include "model/config.hpp"

namespace doorbell::cxi {

struct ModelConfig : model::Config {
  u32 number = 0;          ///< N of cxi-modelN
  bool own_thread = true;  ///< false: the owner of the device calls ModelCassini::poll()
  u64 overhead = 0;        ///< bytes of a packet on the link besides its payload
  u64 jitter_ns = 0;       ///< a random part of it is added to the latency
  u64 doorbell_ns = 0;     ///< from a doorbell to its first command
  u32 window = 0;          ///< operations under way at most; 0: no limit
  u32 pid_bits = 9;
  enum class WriteBack { each, on_request };
  WriteBack write_back = WriteBack::each;  ///< of counters
  enum class RendezvousGet { nic, program };
  RendezvousGet rendezvous_get = RendezvousGet::nic;  ///< of the rest of a rendezvous put
  u32 max_list_entries = 16384;                       ///< of all portals entries together
  ReturnCode nack = ReturnCode::undeliverable;        ///< of Fault::error
  /// The time that a writer may take for a low-latency window: a busy machine may stop the writer between two
  /// stores. After that time a write at another place is rejected.
  u64 slow_writer_ns = 1'000'000'000;
  u64 eq_full = 0;      ///< each event queue has room for only so many events; 0: for all that fit
  u64 stuck_read = 0;   ///< a transmit queue's read pointer stops after so many operations; 0: never
  u64 pte_disable = 0;  ///< the NIC disables a portals entry after so many operations; 0: never
};

}  // namespace doorbell::cxi
