// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A number that one thread at a time counts and any thread reads.
#pragma once

#include <doorbell/config.hpp>

#include <atomic>

namespace doorbell::roce {

class Counted {
 public:
  void add(u64 n = 1) { v_.store(v_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed); }
  [[nodiscard]] u64 get() const { return v_.load(std::memory_order_relaxed); }

 private:
  std::atomic<u64> v_ = 0;
};

}  // namespace doorbell::roce
