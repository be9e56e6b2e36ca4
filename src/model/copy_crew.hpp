// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Threads that share copies with the device thread that orders them: one core alone moves less than memory
// allows, and less still where the data lies in another core's cache, as it does when other threads make and
// check it.
#pragma once

#include <doorbell/config.hpp>

#include <atomic>
#include <memory>
#include <vector>

namespace doorbell::model {

/// Copies that are under way together, in shares. The place that is copied to decides whose a share is, so
/// that a buffer which is used again and again stays in one core's cache; the caller does what a helper has
/// not begun when it waits. Helpers sleep when there has been nothing for a while. Thread rule: one thread,
/// the caller, uses the object.
class CopyCrew {
 public:
  /// From here on a helper takes a copy over in less time than the copy takes.
  static constexpr u64 kWorthSharing = 2048;
  /// Copies of so many bytes together wake helpers that sleep: waking them takes the caller about as long as
  /// it copies this.
  static constexpr u64 kWorthWaking = 64 * 1024;

  /// `threads` take part in the copies, the caller among them; 0 and 1: the caller alone.
  explicit CopyCrew(u32 threads);
  ~CopyCrew();
  CopyCrew(const CopyCrew&) = delete;
  CopyCrew& operator=(const CopyCrew&) = delete;

  [[nodiscard]] bool empty() const { return helpers_.empty(); }
  /// True if all helpers sleep.
  [[nodiscard]] bool asleep() const { return asleep_.load(std::memory_order_relaxed) == helpers_.size(); }
  /// Begins a copy of at least one byte between places that do not overlap each other, nor those of another
  /// copy that is under way. The last byte is not there before settle(). Wakes helpers if all sleep, or
  /// when kWorthWaking bytes have come together.
  void add(u8* to, const u8* from, u64 bytes);
  /// True if a copy is under way.
  [[nodiscard]] bool pending() const { return used_ > 0; }
  /// Bytes of the copies since the last settle().
  [[nodiscard]] u64 bytes() const { return bytes_; }
  /// Takes part until all copies are finished. The copies' last bytes become visible in the order of add(),
  /// each after all other bytes of its copy and of the copies before it.
  void settle() {
    if (pending()) finish();
    bytes_ = 0;
    called_ = false;
  }

 private:
  static constexpr u32 kShares = 128;  ///< under way at a time
  /// A share is handed over when it has so many bytes: what handing it over costs, some memory lines that go
  /// from core to core, is little beside them.
  static constexpr u64 kShareBytes = 16 * 1024;
  struct Share;
  struct Helper;
  struct LastByte {
    u8* to;
    const u8* value;  ///< in its share, when that is done
  };

  void add_part(u32 owner, u8* to, const u8* from, u64 bytes, bool ends);
  void offer(Share& share);
  void finish();
  void wake();

  std::unique_ptr<Share[]> shares_;  // the first `used_` are those since the last settle()
  std::vector<Share*> open_;         // one for each thread, or null: not handed over yet
  std::vector<LastByte> ends_;       // of the copies, in their order
  u32 used_ = 0;
  u64 bytes_ = 0;
  bool called_ = false;  ///< helpers that slept
  // Helpers use the members below too.
  alignas(64) std::atomic<u32> asleep_ = 0;
  std::atomic<u32> alarm_ = 0;  ///< changes when helpers are to look again
  std::atomic<bool> over_ = false;
  std::vector<std::unique_ptr<Helper>> helpers_;  // the last member: their threads use the others
};

/// How many threads share copies when the options do not say: those of this process's cores that `busy`
/// threads leave over, shared out among `device_threads`.
[[nodiscard]] u32 copy_threads(u32 busy, u32 device_threads);

}  // namespace doorbell::model
