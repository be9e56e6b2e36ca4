// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A warp whose lanes are threads: the collective code that a GPU runs, on a CPU and under a race
// detector. Lanes meet at a barrier in every collective call, and a lane that makes another call than
// the rest is reported, because on a GPU that would hang or read garbage.
#pragma once

#include <doorbell/warp.hpp>

#include <array>
#include <barrier>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

namespace doorbell {

template <u32 N>
class EmulatedWarp {
 public:
  static constexpr u32 size = N;

  /// What the lanes of one warp share.
  class Hub {
   public:
    Hub() : barrier_(N) {}

   private:
    friend class EmulatedWarp;
    struct Cell {
      u32 call = 0;
      u64 value = 0;
    };
    std::barrier<> barrier_;
    // Two sets in turn: a lane may write the next call's cell while a slower one still reads this call's.
    std::array<std::array<Cell, N>, 2> cells_{};
  };

  EmulatedWarp(Hub& hub, u32 lane) : hub_(&hub), lane_(lane) {}

  [[nodiscard]] u32 lane() const { return lane_; }
  [[nodiscard]] u64 ballot(bool p) const {
    const auto& cells = meet(kBallot, p ? 1 : 0);
    u64 mask = 0;
    for (u32 i = 0; i < N; ++i) mask |= cells[i].value << i;
    return mask;
  }
  template <class T>
  [[nodiscard]] T shfl(T v, u32 from) const {
    static_assert(sizeof(T) <= 8);
    u64 raw = 0;
    std::memcpy(&raw, &v, sizeof v);
    raw = meet(kShuffle, raw)[from % N].value;
    T out;
    std::memcpy(&out, &raw, sizeof out);
    return out;
  }
  void sync() const { (void)meet(kSync, 0); }

 private:
  static constexpr u32 kBallot = 1, kShuffle = 2, kSync = 3;

  const std::array<typename Hub::Cell, N>& meet(u32 call, u64 value) const {
    auto& cells = hub_->cells_[turn_];
    turn_ ^= 1;
    cells[lane_] = {call, value};
    hub_->barrier_.arrive_and_wait();
    for (const auto& c : cells)
      if (c.call != call) {
        std::fprintf(stderr, "lane %u makes call %u where another lane makes call %u\n", lane_, call, c.call);
        std::abort();
      }
    return cells;
  }

  Hub* hub_;
  u32 lane_;
  mutable u32 turn_ = 0;
};

/// Runs f(warp) on every lane of a warp of N threads.
template <u32 N, class F>
void run_warp(F f) {
  typename EmulatedWarp<N>::Hub hub;
  std::vector<std::thread> lanes;
  for (u32 lane = 0; lane < N; ++lane)
    lanes.emplace_back([&, lane] {
      const EmulatedWarp<N> warp(hub, lane);
      f(warp);
    });
  for (std::thread& t : lanes) t.join();
}

/// Calls f(warp) with one lane or with many threads.
template <u32 N, class F>
void collective(F f) {
  if constexpr (N == 1) {
    f(OneLane{});
  } else {
    run_warp<N>(f);
  }
}

}  // namespace doorbell
