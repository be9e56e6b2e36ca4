// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A number that a device thread increments and any thread may read.
#pragma once

#include <doorbell/config.hpp>

#include <atomic>

namespace doorbell::model {

/// One thread writes it. A thread that reads a count also sees all that the writer did before it counted.
class Count {
 public:
  void operator+=(u64 n) { n_.store(n_.load(std::memory_order_relaxed) + n, std::memory_order_release); }
  [[nodiscard]] u64 value() const { return n_.load(std::memory_order_acquire); }

 private:
  std::atomic<u64> n_{0};
};

}  // namespace doorbell::model
