// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A message in the memory of a program: the pieces that a request's SGEs name, as one run of bytes.
#pragma once

#include <doorbell/config.hpp>

#include <algorithm>
#include <cstring>
#include <span>

#include "rdma/roce/keys.hpp"
#include "rdma/roce/requests.hpp"

namespace doorbell::roce {

[[nodiscard]] inline u64 bytes_of(std::span<const Sge> sges) {
  u64 bytes = 0;
  for (const Sge& sge : sges) bytes += sge.length;
  return bytes;
}

/// Where the last access ended: packets go through a message in order, so the next one begins there.
struct PiecesCursor {
  u32 sge = 0;
  u64 before = 0;  ///< bytes of the SGEs before it
};

/// Calls visit(memory, bytes) for each part of [offset, offset + bytes). False if a key does not allow
/// `rights`; what came before it has been visited.
template <class Visit>
bool visit_pieces(const KeyTable& keys, u32 protection_domain, u32 rights, std::span<const Sge> sges,
                  PiecesCursor& at, u64 offset, u64 bytes, Visit&& visit) {
  if (offset < at.before) at = {};
  while (bytes > 0) {
    if (at.sge >= sges.size()) return false;
    const Sge& sge = sges[at.sge];
    const u64 within = offset - at.before;
    if (within >= sge.length) {
      at.before += sge.length;
      ++at.sge;
      continue;
    }
    const u64 part = std::min<u64>(bytes, sge.length - within);
    u8* memory = keys.find_local(sge, protection_domain, within, part, rights);
    if (memory == nullptr) return false;
    visit(memory, static_cast<std::size_t>(part));
    offset += part;
    bytes -= part;
  }
  return true;
}

/// Copies a packet's payload out of the program's memory.
inline bool gather(const KeyTable& keys, u32 protection_domain, std::span<const Sge> sges, PiecesCursor& at,
                   u64 offset, std::size_t bytes, u8* to) {
  return visit_pieces(keys, protection_domain, 0, sges, at, offset, bytes,
                      [&to](const u8* memory, std::size_t part) {
                        std::memcpy(to, memory, part);
                        to += part;
                      });
}

/// Copies a packet's payload to the program's memory.
inline bool scatter(const KeyTable& keys, u32 protection_domain, std::span<const Sge> sges, PiecesCursor& at,
                    u64 offset, std::span<const u8> from) {
  const u8* next = from.data();
  return visit_pieces(keys, protection_domain, kLocalWrite, sges, at, offset, from.size(),
                      [&next](u8* memory, std::size_t part) {
                        std::memcpy(memory, next, part);
                        next += part;
                      });
}

}  // namespace doorbell::roce
