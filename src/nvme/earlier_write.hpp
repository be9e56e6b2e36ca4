// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A write phase that is over, as those need it who read its blocks later: which unit lies where.
#pragma once

#include <doorbell/pattern.hpp>

#include "loop/permutation.hpp"

namespace doorbell::nvme {

/// Bytes [begin, end).
struct ByteRange {
  u64 begin = 0;
  u64 end = 0;
  bool operator==(const ByteRange&) const = default;
};

/// The writes of one queue in one phase, none of which failed. Position p of `span` is the io_bytes at
/// origin + p * io_bytes. I/O i went to position p = i % span, or to order(i % span); each pass over the span
/// has a sequence of its own. Plain data, for host and GPU.
struct EarlierWrite {
  ByteRange bytes;  ///< of the namespace; what else the phase wrote is covered by later writes
  u64 origin = 0;
  u64 io_bytes = 512;
  u64 span = 1;
  u64 posted = 0;      ///< I/Os
  u64 order_seed = 0;  ///< of Permutation(span, order_seed), where `random`
  u64 seed = 0;        ///< of the units
  u64 sequence = 0;    ///< of the first pass; kAnySequence: a user says that something was written here
  u64 random = 0;      ///< 1: positions are visited in the order of the permutation
  bool operator==(const EarlierWrite&) const = default;

  static constexpr u64 kAnySequence = 0;

  /// Whether the phase came to the byte `address`, which lies in `bytes`; `*sequence_there` is the sequence
  /// of the unit that it left.
  [[nodiscard]] DOORBELL_INLINE bool covers(u64 address, u64* sequence_there) const {
    const u64 at = (address - origin) / io_bytes;
    const u64 index = random != 0 ? Permutation(span, order_seed).index_of(at) : at;
    *sequence_there = sequence;
    if (index >= posted) return false;
    if (posted > span) *sequence_there += (posted - 1 - index) / span;
    return true;
  }
  /// The byte behind the position that holds `address`.
  [[nodiscard]] DOORBELL_INLINE u64 position_end(u64 address) const {
    return address + io_bytes - (address - origin) % io_bytes;
  }
};

}  // namespace doorbell::nvme
