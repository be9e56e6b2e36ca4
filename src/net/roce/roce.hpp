// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Messages by RDMA SEND over reliable connections, one a flow: the model NIC of any vendor's queues, a
// vendor's own hardware, or any device of libibverbs, soft-RoCE included.
//
// A message of no bytes, behind a flow's last one, is the flow's end.
#pragma once

#include "net/stream.hpp"
#include "rdma/backends.hpp"

namespace doorbell::net {

/// RoCE v2 over IPv4, each packet: Ethernet 14, IPv4 20, UDP 8, base transport header 12, ICRC 4. A message
/// takes a packet for each MTU of its bytes.
inline constexpr u32 kRoceOverhead = 14 + 20 + 8 + 12 + 4;

/// The stream's device and queues come from StreamRequest; a link only gives the address of a far end.
[[nodiscard]] const StreamKind& roce_stream();

/// The values that a request means, with their ranges checked.
struct RoceShape {
  u32 payload_bytes = 0;
  u64 stride = 0;  ///< between slots and between receive buffers
  u32 tx_depth = 0;
  u32 rx_depth = 0;
  u32 window = 0;
  u32 signal_every = 0;
  u32 slots = 0;
  u64 timeout_ns = 0;
};
/// Throws Error naming the setting.
[[nodiscard]] RoceShape roce_shape(const StreamRequest& request);

/// The stream over a NIC that is open. With one end only, the other end is a process that does the same. The
/// two talk over the link's other_process(); where there is none, the receiver listens at `request.port` of
/// its address on the link, and the sender connects to it.
[[nodiscard]] std::unique_ptr<Stream> open_roce(const StreamRequest& request, Link& link,
                                                std::shared_ptr<rdma::NicDevice> nic);

}  // namespace doorbell::net
