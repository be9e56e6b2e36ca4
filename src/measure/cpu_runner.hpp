// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// CPU threads that drive the queues of a path (what a Work is: runner.hpp).
#pragma once

#include <doorbell/memory_order.hpp>
#include <doorbell/warp.hpp>
#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "loop/histogram.hpp"
#include "measure/check_memory.hpp"
#include "measure/runner.hpp"
#include "system/clock.hpp"
#include "system/file_table.hpp"
#include "system/polling.hpp"
#include "system/thread.hpp"

namespace doorbell::measure {

namespace cpu {

inline constexpr u32 kRoundsPerReport = 1024;
inline constexpr std::chrono::microseconds kLongestPause{100'000};  ///< between looks at a phase that goes on
inline constexpr double kAwayS = 10e-3;  ///< a thread that looks at its deadlines so rarely did not run

/// A copy of a loop's counters, which its own thread makes when it is asked: no other thread reads what the
/// thread writes while it works.
struct Snapshot {
  static constexpr u32 kOver = ~u32{0};
  std::atomic<u32> wanted{0};  ///< the number of the last question; the observer's
  std::atomic<u32> given{
      0};               ///< of the last answer; the thread's. kOver: the queue's stats and bins are whole
  OpCounters counters;  ///< the thread's while `given` is not `wanted`, else the observer's
  std::vector<u64> bins = std::vector<u64>(histogram::kBuckets);

  template <class Loop>
  void answer(const Loop& loop, const u64* latency_bins) {
    const u32 question = wanted.load(std::memory_order_acquire);
    if (question == given.load(std::memory_order_relaxed)) return;
    counters = loop.counters();
    std::copy_n(latency_bins, histogram::kBuckets, bins.begin());
    given.store(question, std::memory_order_release);
  }
};

/// One queue's state between phases. Aligned so that two threads share no cache line.
template <Work W>
struct alignas(128) Lane {
  typename W::State state;
  std::vector<u64> memory;
  typename W::Scratch scratch;
  OpStats stats;
  std::atomic<u64> done{0};
  Snapshot snapshot;
  CheckMemory checks;
};

/// `all_made`: returns when the other threads' data is made too, before any queue's time begins.
template <Work W, bool Substeps, class Hook, class AllMade>
void drive(const typename W::Phase& phase, std::span<const typename W::Item> items, std::span<Lane<W>> lanes,
           u32 first, u32 step, Hook& hook, AllMade all_made) {
  const OneLane lane;
  using Loop = typename W::template Loop<Substeps>;
  struct Running {
    Loop loop;
    Lane<W>* of;
    const typename W::Item* item;
  };
  std::vector<Running> running;
  running.reserve(lanes.size());
  for (u32 q = first; q < lanes.size(); q += step)
    running.push_back({Loop(lane, phase, items[q], lanes[q].state, lanes[q].scratch, &lanes[q].stats),
                       &lanes[q], &items[q]});
  // Checkers that never answer are the loops' to report.
  const u64 begin = HostClock::now();
  const auto made = [&](Running& r) { return r.loop.made(lane); };
  while (!std::ranges::all_of(running, made) && HostClock::now() - begin < phase.timeout_ticks)
    std::this_thread::yield();
  all_made();
  for (Running& r : running) r.loop.start_clock(lane);
  const u32 per_yield = polls_per_yield(kInitiatorPollsPerYield);
  for (u32 round = 1; !running.empty(); ++round) {
    bool busy = false;
    for (std::size_t i = 0; i < running.size();) {
      Running& r = running[i];
      const bool more = r.loop.step(lane);
      hook.after_step(*r.item);
      if (more) {
        busy = busy || r.loop.idle() < per_yield;
        ++i;
        continue;
      }
      r.loop.finish(lane);
      hook.after_step(*r.item);
      r.of->state = r.loop.state();
      r.of->done.store(r.loop.completed(), std::memory_order_relaxed);
      r.of->snapshot.given.store(Snapshot::kOver, std::memory_order_release);
      std::swap(r, running.back());
      running.pop_back();
    }
    if (round % kRoundsPerReport == 0)
      for (Running& r : running) {
        r.of->done.store(r.loop.completed(), std::memory_order_relaxed);
        r.of->snapshot.answer(r.loop, r.of->scratch.bins);
      }
    // Where device and initiator share a core, the device cannot answer while this thread spins.
    if (!busy && round % per_yield == 0) std::this_thread::yield();
  }
}

/// Checker thread `number`: takes part in the checks of every item until all loops have ended. Returns for
/// how long it had something to do, in ticks. Depends on what the payloads are, not on the queues that carry
/// them.
template <class Payload, class Phase, class Item>
u64 check(const Phase& phase, const std::vector<Item>& items, u32 number) {
  using Checking = Checker<OneLane, Payload>;
  const OneLane lane;
  std::vector<Checking> running;
  for (const Item& item : items) running.emplace_back(item.checks, Payload(phase, item), number);
  u64 useful = 0;
  const u32 per_yield = polls_per_yield(kInitiatorPollsPerYield);
  for (u32 idle = 0; !running.empty();) {
    const u64 begin = HostClock::now();
    bool busy = false;
    for (std::size_t i = 0; i < running.size();) {
      Checking& c = running[i];
      const bool begun = c.begun();
      if (begun && c.step(lane)) {
        busy = true;
      } else if (begun && c.over(lane)) {
        std::swap(c, running.back());
        running.pop_back();
        continue;
      }
      ++i;
    }
    if (busy) {
      useful += HostClock::now() - begin;
      idle = 0;
    } else if (++idle % per_yield == 0) {
      std::this_thread::yield();
    } else {
      cpu_relax();
    }
  }
  return useful;
}

}  // namespace cpu

/// The threads' work besides stepping their loops: none. A path whose device needs more (doorbells that are
/// messages) gives a class with the same functions. begin() and end() surround a phase; after_step() comes
/// after each step of an item's loop, on the thread that drives it.
struct NoHook {
  void begin() {}
  template <class Item>
  void after_step(const Item&) {}
  void end() {}
};

/// Thread t drives items t, t + threads, ...
template <Work W, class Hook = NoHook>
class CpuRunner final : public Runner<typename W::Phase, typename W::Item> {
 public:
  /// `states`: of each queue before its first phase. `checkers`: threads that make and check payloads, if W's
  /// operations have some; 0: those that drive the queues do it.
  CpuRunner(u32 threads, u32 checkers, u32 window, std::span<const typename W::State> states, Hook hook = {})
      : threads_(threads), checkers_(CheckedWork<W> ? checkers : 0), lanes_(states.size()), hook_(hook) {
    for (std::size_t q = 0; q < lanes_.size(); ++q) lanes_[q].state = states[q];
    for (Lane& l : lanes_) {
      if constexpr (CheckedWork<W>) l.checks = CheckMemory(window, checkers_);
      l.memory.resize(W::scratch_bytes(window) / 8 + 1);
      l.scratch = W::carve(l.memory.data(), window);
    }
  }

