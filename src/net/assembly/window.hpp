// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Windows of packets, by epoch: which window and slot a packet belongs to, and when windows close.
//
// The n-th packet of a stream (its sequence less that of the first one) belongs to slot n mod W of window
// n / W, whenever it arrives; a lost packet shifts nothing. S windows are open at a time. The tracker decides
// and stores no data, so that any storage can follow it: buffers of a CPU, of a GPU, or none.
//
// Sequences have 48 bits and wrap; windows are numbered on beyond that.
#pragma once

#include <doorbell/net/packet.hpp>
#include <doorbell/net/window_consumer.hpp>

#include <algorithm>
#include <vector>

namespace doorbell::net {

/// The outcome of placing a packet.
enum class Placing : u8 {
  placed,
  duplicate,     ///< its slot is taken: the data is not to be written again
  late,          ///< its window has been closed
  misplaced,     ///< no packet that this stream can have here: before the first one, or far ahead
  wrong_length,  ///< not as long as a slot; of those that store data
};

/// A packet that is more windows ahead of the oldest open one is misplaced.
inline constexpr u64 kMaxWindowJump = 1u << 20;

/// A window that closes. What it refers to is valid during the call that reports it.
struct ClosedWindow {
  u64 index = 0;
  u64 first_packet = 0;    ///< that of slot 0, counted from the stream's first
  u64 first_sequence = 0;  ///< its sequence
  u32 ring = 0;            ///< index mod `open`: where the window's storage was
  Closing why = Closing::full;
  u32 packets = 0;            ///< slots; fewer than WindowShape::packets only where the stream ended
  u32 arrived = 0;            ///< of them
  u64 first_arrival_ns = 0;   ///< 0 when none arrived
  const u64* bits = nullptr;  ///< bit i: slot i has arrived
  [[nodiscard]] u32 missing() const { return packets - arrived; }
};

struct Placement {
  Placing what = Placing::placed;
  // Of a packet that is placed or a duplicate:
  bool first = false;         ///< the first packet of its window
  bool out_of_order = false;  ///< placed, and one of a higher sequence came before it
  u32 ring = 0;               ///< window mod `open`
  u32 slot = 0;
  u64 window = 0;
};

/// Thread rule: one thread at a time. Only the constructor allocates.
///
/// Windows close in the order of their index, each once, also those that no packet came for. `close`, a
/// function of a const ClosedWindow&, is called for each of them before the call returns; for place(), before
/// the storage of the packet's window is used.
class WindowTracker {
 public:
  /// Throws Error: a number out of range.
  explicit WindowTracker(const WindowShape& shape);

  /// A packet has arrived. `now_ns` counts only for timeouts.
  template <class Close>
  Placement place(u64 sequence, u64 now_ns, Close&& close) {
    u64 ahead = (sequence - oldest_sequence_) & kSequenceMask;
    if (ahead >= span_) {
      if (ahead >= kHalf) {  // behind the oldest open window
        const bool before_first = kSequenceMask + 1 - ahead > oldest_packet_;
        ++(before_first ? counts_.misplaced : counts_.late);
        return {before_first ? Placing::misplaced : Placing::late};
      }
      if (ahead / shape_.packets > kMaxWindowJump) {
        ++counts_.misplaced;
        return {Placing::misplaced};
      }
      while (ahead >= span_) {
        close_oldest(Closing::pushed_out, close);
        ahead -= shape_.packets;
      }
      // Full windows behind the closed ones wait for nothing now. The packet's own window is never full: it
      // was not open before.
      while (entries_[oldest_ring_].arrived == shape_.packets) {
        close_oldest(Closing::full, close);
        ahead -= shape_.packets;
      }
    }
    Placement p;
    const u32 which = static_cast<u32>(ahead) / shape_.packets;
    p.slot = static_cast<u32>(ahead) - which * shape_.packets;
    p.window = oldest_ + which;
    p.ring = ring(which);
    Entry& entry = entries_[p.ring];
    u64& word = bits_of(p.ring)[p.slot / 64];
    const u64 bit = u64{1} << (p.slot % 64);
    if ((word & bit) != 0) {
      ++counts_.duplicate;
      p.what = Placing::duplicate;
      return p;
    }
    word |= bit;
    if (entry.arrived++ == 0) {
      p.first = true;
      entry.first_ns = now_ns;
    }
    const u64 packet = oldest_packet_ + ahead;
    p.out_of_order = packet < end_packet_;
    end_packet_ = std::max(end_packet_, packet + 1);
    counts_.out_of_order += p.out_of_order ? 1 : 0;
    ++counts_.placed;
    return p;
  }

