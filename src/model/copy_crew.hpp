// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Threads that share a large copy with the device thread that orders it: one core alone moves less than
// memory allows.
#pragma once

#include <doorbell/config.hpp>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace doorbell::model {

/// From here on a copy is worth sharing: one core takes about 6 us for so much where the data lies in another
/// core's cache, as it does when other threads make and check it; a helper that is awake takes part within
/// half of one.
inline constexpr u64 kSharedCopy = 64 * 1024;

/// Thread rule: one thread calls copy().
class CopyCrew {
 public:
  /// `threads` take part in each copy, the caller among them; 0 and 1: the caller alone.
  explicit CopyCrew(u32 threads);
  ~CopyCrew();
  CopyCrew(const CopyCrew&) = delete;
  CopyCrew& operator=(const CopyCrew&) = delete;

  [[nodiscard]] bool empty() const { return helpers_.empty(); }
  /// Copies between places that do not overlap. All bytes are there when it returns, and this thread may say
  /// so.
  void copy(u8* to, const u8* from, u64 bytes);

 private:
  struct Helper;
  std::vector<std::unique_ptr<Helper>> helpers_;
};

/// How many threads share a copy when the options do not say: those of this process's cores that `busy`
/// threads leave over, shared out among `device_threads`.
[[nodiscard]] u32 copy_threads(u32 busy, u32 device_threads);

}  // namespace doorbell::model
