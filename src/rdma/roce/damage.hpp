// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Damage on the wire: how who injects faults tells a carrier which packet arrives with a wrong bit. It
// happens behind the ICRC, so that the receiver finds it.
#pragma once

#include <doorbell/config.hpp>

#include <cstring>

#include "rdma/roce/carrier.hpp"

namespace doorbell::roce {

/// Of each record the word behind its size, where the carrier was made for damage: 0, or 1 + the number of
/// the bit, counted from BTH on.
inline constexpr std::size_t kDamageOffset = 4;

inline void ask_for_damage(u8* packet, u32 bit_plus_one) {
  std::memcpy(packet - Path::kRecordHeader + kDamageOffset, &bit_plus_one, sizeof bit_plus_one);
}

/// `size` is that of the packet with its ICRC.
inline void damage(u8* packet, std::size_t size) {
  u32 bit = 0;
  std::memcpy(&bit, packet - Path::kRecordHeader + kDamageOffset, sizeof bit);
  if (bit-- == 0 || bit / 8 >= size) return;
  packet[bit / 8] = static_cast<u8>(packet[bit / 8] ^ 1 << bit % 8);
}

}  // namespace doorbell::roce
