// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Faults that a model injects on purpose: which command gets which is a function of the seed, the
// queue and the command's number in it, so a run can be repeated whatever the threads do.
#pragma once

#include <doorbell/config.hpp>
#include <doorbell/pattern.hpp>

#include <array>
#include <atomic>
#include <string>
#include <string_view>
#include <vector>

#if defined(__SANITIZE_THREAD__)
// Of the sanitizer's run-time library, which has no header for them.
extern "C" void AnnotateIgnoreReadsBegin(const char* file, int line);
extern "C" void AnnotateIgnoreReadsEnd(const char* file, int line);
extern "C" void AnnotateIgnoreWritesBegin(const char* file, int line);
extern "C" void AnnotateIgnoreWritesEnd(const char* file, int line);
#endif

namespace doorbell::model {

enum class Fault : u32 {
  drop,       ///< no completion
  delay,      ///< a completion that comes late
  error,      ///< a bad status
  corrupt,    ///< a changed byte in the data that a read delivers
  misplace,   ///< a read delivers good data of another address
  stale,      ///< a write is acknowledged but not done
  duplicate,  ///< a completion twice
  reorder,    ///< a completion after younger ones: legal
  removal,    ///< the device goes away
  none,
};
inline constexpr u32 kFaultKinds = static_cast<u32>(Fault::none);
[[nodiscard]] std::string_view name(Fault f);
/// Every kind's name, in order.
[[nodiscard]] const std::vector<std::string>& fault_names();

/// While it lives, ThreadSanitizer overlooks what this thread reads and writes: a fault that strikes memory
/// of somebody who does not expect it is a race on purpose.
class RaceOnPurpose {
 public:
#if defined(__SANITIZE_THREAD__)
  RaceOnPurpose() {
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
  }
  ~RaceOnPurpose() {
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
  }
#else
  RaceOnPurpose() {}
  ~RaceOnPurpose() {}
#endif
  RaceOnPurpose(const RaceOnPurpose&) = delete;
  RaceOnPurpose& operator=(const RaceOnPurpose&) = delete;
};

/// Probability of each kind, per command that it can apply to.
struct FaultRates {
  std::array<double, kFaultKinds> probability{};
  [[nodiscard]] bool any() const;
  [[nodiscard]] double of(Fault f) const { return probability[static_cast<u32>(f)]; }
};

/// What kind of command asks: corrupt and misplace hit reads, stale hits writes, the rest any. `both` is for
/// messages between peers, where every kind can be told.
enum class Direction { to_host, to_device, none, both };

/// Decides and counts. One per device thread; the counters may be read from another thread.
class FaultInjector {
 public:
  FaultInjector(const FaultRates& rates, u64 seed);

  [[nodiscard]] bool active() const { return active_; }
  /// The fault of command `serial` of queue `queue`: at most one. Does not count it.
  [[nodiscard]] Fault draw(u64 queue, u64 serial, Direction direction) const;
  /// A number in [0, bound) that belongs to this command, for faults that choose a place.
  [[nodiscard]] u64 choose(u64 queue, u64 serial, u64 bound) const;
  void count(Fault f) { counts_[static_cast<u32>(f)].fetch_add(1, std::memory_order_relaxed); }
  [[nodiscard]] u64 counted(Fault f) const {
    return counts_[static_cast<u32>(f)].load(std::memory_order_relaxed);
  }

 private:
  bool active_;
  u64 seed_;
  std::array<u64, kFaultKinds> threshold_{};
  std::array<std::atomic<u64>, kFaultKinds> counts_{};
};

}  // namespace doorbell::model
