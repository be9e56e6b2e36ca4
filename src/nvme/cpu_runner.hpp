// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// CPU threads that drive queues of one kind: an NVMe queue pair, or what looks like one.
#pragma once

#include <doorbell/nvme/io_loop.hpp>
#include <fmt/format.h>
#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <optional>
#include <thread>
#include <vector>

#include "measure/clock.hpp"
#include "nvme/device.hpp"
#include "nvme/runner.hpp"

namespace doorbell::nvme {

namespace cpu {

inline constexpr u32 kIdlePollsPerYield = 512;
inline constexpr u32 kRoundsPerReport = 1024;

inline double seconds(const timeval& t) {
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
}

/// One queue's state between phases, on cache lines of its own.
template <class Queue>
struct alignas(128) Lane {
  typename Queue::State state;
  std::vector<u64> memory;
  IoScratch scratch;
  IoStats stats;
  std::atomic<u64> done{0};
};

/// `forwarder` carries what the loops ring; null where doorbells are registers.
template <class Queue, bool Substeps>
void drive(const IoPhase& phase, std::span<const IoQueue> queues, std::span<Lane<Queue>> lanes, u32 first,
           u32 step, DoorbellForwarder* forwarder) {
  const OneLane lane;
  using Loop = IoLoop<OneLane, HostClock, Substeps, Queue>;
  struct Item {
    Loop loop;
    Lane<Queue>* of;
    u16 qid;
  };
  std::vector<Item> running;
  running.reserve(lanes.size());
  for (u32 q = first; q < lanes.size(); q += step)
    running.push_back({Loop(lane, phase, queues[q], lanes[q].state, lanes[q].scratch, &lanes[q].stats),
                       &lanes[q], queues[q].memory.qid});
  for (u32 round = 1; !running.empty(); ++round) {
    bool busy = false;
    for (std::size_t i = 0; i < running.size();) {
      Item& item = running[i];
      const bool more = item.loop.step(lane);
      if (forwarder != nullptr) forwarder->forward(item.qid);
      if (more) {
        busy = busy || item.loop.idle() < kIdlePollsPerYield;
        ++i;
        continue;
      }
      item.loop.finish(lane);
      if (forwarder != nullptr) forwarder->forward(item.qid);
      item.of->state = item.loop.state();
      item.of->done.store(item.loop.completed(), std::memory_order_relaxed);
      std::swap(item, running.back());
      running.pop_back();
    }
    if (round % kRoundsPerReport == 0)
      for (Item& item : running) item.of->done.store(item.loop.completed(), std::memory_order_relaxed);
    // Where device and initiator share a core, the device cannot answer while this thread spins.
    if (!busy && round % kIdlePollsPerYield == 0) std::this_thread::yield();
  }
}

}  // namespace cpu

/// Thread t drives queues t, t + threads, ...
template <class Queue>
class CpuRunner final : public Runner {
 public:
  /// `states`: of each queue before its first phase.
  CpuRunner(u32 threads, u32 window, std::span<const typename Queue::State> states,
            DoorbellForwarder* forwarder = nullptr)
      : threads_(threads), lanes_(states.size()), forwarder_(forwarder) {
    for (std::size_t q = 0; q < lanes_.size(); ++q) lanes_[q].state = states[q];
    for (Lane& l : lanes_) {
      l.memory.resize(IoScratch::bytes(window, histogram::kBuckets) / 8 + 1);
      l.scratch = carve_scratch(l.memory.data(), window, histogram::kBuckets);
    }
  }

  PhaseOutcome run(IoPhase phase, std::span<const IoQueue> queues, bool substeps,
                   const Watch& watch) override {
    u32 stop = 0;
    phase.stop = &stop;
    phase.ns_per_tick_q24 = HostClock::ns_per_tick_q24();
    for (Lane& l : lanes_) {
      l.stats = IoStats{};
      l.done = 0;
      std::fill_n(l.scratch.bins, histogram::kBuckets, 0);
    }
    if (forwarder_ != nullptr) forwarder_->by_initiator(true);
    PhaseOutcome out;
    out.threads.resize(threads_);
    std::barrier start(threads_);
    std::atomic<u32> left{threads_};
    std::vector<std::thread> threads;
    for (u32 t = 0; t < threads_; ++t)
      threads.emplace_back([&, t] {
        pthread_setname_np(pthread_self(), fmt::format("initiator-{}", t).c_str());
        start.arrive_and_wait();
        rusage before{}, after{};
        getrusage(RUSAGE_THREAD, &before);
        if (substeps) cpu::drive<Queue, true>(phase, queues, lanes_, t, threads_, forwarder_);
        else cpu::drive<Queue, false>(phase, queues, lanes_, t, threads_, forwarder_);
        getrusage(RUSAGE_THREAD, &after);
        out.threads[t] = {fmt::format("initiator-{}", t),
                          cpu::seconds(after.ru_utime) - cpu::seconds(before.ru_utime),
                          cpu::seconds(after.ru_stime) - cpu::seconds(before.ru_stime)};
        left.fetch_sub(1, std::memory_order_release);
      });
    for (u32 naps = 0; left.load(std::memory_order_acquire) > 0; ++naps) {
      // Short phases end within the first naps; long ones are looked at 50 times a second.
      std::this_thread::sleep_for(naps < 20 ? std::chrono::microseconds(500)
                                            : std::chrono::microseconds(20'000));
      u64 done = 0;
      for (const Lane& l : lanes_) done += l.done.load(std::memory_order_relaxed);
      if (watch && watch(done)) store_relaxed(&stop, 1);
    }
    for (std::thread& t : threads) t.join();
    if (forwarder_ != nullptr) forwarder_->by_initiator(false);
    collect(out);
    return out;
  }

  u64 ticks(double s) const override { return HostClock::ticks(s); }
  double ns_per_tick() const override {
    return static_cast<double>(HostClock::ns_per_tick_q24()) / (1 << 24);
  }

 private:
  using Lane = cpu::Lane<Queue>;

  void collect(PhaseOutcome& out) {
    u64 begin = ~u64{0}, end = 0;
    for (const Lane& l : lanes_) {
      out.queues.push_back(l.stats);
      out.latency.merge({l.scratch.bins, histogram::kBuckets}, l.stats.min_ns, l.stats.max_ns, l.stats.sum_ns,
                        l.stats.sum_sq_ns);
      if (l.stats.posted == 0) continue;
      begin = std::min(begin, l.stats.begin_ns);
      end = std::max(end, l.stats.end_ns);
    }
    if (end > begin) out.elapsed_s = static_cast<double>(end - begin) * 1e-9;
  }

  u32 threads_;
  std::vector<Lane> lanes_;
  DoorbellForwarder* forwarder_;
};

}  // namespace doorbell::nvme
