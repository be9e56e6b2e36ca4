// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "model/copy_crew.hpp"

#include <doorbell/memory_order.hpp>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <thread>

#include "system/thread.hpp"

namespace doorbell::model {

namespace {
constexpr u32 kMostByChoice = 4;    // more copy hardly faster: memory is the limit
constexpr u32 kPollsAwake = 20000;  // some 100 us: the next copy of a busy run comes sooner
constexpr u32 kPollsPerYield = 256;
constexpr u64 kPage = 4096;

/// Waits a little, and longer where threads share a core.
void pause(u32 polls) {
  if (polls % kPollsPerYield == kPollsPerYield - 1) std::this_thread::yield();
  else cpu_relax();
}
}  // namespace

/// Copies, or parts of them, that one thread does. Written by the caller before it offers the share, then by
/// whoever claims it.
struct alignas(64) CopyCrew::Share {
  static constexpr u32 kParts = 8;
  struct Part {
    u8* to;
    const u8* from;
    u64 bytes;
  };
  u32 owner;  ///< 0: the caller
  u32 parts;
  u64 bytes;
  bool ends[kParts];  ///< the copy's last byte follows, which finish() stores
  u8 last[kParts];    ///< that byte
  std::atomic<bool> claimed = true;
  std::atomic<bool> done = true;
  alignas(64) Part part[kParts];

  /// Does it, unless somebody else does.
  void take() {
    // The acquire orders the store in offer() before the loads of what is to be done. A helper that is late
    // may find a newer share in the place of one that is done, and takes that.
    if (claimed.load(std::memory_order_relaxed) || claimed.exchange(true, std::memory_order_acquire)) return;
    copy();
  }
  void copy() {
    for (u32 i = 0; i < parts; ++i) {
      std::memcpy(part[i].to, part[i].from, part[i].bytes);
      if (ends[i]) last[i] = part[i].from[part[i].bytes];
    }
    // Orders the copied bytes before what finish() does.
    done.store(true, std::memory_order_release);
  }
};

/// A thread, and the shares that are its own.
struct CopyCrew::Helper {
  explicit Helper(CopyCrew& c)
      : crew(c), thread(make_thread<std::jthread>("model's copy thread", [this] { run(); })) {}

  /// By the caller.
  void post(Share& share) {
    ring[posted_here % kShares].store(&share, std::memory_order_relaxed);
    // Orders the entry before the load in run() that finds it.
    posted.store(++posted_here, std::memory_order_release);
  }
  void run();

  CopyCrew& crew;
  u64 posted_here = 0;                              // the caller's
  std::array<std::atomic<Share*>, kShares> ring{};  // entries of a helper that is late are overwritten
  alignas(64) std::atomic<u64> posted = 0;
  alignas(64) std::jthread thread;  // the last member: it uses the others
};

CopyCrew::CopyCrew(u32 threads) {
  if (threads < 2) return;
  shares_ = std::make_unique<Share[]>(kShares);
  open_.resize(threads);
  ends_.reserve(kShares * Share::kParts);
  try {
    for (u32 i = 1; i < threads; ++i) helpers_.push_back(std::make_unique<Helper>(*this));
  } catch (...) {
    over_.store(true, std::memory_order_relaxed);
    wake();
    throw;
  }
}

CopyCrew::~CopyCrew() {
  if (empty()) return;
  settle();
  over_.store(true, std::memory_order_relaxed);
  wake();
}

void CopyCrew::add(u8* to, const u8* from, u64 bytes) {
  bytes_ += bytes;
  // The last byte comes last: an initiator that polls on the data looks at that byte, and reads the others
  // after it.
  u64 left = bytes - 1;
  // A large copy gives each thread one part of whole pages, so that two seldom write to one.
  const u64 threads = open_.size();
  const u64 part = std::max(kShareBytes, (left / threads + kPage - 1) / kPage * kPage);
  u64 owner = reinterpret_cast<std::uintptr_t>(to) / kShareBytes % threads;
  for (; left > part; left -= part, to += part, from += part, owner = (owner + 1) % threads)
    add_part(static_cast<u32>(owner), to, from, part, false);
  add_part(static_cast<u32>(owner), to, from, left, true);
  if (called_ || asleep_.load(std::memory_order_relaxed) == 0) return;
  if (asleep() || bytes_ >= kWorthWaking) {
    called_ = true;
    wake();
  }
}

void CopyCrew::add_part(u32 owner, u8* to, const u8* from, u64 bytes, bool ends) {
  Share*& s = open_[owner];
  if (s == nullptr) {
    if (used_ == kShares) finish();
    s = &shares_[used_++];
    s->owner = owner;
    s->parts = 0;
    s->bytes = 0;
    s->done.store(false, std::memory_order_relaxed);
  }
  const u32 n = s->parts++;
  s->part[n] = {to, from, bytes};
  s->ends[n] = ends;
  s->bytes += bytes;
  if (ends) ends_.push_back({to + bytes, &s->last[n]});
  if (s->bytes < kShareBytes - Share::kParts && s->parts < Share::kParts) return;
  offer(*s);
  s = nullptr;
}

void CopyCrew::offer(Share& share) {
  share.claimed.store(false, std::memory_order_release);
  if (share.owner > 0) helpers_[share.owner - 1]->post(share);
}

/// Takes part until all is done.
void CopyCrew::finish() {
  // The caller keeps one of the shares that are not full, so that it hands nothing over when there is only
  // one.
  Share* mine = nullptr;
  for (Share*& s : open_) {
    if (mine == nullptr) mine = s;
    else if (s != nullptr) offer(*s);
    s = nullptr;
  }
  if (mine != nullptr) mine->copy();
  for (u32 n = 0; n < used_; ++n)
    if (shares_[n].owner == 0) shares_[n].take();
  // Helpers begin with the oldest.
  for (u32 n = used_; n-- > 0;) shares_[n].take();
  for (u32 n = 0; n < used_; ++n)
    // The acquire orders the copied bytes before their last byte, and before what announces them.
    for (u32 polls = 0; !shares_[n].done.load(std::memory_order_acquire); ++polls) pause(polls);
  // Orders the other bytes before the one on which an initiator polls.
  for (const LastByte& e : ends_) __atomic_store_n(e.to, *e.value, __ATOMIC_RELEASE);
  ends_.clear();
  used_ = 0;
}

void CopyCrew::Helper::run() {
  pthread_setname_np(pthread_self(), "model-copy");
  u64 next = 0;
  for (;;) {
    for (u32 polls = 0; polls < kPollsAwake;) {
      if (next != posted.load(std::memory_order_acquire)) {
        ring[next++ % kShares].load(std::memory_order_relaxed)->take();
        polls = 0;
      } else if (crew.over_.load(std::memory_order_relaxed)) {
        return;
      } else {
        pause(polls++);
      }
    }
    // Orders `over_`, which is set before the alarm, behind it. A caller that does not see this thread asleep
    // does all by itself, until it wakes its helpers for more.
    const u32 seen = crew.alarm_.load(std::memory_order_acquire);
    if (crew.over_.load(std::memory_order_relaxed)) return;
    crew.asleep_.fetch_add(1, std::memory_order_relaxed);
    crew.alarm_.wait(seen, std::memory_order_acquire);
    crew.asleep_.fetch_sub(1, std::memory_order_relaxed);
  }
}

void CopyCrew::wake() {
  alarm_.fetch_add(1, std::memory_order_release);
  alarm_.notify_all();
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
