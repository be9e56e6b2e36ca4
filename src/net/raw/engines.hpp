// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Engines of raw streams: what --engine names. Each sends Ethernet frames with UDP packets over IPv4.
#pragma once

#include "net/stream.hpp"
#include "options/option.hpp"

namespace doorbell::net {

/// A device in memory, for the link `ring[:KEY=VALUE,...]`.
[[nodiscard]] const StreamKind& ring_engine();
/// The keys of that link.
[[nodiscard]] const options::OptionTable& ring_keys();

/// The kernel's packet sockets, for links with interfaces.
[[nodiscard]] const StreamKind& af_packet_engine();

/// AF_XDP sockets in copy mode, for links with interfaces that have a queue for each flow.
[[nodiscard]] const StreamKind& af_xdp_engine();

}  // namespace doorbell::net
