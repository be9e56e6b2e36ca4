// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A Mirror of a region in GPU memory, over the copy engine of that GPU.
#pragma once

#include <doorbell/region.hpp>

#include <exception>
#include <mutex>

#include "loop/mirror.hpp"

namespace doorbell {

class GpuMirror final : public Mirror {
 public:
  /// `there` lies in GPU memory and outlives the mirror; it may be moved.
  explicit GpuMirror(const Region& there);

  using Mirror::fetch, Mirror::store;
  void fetch(std::span<const MirrorRange> ranges) noexcept override;
  void store(std::span<const MirrorRange> ranges) noexcept override;

  /// In place of the region's own address.
  [[nodiscard]] u8* host() const { return here_.host(); }
  /// Throws what a copy has failed with: data that was made or checked since is not to be trusted. Not while
  /// others copy.
  void check();

 private:
  [[nodiscard]] bool copied(std::span<const MirrorRange> ranges, bool to_gpu) noexcept;

  Region here_;
  u8* there_;
  std::mutex mutex_;
  std::exception_ptr failure_;
};

}  // namespace doorbell