  PhaseOutcome run(typename W::Phase phase, std::span<const typename W::Item> queues, bool substeps,
                   const Watch& watch) override {
    u32 stop = 0;
    std::vector<typename W::Item> items(queues.begin(), queues.end());
    const bool checked = phase.verify && !phase.drain;
    phase.stop = &stop;
    phase.ns_per_tick_q24 = HostClock::ns_per_tick_q24();
    phase.away_ticks = HostClock::ticks(cpu::kAwayS);
    for (Lane& l : lanes_) {
      l.stats = OpStats{};
      l.done = 0;
      l.snapshot.wanted = l.snapshot.given = 0;
      std::fill_n(l.scratch.bins, histogram::kBuckets, 0);
    }
    hook_.begin();
    PhaseOutcome out;
    const u32 checkers = checked ? checkers_ : 0;
    out.threads.resize(threads_ + checkers);
    // This thread comes last: none begins before all have been made.
    std::barrier start(threads_ + checkers + 1);
    std::barrier all_made(threads_);
    std::atomic<bool> given_up{false};
    u32 left = threads_;  // under `mutex`
    std::mutex mutex;
    std::condition_variable ended;
    JoinedThreads threads;
    u32 made = 0;
    const auto add = [&](const char* role, u32 number, auto work) {
      const std::string name = fmt::format("{}-{}", role, number);
      threads.add(name, [&start, &given_up, name, work] {
        pthread_setname_np(pthread_self(), name.c_str());
        own_file_table();
        start.arrive_and_wait();
        if (!given_up) work(name);
      });
      ++made;
    };
    if constexpr (CheckedWork<W>)
      if (checked)
        for (std::size_t q = 0; q < items.size(); ++q)
          items[q].checks = lanes_[q].checks.next_phase(W::payload_bytes(phase));
    try {
      for (u32 c = 0; c < checkers; ++c)
        add("checker", c, [&, c](const std::string& name) { this->check(phase, items, c, name, out); });
      for (u32 t = 0; t < threads_; ++t)
        add("initiator", t, [&, t](const std::string& name) {
          std::optional<CpuTime> cpu_time;
          const auto await_others = [&] {
            all_made.arrive_and_wait();
            cpu_time.emplace();
          };
          if (substeps) cpu::drive<W, true>(phase, items, lanes_, t, threads_, hook_, await_others);
          else cpu::drive<W, false>(phase, items, lanes_, t, threads_, hook_, await_others);
          out.threads[t] = cpu_time->spent(name);
          const std::scoped_lock lock(mutex);
          if (--left == 0) ended.notify_one();
        });
    } catch (...) {
      given_up = true;
      for (; made <= threads_ + checkers; ++made) start.arrive_and_drop();
      hook_.end();
      throw;
    }
    (void)start.arrive();
    // This thread may share a processor with an initiator: the longer a phase lasts, the less often it looks,
    // down to ten times a second. It also looks when the phase is over.
    bool over = false;
    for (auto pause = std::chrono::microseconds(500); !over;
         pause = std::min(2 * pause, cpu::kLongestPause)) {
      {
        std::unique_lock lock(mutex);
        over = ended.wait_for(lock, pause, [&] { return left == 0; });
      }
      u64 done = 0;
      for (const Lane& l : lanes_) done += l.done.load(std::memory_order_relaxed);
      try {
        if (const Asked asked = watch ? watch(done) : Asked::nothing; asked != Asked::nothing)
          store_relaxed(&stop, static_cast<u32>(asked));
      } catch (...) {
        store_relaxed(&stop, static_cast<u32>(Asked::stop));
        threads.join();
        hook_.end();
        throw;
      }
    }
    threads.join();
    hook_.end();
    for (const Lane& l : lanes_) out.add(l.stats, {l.scratch.bins, histogram::kBuckets});
    return out;
  }

