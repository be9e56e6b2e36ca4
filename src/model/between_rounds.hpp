// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Lets set-up calls change what a device thread owns, without a lock on the data path.
#pragma once

#include <atomic>
#include <functional>
#include <thread>

namespace doorbell::model {

class BetweenRounds {
 public:
  /// `threaded` false: serve() is never called at the same time, so run() does the work itself.
  explicit BetweenRounds(bool threaded) : threaded_(threaded) {}

  /// Runs `work` on the device's thread between two rounds and waits for it. One caller at a time.
  /// `meanwhile`, unless it is empty, is called again and again until then.
  void run(const std::function<void()>& work, const std::function<void()>& meanwhile = {}) {
    if (!threaded_) {
      work();
      return;
    }
    // The release makes what the caller prepared visible to the device's thread. serve() clears the word with
    // release when the work is done, so the effects of the work are visible here.
    request_.store(&work, std::memory_order_release);
    while (request_.load(std::memory_order_acquire) != nullptr) {
      if (meanwhile) meanwhile();
      std::this_thread::yield();
    }
  }

  /// Called by the device's thread at the beginning of a round.
  void serve() {
    if (const auto* request = request_.load(std::memory_order_acquire); request != nullptr) [[unlikely]] {
      (*request)();
      request_.store(nullptr, std::memory_order_release);
    }
  }

 private:
  bool threaded_;
  std::atomic<const std::function<void()>*> request_{nullptr};
};

}  // namespace doorbell::model
