// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/flow/threads.hpp"

#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>

#include <utility>

#include "system/clock.hpp"

namespace doorbell::net {

std::vector<int> allowed_cores() {
  cpu_set_t set;
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    for (int c = 0; c < CPU_SETSIZE; ++c)
      if (CPU_ISSET(c, &set)) cores.push_back(c);
  return cores;
}

namespace {

/// Whether the calling thread is still bound to that core: somebody may have given it others since.
bool only_on(int core) {
  const std::vector<int> cores = allowed_cores();
  return cores.size() == 1 && cores.front() == core;
}

}  // namespace

Threads::Threads(const std::string& role, u32 count, const std::vector<int>& cores,
                 std::function<void(u32 index, ThreadUse* use)> body)
    : uses_(count), failures_(count), running_(count) {
  const auto work = [this, role, cores, body](u32 i) {
    const int core = i < cores.size() ? cores[i] : -1;
    const std::string name = fmt::format("{}-{}", role, i);
    pthread_setname_np(pthread_self(), name.c_str());
    // None begins before all have been made.
    begun_.wait(Begun::no, std::memory_order_acquire);
    if (begun_.load(std::memory_order_acquire) == Begun::never) return;
    ThreadUse& use = uses_[i];
    use.role = role;
    use.index = i;
    if (core >= 0) {
      cpu_set_t set;
      CPU_ZERO(&set);
      CPU_SET(core, &set);
      // A core that has been taken away since is no reason to stop.
      if (pthread_setaffinity_np(pthread_self(), sizeof set, &set) == 0) use.core = core;
    }
    const u64 begin = wall_ns();
    const measure::CpuTime cpu_time;
    try {
      body(i, &use);
    } catch (...) {
      failures_[i] = std::current_exception();
      failed_.store(true, std::memory_order_release);
    }
    if (use.core >= 0 && !only_on(use.core)) use.core = -1;
    // A body may have said which part of its time counts.
    if (use.elapsed_s == 0) {
      use.cost = cpu_time.spent(name);
      use.elapsed_s = static_cast<double>(wall_ns() - begin) * 1e-9;
    }
    const std::scoped_lock lock(mutex_);
    if (running_.fetch_sub(1, std::memory_order_release) == 1) all_ended_.notify_all();
  };
  try {
    for (u32 i = 0; i < count; ++i) threads_.add(fmt::format("{}-{}", role, i), [work, i] { work(i); });
  } catch (...) {
    release(Begun::never);
    throw;
  }
  release(Begun::yes);
}

void Threads::release(Begun how) {
  begun_.store(how, std::memory_order_release);
  begun_.notify_all();
}

bool Threads::ended_within(std::chrono::nanoseconds limit) {
  std::unique_lock lock(mutex_);
  return all_ended_.wait_for(lock, limit, [this] { return ended(); });
}

void Threads::join() {
  threads_.join();
  for (std::exception_ptr& f : failures_)
    if (f) std::rethrow_exception(std::exchange(f, nullptr));
}

}  // namespace doorbell::net
