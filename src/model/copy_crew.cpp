// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "model/copy_crew.hpp"

#include <doorbell/memory_order.hpp>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <cstring>

namespace doorbell::model {

namespace {
constexpr u32 kMostByChoice = 4;    // more copy hardly faster: memory is the limit
constexpr u32 kPollsAwake = 20000;  // some 100 us: the next copy of a busy run comes sooner
constexpr u32 kPollsPerYield = 256;
constexpr u64 kPage = 4096;
}  // namespace

/// A mailbox for one piece of work. The caller writes the piece and counts `ordered` up; the helper counts
/// `done` up when the bytes are there.
struct alignas(64) CopyCrew::Helper {
  Helper() : thread([this] { run(); }) {}
  ~Helper() {
    order(nullptr, nullptr, 0);
    thread.join();
  }
  Helper(const Helper&) = delete;
  Helper& operator=(const Helper&) = delete;

  void run() {
    pthread_setname_np(pthread_self(), "model-copy");
    for (u32 seen = 0;;) {
      u32 now = ordered.load(std::memory_order_acquire);
      for (u32 polls = 0; now == seen && polls < kPollsAwake; ++polls) {
        cpu_relax();
        if (polls % kPollsPerYield == kPollsPerYield - 1) std::this_thread::yield();
        now = ordered.load(std::memory_order_acquire);
      }
      if (now == seen) {
        ordered.wait(seen, std::memory_order_acquire);
        continue;
      }
      seen = now;
      if (to == nullptr) return;
      std::memcpy(to, from, bytes);
      done.store(now, std::memory_order_release);
    }
  }
  void order(u8* piece_to, const u8* piece_from, u64 piece_bytes) {
    to = piece_to;
    from = piece_from;
    bytes = piece_bytes;
    ordered.fetch_add(1, std::memory_order_release);
    ordered.notify_one();
  }
  void wait() const {
    const u32 wanted = ordered.load(std::memory_order_relaxed);
    for (u32 polls = 1; done.load(std::memory_order_acquire) != wanted; ++polls) {
      cpu_relax();
      if (polls % kPollsPerYield == 0) std::this_thread::yield();
    }
  }

  u8* to = nullptr;
  const u8* from = nullptr;
  u64 bytes = 0;
  std::atomic<u32> ordered = 0;
  alignas(64) std::atomic<u32> done = 0;
  std::thread thread;  // the last member: it uses the others
};

CopyCrew::CopyCrew(u32 threads) {
  for (u32 i = 1; i < threads; ++i) helpers_.push_back(std::make_unique<Helper>());
}

CopyCrew::~CopyCrew() = default;

void CopyCrew::copy(u8* to, const u8* from, u64 bytes) {
  // Whole pages, so that two threads seldom write to one; the caller takes the rest.
  const u64 share = bytes / (helpers_.size() + 1) / kPage * kPage;
  u64 at = 0;
  if (share > 0)
    for (const auto& h : helpers_) {
      h->order(to + at, from + at, share);
      at += share;
    }
  std::memcpy(to + at, from + at, bytes - at);
  if (share > 0)
    for (const auto& h : helpers_) h->wait();
}

u32 copy_threads(u32 busy, u32 device_threads) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  const u32 cores =
      sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? static_cast<u32>(CPU_COUNT(&allowed)) : 1;
  const u32 left = cores > busy ? cores - busy : 0;
  return std::min(kMostByChoice, 1 + left / std::max(device_threads, 1u));
}

}  // namespace doorbell::model
