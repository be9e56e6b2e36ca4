// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The register windows (BARs) of a software card: memory files, behind which nothing acts.
#pragma once

#include <doorbell/config.hpp>

#include <array>

#include "system/descriptor.hpp"

namespace doorbell::qdma::slash {

/// Programs agree with each other about a BAR's bytes by flock() on the file that each has opened. The server
/// neither maps the files nor locks them.
class Bars {
 public:
  static constexpr u32 kCount = 6;
  /// Of each BAR; 0: there is none.
  static constexpr std::array<u64, kCount> kBytes = {u64{128} << 20, 0, u64{128} << 20, 0, u64{512} << 10, 0};

  /// Throws Error.
  Bars();
  [[nodiscard]] static u64 bytes(u32 bar) { return bar < kCount ? kBytes[bar] : 0; }
  /// Opens a BAR anew, so that its locks are its own. Without one, `error` is an errno.
  [[nodiscard]] Descriptor open(u32 bar, int& error) const;

 private:
  std::array<Descriptor, kCount> files_;
};

}  // namespace doorbell::qdma::slash