  /// True when close_full() would close a window. Ask when a placed packet's data has been stored.
  [[nodiscard]] bool full() const { return entries_[oldest_ring_].arrived == shape_.packets; }
  /// Closes the oldest windows as long as they are full.
  template <class Close>
  void close_full(Close&& close) {
    while (full()) close_oldest(Closing::full, close);
  }
  /// Closes the windows whose time is over, with those before them, for which they would otherwise wait.
  template <class Close>
  void expire(u64 now_ns, Close&& close) {
    if (shape_.timeout_ns == 0) return;
    for (u32 i = shape_.open; i > 0; --i) {
      const Entry& e = entries_[ring(i - 1)];
      if (e.arrived == 0 || now_ns < e.first_ns || now_ns - e.first_ns < shape_.timeout_ns) continue;
      for (u32 n = i; n > 0; --n) close_oldest(Closing::timeout, close);
      close_full(close);
      return;
    }
  }
  /// When expire() has something to do next: CLOCK_MONOTONIC, or ~0 for never.
  [[nodiscard]] u64 next_timeout_ns() const;
  /// Closes everything up to the last window of which a packet came, and, where the stream's number of
  /// packets is known, up to its last one. Afterwards the stream may go on with the window behind.
  template <class Close>
  void finish(Close&& close, u64 total_packets = 0) {
    end_packet_ = std::max(end_packet_, total_packets);
    while (oldest_packet_ < end_packet_) close_oldest(Closing::end, close);
  }

  [[nodiscard]] const WindowShape& shape() const { return shape_; }
  [[nodiscard]] const WindowCounts& counts() const { return counts_; }
  /// The oldest window that is open.
  [[nodiscard]] u64 oldest() const { return oldest_; }

 private:
  static constexpr u64 kHalf = u64{1} << 47;
  struct Entry {
    u32 arrived = 0;
    u64 first_ns = 0;
  };

  [[nodiscard]] u32 ring(u32 which) const {
    const u32 r = oldest_ring_ + which;
    return r < shape_.open ? r : r - shape_.open;
  }
  [[nodiscard]] u64* bits_of(u32 ring) { return &bits_[u64{ring} * words_]; }

  template <class Close>
  void close_oldest(Closing why, Close&& close) {
    Entry& e = entries_[oldest_ring_];
    ClosedWindow w;
    w.index = oldest_;
    w.first_packet = oldest_packet_;
    w.first_sequence = oldest_sequence_;
    w.ring = oldest_ring_;
    // The stream's end may lie inside its last window.
    const u64 left = end_packet_ - std::min(end_packet_, oldest_packet_);
    w.packets = why == Closing::end && left < shape_.packets ? static_cast<u32>(left) : shape_.packets;
    w.arrived = e.arrived;
    w.why = e.arrived == shape_.packets ? Closing::full : why;
    w.first_arrival_ns = e.first_ns;
    w.bits = bits_of(oldest_ring_);
    count(w);
    close(static_cast<const ClosedWindow&>(w));
    if (e.arrived != 0) std::fill_n(bits_of(oldest_ring_), words_, 0);
    e = {};
    ++oldest_;
    oldest_packet_ += shape_.packets;
    oldest_sequence_ = (oldest_sequence_ + shape_.packets) & kSequenceMask;
    oldest_ring_ = ring(1);
  }
  void count(const ClosedWindow& w);

  WindowShape shape_;
  u32 words_;              ///< of a window's bitmap
  u64 span_;               ///< packets of all open windows
  u64 oldest_ = 0;         ///< index of the oldest open window
  u64 oldest_packet_ = 0;  ///< the stream's packet in its slot 0, counted from 0
  u64 oldest_sequence_;    ///< that packet's sequence
  u32 oldest_ring_ = 0;    ///< oldest_ mod `open`
  u64 end_packet_ = 0;     ///< one past the last packet that came or is known to have been sent
  std::vector<Entry> entries_;
  std::vector<u64> bits_;
  WindowCounts counts_;
};

}  // namespace doorbell::net
