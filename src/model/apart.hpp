// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Which copies of a warp's lanes can be done together: those that do not touch each other's bytes.
#pragma once

#include <doorbell/warp.hpp>

#include "model/copy_job.hpp"

namespace doorbell::model {

/// True if no copy touches what another one moves, as far as a quick look can tell: each goes behind the one
/// before, and all sources lie on one side of all destinations.
template <class Warp>
[[nodiscard]] DOORBELL_HD bool in_order(const Warp& warp, u64 to, u64 from, u64 bytes, u32 n) {
  const bool counts = warp.lane() < n && bytes > 0;
  const u64 next = warp.shfl(to, warp.lane() + 1 < Warp::size ? warp.lane() + 1 : warp.lane());
  if (warp.ballot(counts && warp.lane() + 1 < n && to + bytes > next) != 0) return false;
  // Ascending: the first and the last destination are the ends of all.
  const u64 to_begin = warp.shfl(to, 0), to_end = warp.shfl(to + bytes, n > 0 ? n - 1 : 0);
  const bool before = warp.ballot(counts && from + bytes > to_begin) == 0;
  return before || warp.ballot(counts && from < to_end) == 0;
}

/// A copy of each of the first `n` lanes; the number of them before the first that touches what an earlier
/// one moves. All lanes call it together.
template <class Warp>
[[nodiscard]] DOORBELL_HD u32 apart(const Warp& warp, u8* mine_to, const u8* mine_from, u32 mine_bytes,
                                    u32 n) {
  const u64 to = reinterpret_cast<u64>(mine_to), from = reinterpret_cast<u64>(mine_from);
  if (in_order(warp, to, from, mine_bytes, n)) return n;
  bool met = false;
  DOORBELL_NO_UNROLL
  for (u32 k = 0; k + 1 < n; ++k) {
    const u64 other_to = warp.shfl(to, k), other_from = warp.shfl(from, k);
    const u64 bytes = warp.shfl(mine_bytes, k);
    if (warp.lane() > k)
      met = met || meet({mine_to, mine_from, mine_bytes},
                        {reinterpret_cast<u8*>(other_to), reinterpret_cast<const u8*>(other_from), bytes});
  }
  const u32 free = leading_run(~warp.ballot(met));
  return free < n ? free : n;
}

}  // namespace doorbell::model
