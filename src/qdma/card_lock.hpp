// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Advisory locks on the memory of a card that several processes reach: two runs on the same bytes would find
// each other's data, and say that the card is bad.
#pragma once

#include <doorbell/config.hpp>

#include <string>

#include "system/descriptor.hpp"

namespace doorbell::qdma {

/// Locks of one process, until this object goes. They lie on a file in the folder for temporary files that is
/// named after the card's socket or device node; where it cannot be made nothing is locked.
class CardLock {
 public:
  /// `spec`: of a card, as a back end takes it. The software card in this process is nobody else's.
  explicit CardLock(const std::string& spec);
  /// Throws Error when another process has some of these bytes: with its number and name. `setting` is what
  /// other bytes are chosen by.
  void take(u64 begin, u64 bytes, const std::string& setting);

 private:
  std::string spec_;
  Descriptor file_;
};

}  // namespace doorbell::qdma
