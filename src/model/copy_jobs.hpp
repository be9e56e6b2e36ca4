// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Copies that one lane of a block hands to the block's other warps.
#pragma once

#include <doorbell/warp.hpp>

#include "model/copy_job.hpp"
#include "model/copy_words.hpp"

namespace doorbell::model {

/// Lies in the block's shared memory, which starts as zeros. One lane calls ask() and finish(), the helpers
/// call help().
struct CopyJobs {
  static constexpr u32 kRoom = 64;  ///< jobs under way
  static constexpr u32 kMostHelpers = 15;
  static constexpr u64 kAlone = 16384;  ///< bytes of a job that one helper does

  CopyJob jobs[kRoom];
  u64 asked;  ///< jobs so far
  u64 over;   ///< 1: no more jobs come
  u64 done[kMostHelpers];

  /// The caller has seen that fewer than kRoom jobs are under way.
  DOORBELL_INLINE void ask(const CopyJob& job) {
    const u64 n = asked;
    jobs[n % kRoom] = job;
    store64_release_own(&asked, n + 1);  // behind the job
  }
  /// A job of each lane in `lanes`, kRoom at most; none is under way. All lanes call it together.
  template <class Warp>
  DOORBELL_INLINE void ask(const Warp& warp, u64 lanes, const CopyJob& job) {
    const u64 n = warp.shfl(asked, 0);
    if ((lanes >> warp.lane() & 1) != 0) jobs[(n + rank_in(warp, lanes)) % kRoom] = job;
    warp.sync();
    if (warp.lane() == 0) store64_release_own(&asked, n + count_bits(lanes));  // behind the jobs
  }
  /// Waits until `helpers` have done all jobs. What they copied is ordered before what the caller does later.
  DOORBELL_INLINE void finish(u32 helpers) const {
    const u64 all = asked;
    for (u32 i = 0; i < helpers; ++i)
      while (load64_acquire_own(&done[i]) != all) cpu_relax();
  }
  DOORBELL_INLINE void end() { store64_release_own(&over, 1); }

  /// One helper, of `helpers`, until end(). All lanes of its warp call it together.
  template <class Warp>
  DOORBELL_HD void help(const Warp& warp, u32 helper, u32 helpers) {
    for (u64 mine = 0;;) {
      // A relaxed look leaves the processor's cache as it is; only news are acquired.
      if (warp.shfl(load64_relaxed(&asked), 0) == mine) {
        if (warp.shfl(load64_relaxed(&over), 0) != 0) return;
        cpu_relax();
        continue;
      }
      const u64 until = warp.shfl(load64_acquire_own(&asked), 0);
      warp.sync();
      for (; mine < until; ++mine) {
        // A helper does a small job alone, so that several are under way; a large one is for all.
        const CopyJob& job = jobs[mine % kRoom];
        const bool whole = job.bytes <= kAlone;
        if (!whole)
          copy_words(job.to, job.from, job.bytes, helper * Warp::size + warp.lane(), helpers * Warp::size);
        else if (mine % helpers == helper) copy_words(job.to, job.from, job.bytes, warp.lane(), Warp::size);
      }
      warp.sync();
      if (warp.lane() == 0) store64_release_own(&done[helper], mine);  // behind the copies
    }
  }
};

}  // namespace doorbell::model
