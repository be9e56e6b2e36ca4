// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A line for each injected fault, with the time since the log was opened. NICs and processes may share a
// file.
#pragma once

#include <doorbell/config.hpp>

#include <string>

#include "system/descriptor.hpp"

namespace doorbell::roce {

class FaultLog {
 public:
  /// Empty: no log. Throws Error where the file cannot be written.
  explicit FaultLog(const std::string& file);

  [[nodiscard]] bool on() const { return file_.get() >= 0; }
  /// A log that cannot be written does not hold up the NIC: the counters have all.
  void line(const std::string& text) const;
  /// In the child of a fork.
  void close() { file_.reset(); }

 private:
  Descriptor file_;
  u64 begun_ns_;
};

}  // namespace doorbell::roce
