// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// What a software NIC is asked to be.
#pragma once

#include "model/config.hpp"

namespace doorbell::rdma {

struct ModelConfig : model::Config {
  bool own_threads = true;   ///< false: whoever holds the device calls ModelNic::poll()
  u32 mtu = 4096;            ///< of the port
  double loss = 0;           ///< probability that a packet is lost
  u32 rnr_tries = 0;         ///< each message that takes a receive is refused so often before it is served
  u32 max_inline = 0;        ///< bytes granted at most; 0: what the format can carry
  u32 max_sends = 32768;     ///< requests of one send queue
  u32 max_receives = 32768;  ///< entries of one receive queue
  u32 max_queue_pairs = 1024;
};

}  // namespace doorbell::rdma
