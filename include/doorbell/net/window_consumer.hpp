// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// How a finished window of received data goes to its user, and back. Host code only.
#pragma once

#include <doorbell/config.hpp>

#include <span>

namespace doorbell::net {

/// Why a window was closed.
enum class Closing : u8 {
  full,        ///< every slot has its packet
  pushed_out,  ///< a packet came for a window that is too far ahead
  timeout,     ///< WindowShape::timeout_ns is over
  end,         ///< the stream has ended
};

/// @name Limits of WindowShape
/// @{
inline constexpr u32 kMaxWindowPackets = 1u << 20;
inline constexpr u32 kMaxOpenWindows = 64;
/// @}

/// How a flow's packets are made into windows: its n-th packet (its sequence less that of the first one) is
/// slot n mod `packets` of window n / `packets`, whenever it arrives.
struct WindowShape {
  u32 packets = 1024;      ///< a window, 1 to kMaxWindowPackets
  u32 open = 4;            ///< windows open at a time, 1 to kMaxOpenWindows
  u64 timeout_ns = 0;      ///< from a window's first packet to its closing; 0: none
  u64 first_sequence = 0;  ///< of the stream's first packet, which is slot 0 of window 0
};

/// A flow's packets and windows, by their fate.
struct WindowCounts {
  u64 placed = 0;        ///< packets in the slot that is theirs
  u64 duplicate = 0;     ///< packets whose slot was taken
  u64 late = 0;          ///< packets of a window that was closed
  u64 misplaced = 0;     ///< packets with a sequence that the flow cannot have
  u64 out_of_order = 0;  ///< of those placed
  u64 windows = 0;       ///< closed, of which:
  u64 full = 0;          ///< by Closing::full
  u64 pushed_out = 0;    ///< by Closing::pushed_out
  u64 timed_out = 0;     ///< by Closing::timeout
  u64 at_end = 0;        ///< by Closing::end
  u64 missing = 0;       ///< slots of closed windows into which no packet came
  /// Adds each: several flows together.
  WindowCounts& operator+=(const WindowCounts& o) {
    placed += o.placed, duplicate += o.duplicate, late += o.late, misplaced += o.misplaced;
    out_of_order += o.out_of_order, windows += o.windows, full += o.full, pushed_out += o.pushed_out;
    timed_out += o.timed_out, at_end += o.at_end, missing += o.missing;
    return *this;
  }
};

/// The treatment of slots that no packet came for: zeros, or nothing. The window lists them in both cases.
enum class Missing {
  zero,  ///< such slots are zeros
  mark,  ///< such slots hold what was there before
};

class WindowOwner;

/// A window of data on its way through a consumer. What it refers to stays as it is until the consumer gives
/// it back.
struct Window {
  u64 index = 0;                            ///< of the flow's windows, from 0
  u32 flow = 0;                             ///< whose packets it has
  u64 first_packet = 0;                     ///< that of slot 0, counted from the flow's first
  const u8* host = nullptr;                 ///< for code on the CPU; null for GPU memory
  const u8* device = nullptr;               ///< for code on the GPU; null where it does not reach the memory
  u64 bytes = 0;                            ///< `packets` slots
  u32 packets = 0;                          ///< slots; fewer than usual only where the stream ended
  u32 missing = 0;                          ///< slots that no packet came for
  Closing why = Closing::full;              ///< Closing::full: no slot is missing
  u64 first_arrival_ns = 0;                 ///< CLOCK_MONOTONIC; 0 when no packet came
  std::span<const u64> arrived = {};        ///< bit i: slot i; empty where packets are not told apart
  std::span<const u32> missing_slots = {};  ///< ascending
  /// Of windows that are audited: the CRC-32C of what each slot with a packet must hold, until take()
  /// returns.
  std::span<const u32> slot_crcs = {};
  const u32* device_missing_slots = nullptr;  ///< `missing_slots` for code on the GPU; null where it has none
  const u64* device_arrived = nullptr;        ///< `arrived`, likewise
  WindowOwner* owner = nullptr;               ///< whose give_back() takes it
  u32 buffer = 0;                             ///< the owner's number for it

  /// Once, when the consumer is done with it: WindowOwner::give_back().
  inline void give_back() const;
};

/// Whose memory a window lies in.
class WindowOwner {
 public:
  virtual ~WindowOwner() = default;
  /// The window's memory may be used for another one. On the thread that delivered it.
  virtual void give_back(const Window& window) = 0;
};

void Window::give_back() const {
  owner->give_back(*this);
}

/// A consumer of finished windows: a workload, a check, a copy to a GPU. All calls on one thread, which never
/// wait without a limit.
class WindowConsumer {
 public:
  virtual ~WindowConsumer() = default;
  /// Takes a window over, in the order of their indices. The consumer gives it back in this call or in a
  /// later one of poll(), wait() or finish().
  virtual void take(const Window& window) = 0;
  /// Once a burst: gives back what is done with.
  virtual void poll() {}
  /// There is no free buffer: waits until at least one window has been given back, at most `limit_ns`.
  virtual void wait(u64 limit_ns) { static_cast<void>(limit_ns); }
  /// The last window has been taken: finishes and gives everything back. Throws Error when that does not end.
  virtual void finish() {}
};

/// Gives every window back at once.
class DiscardWindows final : public WindowConsumer {
 public:
  void take(const Window& window) override { window.give_back(); }
};

}  // namespace doorbell::net
