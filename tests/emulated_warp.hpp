// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A warp whose lanes are fibers of one thread: the collective code that a GPU runs, on a CPU and under a race
// detector. Lanes meet in every collective call, and a lane that makes another call than the rest is
// reported, because on a GPU that would hang or read garbage. Between two calls only what both lanes order is
// ordered: ThreadSanitizer finds races between lanes although they take turns.
#pragma once

#include <doorbell/warp.hpp>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>

#include "fiber.hpp"

namespace doorbell {

template <u32 N>
class EmulatedWarp {
 public:
  static constexpr u32 size = N;

  /// The state that the lanes of one warp share.
  class Hub {
   public:
    /// Runs f(warp) on every lane, in turns.
    template <class F>
    void run(F& f) {
      std::array<Start<F>, N> starts;
      for (u32 lane = 0; lane < N; ++lane) {
        starts[lane] = {this, &f, lane};
        lanes_[lane].emplace(Start<F>::run, &starts[lane]);
      }
      for (Start<F>& s : starts) order_before(&s);
      caller_.switch_to(*lanes_[0]);
      order_after(&ended_);
    }

   private:
    friend class EmulatedWarp;
    struct Cell {
      u32 call = 0;
      u64 value = 0;
    };
    template <class F>
    struct Start {
      Hub* hub;
      F* f;
      u32 lane;
      static void run(void* start) {
        order_after(start);
        const Start s = *static_cast<Start*>(start);
        Hub& hub = *s.hub;
        {
          const EmulatedWarp warp(hub, s.lane);
          (*s.f)(warp);
          hub.cells_[warp.turn_][s.lane] = {kEnd, 0};  // who makes a call now does what no other lane does
        }
        const bool last = s.lane + 1 == N;
        Fiber& mine = *hub.lanes_[s.lane];
        Fiber& other = last ? hub.caller_ : *hub.lanes_[(s.lane + 1) % N];
        const bool all = ++hub.over_ == N;
        order_before(&hub.ended_);
        if (all || !last) mine.switch_to(other);
        // Back from others that go on.
        std::fprintf(stderr, "lane %u has ended where another lane makes a call\n", s.lane);
        std::abort();
      }
    };
    /// The others' turn, in the order of the lanes. Returns when all of them have come as far.
    void next(u32 lane) { lanes_[lane]->switch_to(*lanes_[(lane + 1) % N]); }

    // Two sets in turn: the lanes that come first write the next call's cells while others still read this
    // call's.
    std::array<std::array<Cell, N>, 2> cells_{};
    // Marks that order the lanes of a call: words, because ThreadSanitizer tells no bytes of one apart.
    std::array<u64, 2> met_{};
    u64 ended_ = 0;
    std::atomic<u32> over_{0};  ///< lanes that have ended
    Fiber caller_;
    std::array<std::optional<Fiber>, N> lanes_;
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
  static constexpr u32 kBallot = 1, kShuffle = 2, kSync = 3, kEnd = 4;

  const std::array<typename Hub::Cell, N>& meet(u32 call, u64 value) const {
    auto& cells = hub_->cells_[turn_];
    u64* const met = &hub_->met_[turn_];
    turn_ ^= 1;
    cells[lane_] = {call, value};
    order_before(met);
    hub_->next(lane_);  // back when every other lane has come as far
    order_after(met);
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

/// Runs f(warp) on every lane of a warp of N lanes.
template <u32 N, class F>
void run_warp(F f) {
  const auto hub = std::make_unique<typename EmulatedWarp<N>::Hub>();
  hub->run(f);
}

/// Calls f(warp) with one lane or with many.
template <u32 N, class F>
void collective(F f) {
  if constexpr (N == 1) {
    f(OneLane{});
  } else {
    run_warp<N>(f);
  }
}

}  // namespace doorbell
