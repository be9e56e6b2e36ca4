// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// How a finished window of received data goes to its user, and back. Host code only.
#pragma once

#include <doorbell/net/window.hpp>

#include <span>

namespace doorbell::net {

/// The treatment of slots that no packet came for: zeros, or nothing. The window lists them in both cases.
enum class Missing { zero, mark };

class WindowOwner;

/// A window of data on its way through a consumer. What it refers to stays as it is until the consumer gives
/// it back.
struct Window {
  u64 index = 0;
  u32 flow = 0;                ///< whose packets it has
  u64 first_packet = 0;        ///< that of slot 0, counted from the flow's first
  const u8* host = nullptr;    ///< for code on the CPU; null for GPU memory
  const u8* device = nullptr;  ///< for code on the GPU; null where it does not reach the memory
  u64 bytes = 0;               ///< `packets` slots
  u32 packets = 0;             ///< slots; fewer than usual only where the stream ended
  u32 missing = 0;             ///< slots that no packet came for
  Closing why = Closing::full;
  u64 first_arrival_ns = 0;                 ///< 0 when no packet came
  std::span<const u64> arrived = {};        ///< bit i: slot i; empty where packets are not told apart
  std::span<const u32> missing_slots = {};  ///< ascending
  /// Of windows that are audited: the CRC-32C of what each slot with a packet must hold, until take()
  /// returns.
  std::span<const u32> slot_crcs = {};
  const u32* device_missing_slots = nullptr;
  const u64* device_arrived = nullptr;
  WindowOwner* owner = nullptr;
  u32 buffer = 0;  ///< the owner's number for it

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
