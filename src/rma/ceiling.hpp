// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// How fast this machine moves bytes between two places without the device, for comparison with a model's
// rate.
#pragma once

#include <doorbell/region.hpp>

#include <memory>
#include <string>

namespace doorbell::rma {

struct Ceiling {
  std::string what;  ///< "memcpy, one thread" or "copy engine"
  double bytes_per_s = 0;
};

/// Copies `bytes` at a time between `window` buffers at each side, in turn, for about a tenth of a second, or
/// the share `work` of that.
[[nodiscard]] Ceiling measure_ceiling(u64 bytes, u32 window, Place from, Place to,
                                      const std::shared_ptr<gpu::Gpu>& gpu, double work = 1);

}  // namespace doorbell::rma
