// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The part of a NIC's configuration that its engines need. Plain data, for kernels too.
#pragma once

#include <doorbell/config.hpp>

namespace doorbell::rdma {

struct EngineRule {
  double loss = 0;    ///< probability that a packet is lost
  u32 rnr_tries = 0;  ///< how often each message that takes a receive is refused at first
  u64 seed = 1;
  bool limited = false;  ///< the link has a bandwidth or a latency
  bool faulty = false;   ///< faults are injected
  /// Faults, loss or other special behaviour was asked for.
  [[nodiscard]] DOORBELL_INLINE bool careful() const {
    return faulty || limited || loss > 0 || rnr_tries > 0;
  }
};

}  // namespace doorbell::rdma
