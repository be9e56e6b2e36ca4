// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Which packets of a flow have arrived: a bit each, for the newest `span` of them. A packet that leaves the
// map without having arrived is lost. Host code only; one thread at a time; note() does not allocate.
#pragma once

#include <doorbell/net/packet.hpp>

#include <algorithm>
#include <vector>

namespace doorbell::net {

enum class Arrival {
  first,
  duplicate,
  misplaced,  ///< no packet of this flow can have this sequence: before its start, or out of reach
};

class ArrivalMap {
 public:
  /// A packet so far ahead of the newest one is none of this flow, unless another follows it: then so much
  /// has been lost.
  static constexpr u64 kReach = u64{1} << 30;
  static constexpr u64 kDefaultSpan = u64{1} << 24;

  /// `start`: the flow's first sequence. `span`: a power of two, at least 64.
  explicit ArrivalMap(u64 start = 0, u64 span = kDefaultSpan)
      : start_(start), base_(start & ~u64{63}), next_(start), words_(span / 64), mask_(span / 64 - 1) {
    // Sequences before the start count as arrived.
    if (start_ != base_) word(base_) = (u64{1} << (start_ - base_)) - 1;
  }

  struct Noted {
    Arrival arrival;
    bool in_order;  ///< newer than all before it
    u64 number;     ///< the packet's number, from `start` on and without wrap
  };
  /// Notes a packet by the 48 bits of sequence in its header.
  Noted note(u64 sequence48) {
    const i64 ahead = ahead_of_next(sequence48);
    if (ahead >= static_cast<i64>(kReach) && !follows(next_ + static_cast<u64>(ahead)))
      return {Arrival::misplaced, false, 0};
    if (ahead < 0 && static_cast<u64>(-ahead) > next_ - start_) return {Arrival::misplaced, false, 0};
    const u64 n = next_ + static_cast<u64>(ahead);
    if (n < base_) return {Arrival::misplaced, false, n};
    while (n >= base_ + span()) slide();
    u64& w = word(n);
    const u64 bit = u64{1} << (n & 63);
    if ((w & bit) != 0) return {Arrival::duplicate, false, n};
    w |= bit;
    ++unique_;
    if (ahead < 0) return {Arrival::first, false, n};
    next_ = n + 1;
    return {Arrival::first, true, n};
  }
  /// Notes `count` packets whose sequences follow each other, if all are newer than those before: returns the
  /// first one's number. Else notes none and returns kNotNewer.
  static constexpr u64 kNotNewer = ~u64{0};
  u64 note_newer(u64 sequence48, u32 count) {
    const i64 ahead = ahead_of_next(sequence48);
    if (ahead < 0 || ahead + i64{count} > static_cast<i64>(kReach) || count + u64{64} > span())
      return kNotNewer;
    const u64 first = next_ + static_cast<u64>(ahead);
    next_ = first + count;
    while (next_ > base_ + span()) slide();
    for (u64 n = first; n < next_;) {
      const u64 bits = std::min(64 - (n & 63), next_ - n);
      word(n) |= ~u64{0} >> (64 - bits) << (n & 63);
      n += bits;
    }
    unique_ += count;
    return first;
  }

  [[nodiscard]] u64 start() const { return start_; }
  [[nodiscard]] u64 unique() const { return unique_; }
  /// One above the newest packet's number.
  [[nodiscard]] u64 next() const { return next_; }
  /// Packets before `end` that have not arrived; `end` is the number behind the last packet sent.
  [[nodiscard]] u64 lost(u64 end) const {
    u64 lost = slid_lost_ + lost_in_map(end);
    if (end > base_ + span()) lost += end - (base_ + span());
    return lost;
  }
  /// Packets that have arrived although no more than `end` were sent.
  [[nodiscard]] u64 beyond(u64 end) const {
    u64 found = 0;
    for (u64 n = end; n < next_ && n < base_ + span(); ++n)
      if (n >= base_ && (words_[n / 64 & mask_] >> (n & 63) & 1) != 0) ++found;
    return found;
  }

 private:
  /// The distance to the next packet due, as a signed number of 48 bits.
  [[nodiscard]] i64 ahead_of_next(u64 sequence48) const {
    return static_cast<i64>((sequence48 - next_) << 16) >> 16;
  }
  [[nodiscard]] u64& word(u64 n) { return words_[n / 64 & mask_]; }
  [[nodiscard]] u64 span() const { return 64 * (mask_ + 1); }
  /// Whether `n`, out of reach, comes behind another such packet: the map then goes on from there.
  bool follows(u64 n) {
    if (n <= far_ || n - far_ >= kReach || far_ < next_) {
      far_ = n;
      return false;
    }
    const u64 base = far_ & ~u64{63};
    slid_lost_ += lost_in_map(base) + base - std::min(base, base_ + span());
    std::ranges::fill(words_, 0);
    base_ = base;
    far_ = 0;
    return true;
  }
  /// Those before `end` that the map still has a bit for.
  [[nodiscard]] u64 lost_in_map(u64 end) const {
    u64 lost = 0;
    for (u64 n = base_; n < end && n < base_ + span(); n += 64) {
      u64 missing = ~words_[n / 64 & mask_];
      if (end - n < 64) missing &= (u64{1} << (end - n)) - 1;
      lost += static_cast<u64>(__builtin_popcountll(missing));
    }
    return lost;
  }
  void slide() {
    u64& w = word(base_);
    slid_lost_ += static_cast<u64>(__builtin_popcountll(~w));
    w = 0;
    base_ += 64;
  }

  u64 start_;
  u64 base_;  ///< the oldest packet in the map, a multiple of 64
  u64 next_;
  std::vector<u64> words_;
  u64 mask_;  ///< of a word's place: one less than there are
  u64 unique_ = 0;
  u64 slid_lost_ = 0;
  u64 far_ = 0;  ///< the last packet that was out of reach; 0: none
};

}  // namespace doorbell::net
