// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Data that a kernel reads all the time and never changes. For GPU code only.
#pragma once

#include <doorbell/warp.hpp>

#include <type_traits>

namespace doorbell::gpu {

/// Data that does not change while a kernel runs, in shared memory, where it takes no registers. In registers
/// the data would make the loop spill, and spilled values come from the L2 cache again after each acquire.
template <class T>
struct Constant {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) % 4 == 0);
  alignas(alignof(T)) u32 words[sizeof(T) / 4];
  /// By one warp; the block's other warps wait for it at a barrier, then call get().
  __device__ const T& copy(const GpuWarp& warp, const T& from) {
    const auto* in = reinterpret_cast<const u32*>(&from);
    for (u32 i = warp.lane(); i < sizeof(T) / 4; i += GpuWarp::size) words[i] = in[i];
    warp.sync();
    return get();
  }
  __device__ const T& get() const { return *reinterpret_cast<const T*>(words); }
};

}  // namespace doorbell::gpu
