// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// What a software NIC is asked to be.
#pragma once

#include <doorbell/config.hpp>

#include <string>

#include "model/fault.hpp"

namespace doorbell::rdma {

struct ModelConfig {
  u32 threads = 1;           ///< device threads; 0: as fits the run
  bool own_threads = true;   ///< false: whoever holds the device calls ModelNic::poll()
  u32 mtu = 4096;            ///< of the port
  u64 latency_ns = 0;        ///< added to every message
  double bytes_per_s = 0;    ///< of the wire, headers included; 0: as fast as it goes
  double loss = 0;           ///< probability that a packet is lost
  u32 rnr_tries = 0;         ///< each message that takes a receive is refused so often before it is served
  u32 max_inline = 0;        ///< bytes granted at most; 0: what the format can carry
  u32 max_sends = 32768;     ///< requests of one send queue
  u32 max_receives = 32768;  ///< entries of one receive queue
  u32 max_queue_pairs = 1024;
  bool gpu_memory = true;  ///< with a GPU: start the DMA agent that reaches its memory
  model::FaultRates faults;
  u64 seed = 1;
  u64 delay_ns = 1'500'000'000;  ///< by how much Fault::delay holds a completion back
};

}  // namespace doorbell::rdma