  bool look(OpCounters* counters, Histogram* latency) override {
    const auto answered = [](const Lane& l) {
      const u32 given = l.snapshot.given.load(std::memory_order_acquire);
      return given == cpu::Snapshot::kOver ||
             (given != 0 && given == l.snapshot.wanted.load(std::memory_order_relaxed));
    };
    const bool all = std::ranges::all_of(lanes_, answered);
    for (Lane& l : lanes_) {
      if (all) {
        const bool over = l.snapshot.given.load(std::memory_order_relaxed) == cpu::Snapshot::kOver;
        const OpCounters& c = over ? l.stats : l.snapshot.counters;
        add_sums(*counters, c);
        latency->merge(over ? std::span<const u64>(l.scratch.bins, histogram::kBuckets) : l.snapshot.bins,
                       c.min_ns, c.max_ns, c.sum_ns, c.sum_sq_ns);
      }
      const u32 asked = l.snapshot.wanted.load(std::memory_order_relaxed);
      if (asked == 0 || answered(l)) l.snapshot.wanted.store(asked + 1, std::memory_order_release);
    }
    return all;
  }

  u64 ticks(double s) const override { return HostClock::ticks(s); }
  double ns_per_tick() const override {
    return static_cast<double>(HostClock::ns_per_tick_q24()) / (1 << 24);
  }

 private:
  using Lane = cpu::Lane<W>;

  void check(const typename W::Phase& phase, const std::vector<typename W::Item>& items, u32 number,
             const std::string& name, PhaseOutcome& out) const {
    if constexpr (CheckedWork<W>) {
      const CpuTime cpu_time;
      const u64 useful = cpu::check<typename W::Payload>(phase, items, number);
      ThreadCost& cost = out.threads[threads_ + number];
      cost = cpu_time.spent(name);
      cost.checked_s = static_cast<double>(useful) * ns_per_tick() * 1e-9;
    }
  }

  u32 threads_;
  u32 checkers_;
  std::vector<Lane> lanes_;
  Hook hook_;
};

}  // namespace doorbell::measure
