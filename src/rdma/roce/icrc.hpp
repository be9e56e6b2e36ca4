// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The checksum at the end of a RoCEv2 packet. It covers headers that a UDP socket neither writes nor shows:
// they are here as Linux sends them from an unconnected socket with IP_PMTUDISC_DO. Source: InfiniBand
// Architecture Specification, annex A17; compared with packets of scapy and of the kernel.
#pragma once

#include <doorbell/config.hpp>

#include <optional>
#include <span>

#include "rdma/roce/carrier.hpp"

namespace doorbell::roce {

/// From where to where a packet goes.
struct Route {
  Endpoint source, destination;
};

/// IPv4 and UDP, which lie before BTH.
inline constexpr std::size_t kOuterHeaders = 28;

/// The ICRC as a number, which the packet has in little-endian order. `bytes` is BTH to pad, 12 at least.
/// `identification` is IPv4's.
[[nodiscard]] u32 icrc(const Route& route, std::span<const u8> bytes, u16 identification = 0);

/// The IPv4 identification for which `stored` is the ICRC of `bytes`, if there is one; `guess` is tried
/// first. The kernel shows no socket which one a packet had: soft-RoCE counts it, and so does segmentation.
/// Of the 32 bits 16 are left that tell a damaged packet, unless the caller knows which ones can be.
[[nodiscard]] std::optional<u16> identification_of(const Route& route, std::span<const u8> bytes, u32 stored,
                                                   u16 guess = 0);

/// IPv4 and UDP headers of a packet of so many bytes from BTH to ICRC; UDP's checksum is 0 (not used).
void write_outer_headers(const Route& route, std::size_t bytes, u16 identification, u8* out);

}  // namespace doorbell::roce
