// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Making the carrier of a NIC.
#pragma once

#include <doorbell/config.hpp>

#include <memory>
#include <string>

#include "rdma/roce/carrier.hpp"

namespace doorbell::roce {

enum class CarrierKind : u8 {
  automatic,  ///< a ring where a NIC of this host and user listens, else UDP
  ring,       ///< packets for other peers are lost
  udp,
};

struct CarrierOptions {
  Endpoint self;  ///< an address of this machine; port 0: any that is free (not for CarrierKind::ring)
  CarrierKind kind = CarrierKind::automatic;
  u64 ring_bytes = 1 << 20;        ///< a power of two, 64 KiB to 64 MiB
  bool segmentation = true;        ///< UDP: one datagram for many packets, which the kernel cuts up and joins
  bool ring_icrc = false;          ///< rings: an ICRC in each packet; without it only where there is a trace
  std::string trace;               ///< a file; empty: none
  std::string name = "doorbell0";  ///< of the NIC, in the trace
  std::string faults;     ///< injected into what is sent: the wire's of those that parse_faults() reads
  u64 seed = 1;           ///< of the faults
  std::string fault_log;  ///< a file, to which a line is appended for each fault; empty: none
};

/// Throws Error.
[[nodiscard]] std::unique_ptr<Carrier> make_carrier(const CarrierOptions& options);

}  // namespace doorbell::roce
