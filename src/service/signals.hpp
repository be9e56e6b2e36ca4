// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Signals as something that a loop reads.
#pragma once

#include <initializer_list>
#include <vector>

#include "system/descriptor.hpp"

namespace doorbell::service {

/// From the constructor on these signals are noted in place of ending the process; one object at a time.
class Signals {
 public:
  /// Throws Error.
  explicit Signals(std::initializer_list<int> numbers);
  /// Their default actions come back.
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;
  /// There is something to read when one has come.
  [[nodiscard]] int fd() const { return read_.get(); }
  /// The oldest one that has not been taken; 0: none.
  [[nodiscard]] int take();

 private:
  Descriptor read_, write_;
  std::vector<int> numbers_;
};

}  // namespace doorbell::service
