// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Whether a device is still present.
#pragma once

#include <doorbell/memory_order.hpp>

#include <atomic>

namespace doorbell::model {

/// Shared by a device's threads. A device that has gone does not come back.
class Presence {
 public:
  /// From now on `word` shows initiators whether the device is there: 1, later 0.
  void show(u32* word) {
    word_ = word;
    store_release(word_, 1);
  }
  [[nodiscard]] bool gone() const { return gone_.load(std::memory_order_relaxed); }
  /// False if the device has gone already. If several threads call this at the same moment, one gets true.
  bool leave() {
    if (gone_.exchange(true, std::memory_order_acq_rel)) return false;
    if (word_ != nullptr) store_release(word_, 0);
    return true;
  }

 private:
  std::atomic<bool> gone_{false};
  u32* word_ = nullptr;
};

}  // namespace doorbell::model
