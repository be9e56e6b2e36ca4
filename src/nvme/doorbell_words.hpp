// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Doorbells that an initiator stores to words in memory, for controllers to which each goes as a message:
// which words have changed, and which queues there are. Like the model it sees only the last value of a
// doorbell.
#pragma once

#include <doorbell/address_space.hpp>
#include <doorbell/memory_order.hpp>
#include <doorbell/nvme/wire.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <mutex>
#include <thread>

#include "system/clock.hpp"

namespace doorbell::nvme {

/// Thread rule: carry() of one word by one thread at a time; start_over() while nobody carries. `send(offset,
/// value)` posts the message of a doorbell; `look(iova, bytes)` is where such memory lies in this process, or
/// null.
class DoorbellWords {
 public:
  static constexpr u32 kPairs = 65;  ///< the admin queue and 64 more

  /// The words are at their offsets in `bar`, of which `bytes` are there, with the controller's stride.
  void place(u8* bar, u64 bytes, u32 stride) {
    bar_ = bar;
    bytes_ = bytes;
    stride_ = stride;
  }
  /// A register has been written in one piece of that size: the admin queue's size and place are kept.
  void wrote32(u32 offset, u32 value) {
    if (offset != reg::aqa) return;
    const std::scoped_lock lock(admin_mutex_);
    admin_entries_ = (value & 0xfff) + 1;
  }
  void wrote64(u32 offset, u64 value) {
    if (offset != reg::asq) return;
    const std::scoped_lock lock(admin_mutex_);
    asq_ = value;
  }

  /// A reset takes all doorbells back to 0. Nobody must carry on with a value from before.
  void start_over() {
    const std::scoped_lock lock(admin_mutex_);
    for (u32 i = 0; i < forwarded_.size(); ++i) clear(i);
    admin_seen_ = 0;
    pairs_.store(1, std::memory_order_relaxed);
  }

  template <class Look, class Send>
  bool carry(u32 index, const Look& look, const Send& send) {
    if (!is_there(index)) return false;
    // The acquire orders what the initiator wrote before it rang ahead of the message, which the kernel hands
    // to the other process after it.
    const u32 value = load_acquire(word(index));
    if (value == forwarded_[index].load(std::memory_order_relaxed)) return false;
    if (index == 0) see_created_queues(value, look);
    forwarded_[index].store(value, std::memory_order_relaxed);
    send(offset(index), value);
    return true;
  }
  template <class Look, class Send>
  bool carry_pair(u32 qid, const Look& look, const Send& send) {
    const bool sq = carry(2 * qid, look, send);
    return carry(2 * qid + 1, look, send) || sq;
  }
  template <class Look, class Send>
  bool carry_all(const Look& look, const Send& send) {
    bool rung = false;
    for (u32 q = 0; q < pairs_.load(std::memory_order_acquire); ++q) rung = carry_pair(q, look, send) || rung;
    // Ringing a queue that was never created is an error that a controller reports: those are looked at as
    // well, but not in the way of the others.
    if (!rung)
      for (u32 q = 0; q < kPairs; ++q) rung = carry_pair(q, look, send) || rung;
    return rung;
  }

 private:
  [[nodiscard]] u64 offset(u32 index) const { return reg::doorbells + u64{index} * (4u << stride_); }
  [[nodiscard]] bool is_there(u32 index) const { return offset(index) + 4 <= bytes_; }
  [[nodiscard]] u32* word(u32 index) const { return reinterpret_cast<u32*>(bar_ + offset(index)); }
  void clear(u32 index) {
    forwarded_[index].store(0, std::memory_order_relaxed);
    if (is_there(index)) store_relaxed(word(index), 0);
  }

  /// The doorbells of a queue that is being created start at 0, whatever an earlier queue of its number left
  /// there: a first ring of the same value has to be told from no ring.
  template <class Look>
  void see_created_queues(u32 tail, const Look& look) {
    const std::scoped_lock lock(admin_mutex_);
    if (admin_entries_ == 0 || tail >= admin_entries_) return;
    const u8* const ring = look(asq_, u64{admin_entries_} * kSqeBytes);
    if (ring == nullptr) return;
    for (; admin_seen_ != tail; admin_seen_ = (admin_seen_ + 1) % admin_entries_) {
      Sqe e;
      std::memcpy(static_cast<void*>(&e), ring + u64{admin_seen_} * kSqeBytes, sizeof e);
      const bool sq = e.opcode == static_cast<u8>(AdminOpcode::create_sq);
      if (!sq && e.opcode != static_cast<u8>(AdminOpcode::create_cq)) continue;
      const u32 qid = e.cdw10 & 0xffff;
      if (qid == 0 || qid >= kPairs) continue;
      clear(2 * qid + (sq ? 0 : 1));
      pairs_.store(std::max(pairs_.load(std::memory_order_relaxed), qid + 1), std::memory_order_release);
    }
  }

  u8* bar_ = nullptr;
  u64 bytes_ = 0;
  u32 stride_ = 0;
  std::array<std::atomic<u32>, 2 * kPairs> forwarded_{};  // each doorbell's last value that was sent
  std::atomic<u32> pairs_{1};  // queue pairs that may have been created, the admin queue counted
  std::mutex admin_mutex_;
  u32 admin_seen_ = 0;  // admin SQ entries looked at
  u32 admin_entries_ = 0;
  Iova asq_ = 0;
};

/// How a thread that carries doorbells waits for the next: for some time it looks again and again, and lets
/// others run in between, because whoever rings next may wait for its processor. After that it naps.
class CarrierPace {
 public:
  void rang() { last_ns_ = wall_ns(); }
  void wait() const {
    if (wall_ns() - last_ns_ > kSpinNs) std::this_thread::sleep_for(kNap);
    else std::this_thread::yield();
  }

 private:
  static constexpr u64 kSpinNs = 2'000'000;  // without a doorbell for this long it naps
  static constexpr std::chrono::microseconds kNap{50};
  u64 last_ns_ = wall_ns();
};

}  // namespace doorbell::nvme
