// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The configuration of a software NIC.
#pragma once

#include "model/config.hpp"

namespace doorbell::rdma {

struct ModelConfig : model::Config {
  bool own_threads = true;   ///< false: the owner of the device calls ModelNic::poll()
  u32 mtu = 4096;            ///< of the port
  double loss = 0;           ///< probability that a packet is lost
  u32 rnr_tries = 0;         ///< how often each message that takes a receive is refused at first
  u32 max_inline = 0;        ///< most bytes granted; 0: what the format can carry
  u32 max_sends = 32768;     ///< requests of one send queue
  u32 max_receives = 32768;  ///< entries of one receive queue
  u32 max_queue_pairs = 1024;
};

}  // namespace doorbell::rdma
