// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Streams over the kernel's sockets: a UDP datagram or a TCP record a packet. IPv4.
//
// Packets point into what the kernel has copied them to: pieces of a coalesced datagram, records of a byte
// stream. Their addresses are therefore not aligned.
#pragma once

#include "net/stream.hpp"

namespace doorbell::net {

[[nodiscard]] const StreamKind& tcp_stream();
[[nodiscard]] const StreamKind& udp_stream();

}  // namespace doorbell::net
