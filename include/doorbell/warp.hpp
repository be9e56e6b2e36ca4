// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The lanes that run one piece of collective code. Queue pairs, pattern and loops take a Warp as a
// template parameter: OneLane on a CPU thread, GpuWarp in a kernel, an emulated warp of threads in
// tests. Every collective call is made by all lanes together.
//
// A Warp has: `size` (lanes, a constant), `lane()`, `ballot(p)` (bit i = lane i's p, the same on every
// lane), `shfl(v, i)` (lane i's v) and `sync()` (lanes wait for each other; their stores so far are
// visible to all of them).
#pragma once

#include <doorbell/config.hpp>

#if defined(__HIPCC__)
#include <hip/hip_runtime.h>
#endif

namespace doorbell {

/// The Warp of a CPU thread: one lane.
struct OneLane {
  /// @name The members of a Warp, as the head of warp.hpp has them
  /// @{
  static constexpr u32 size = 1;
  [[nodiscard]] DOORBELL_INLINE u32 lane() const { return 0; }
  [[nodiscard]] DOORBELL_INLINE u64 ballot(bool p) const { return p ? 1 : 0; }
  template <class T>
  [[nodiscard]] DOORBELL_INLINE T shfl(T v, u32) const {
    return v;
  }
  DOORBELL_INLINE void sync() const {}
  /// @}
};

#if defined(__CUDACC__)
/// The Warp of a kernel: all lanes of one, of which none may be missing in a call. In code for a GPU only.
struct GpuWarp {
  /// @name The members of a Warp, as the head of warp.hpp has them
  /// @{
  static constexpr u32 size = 32;
  [[nodiscard]] __device__ __forceinline__ u32 lane() const { return threadIdx.x & 31u; }
  [[nodiscard]] __device__ __forceinline__ u64 ballot(bool p) const { return __ballot_sync(~0u, p); }
  template <class T>
  [[nodiscard]] __device__ __forceinline__ T shfl(T v, u32 from) const {
    return __shfl_sync(~0u, v, static_cast<int>(from));
  }
  __device__ __forceinline__ void sync() const { __syncwarp(); }
  /// @}
};
#elif defined(__HIPCC__)
struct GpuWarp {
#if defined(__AMDGCN_WAVEFRONT_SIZE)
  static constexpr u32 size = __AMDGCN_WAVEFRONT_SIZE;
#else
  static constexpr u32 size = 64;
#endif
  [[nodiscard]] __device__ __forceinline__ u32 lane() const {
    return threadIdx.x & (size - 1);
  }
  [[nodiscard]] __device__ __forceinline__ u64 ballot(bool p) const {
    return __ballot(p);
  }
  template <class T>
  [[nodiscard]] __device__ __forceinline__ T shfl(T v, u32 from) const {
    return __shfl(v, static_cast<int>(from));
  }
  // Lanes of a wave run in lockstep; the fence keeps the compiler and the caches in step too.
  __device__ __forceinline__ void sync() const {
    __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "wavefront");
    __builtin_amdgcn_wave_barrier();
  }
};
#endif

/// Number of set bits.
DOORBELL_INLINE u32 count_bits(u64 m) {
#if defined(DOORBELL_ON_GPU)
  return static_cast<u32>(__popcll(m));
#else
  return static_cast<u32>(__builtin_popcountll(m));
#endif
}

/// Length of the run of ones that starts at bit 0.
DOORBELL_INLINE u32 leading_run(u64 m) {
  const u64 zeros = ~m;
  if (zeros == 0) return 64;
#if defined(DOORBELL_ON_GPU)
  return static_cast<u32>(__ffsll(static_cast<long long>(zeros))) - 1;
#else
  return static_cast<u32>(__builtin_ctzll(zeros));
#endif
}

/// Index of the highest set bit; v must not be 0.
DOORBELL_INLINE u32 highest_bit(u64 v) {
#if defined(DOORBELL_ON_GPU)
  return 63u - static_cast<u32>(__clzll(static_cast<long long>(v)));
#else
  return 63u - static_cast<u32>(__builtin_clzll(v));
#endif
}

/// The index of the lowest set bit; m must not be 0.
DOORBELL_INLINE u32 lowest_bit(u64 m) {
  return leading_run(~m & (m - 1));
}

/// Combines every lane's value; every lane gets the result. `op` is associative and commutative.
template <class Warp, class T, class Op>
DOORBELL_INLINE T reduce(const Warp& warp, T v, Op op) {
  DOORBELL_NO_UNROLL
  for (u32 step = Warp::size / 2; step > 0; step /= 2) v = op(v, warp.shfl(v, warp.lane() ^ step));
  return v;
}
/// reduce() to the sum.
template <class Warp, class T>
DOORBELL_INLINE T reduce_add(const Warp& warp, T v) {
  return reduce(warp, v, [](T a, T b) { return static_cast<T>(a + b); });
}
/// reduce() to the smallest.
template <class Warp, class T>
DOORBELL_INLINE T reduce_min(const Warp& warp, T v) {
  return reduce(warp, v, [](T a, T b) { return a < b ? a : b; });
}
/// reduce() to the largest.
template <class Warp, class T>
DOORBELL_INLINE T reduce_max(const Warp& warp, T v) {
  return reduce(warp, v, [](T a, T b) { return a > b ? a : b; });
}

/// The sum of the lanes' values up to this lane's.
template <class Warp, class T>
DOORBELL_INLINE T sum_to(const Warp& warp, T v) {
  DOORBELL_NO_UNROLL
  for (u32 step = 1; step < Warp::size; step *= 2) {
    const T before = warp.shfl(v, warp.lane() >= step ? warp.lane() - step : warp.lane());
    if (warp.lane() >= step) v += before;
  }
  return v;
}

/// This lane's rank among the set bits of `mask`.
template <class Warp>
DOORBELL_INLINE u32 rank_in(const Warp& warp, u64 mask) {
  return count_bits(mask & ((u64{1} << warp.lane()) - 1));
}

// Two clocks of a GPU kernel: nanoseconds that all of a GPU's processors share, and cycles of the
// processor that runs the caller. Device code only.
#if defined(__CUDACC__) || defined(__HIPCC__)

/// Nanoseconds of the clock that every processor of one GPU shares. It ticks in steps (32 ns on an
/// H100, up to 1 us on older GPUs), and its origin is arbitrary: only differences mean something.
DOORBELL_DEVICE inline u64 gpu_global_ns() {
#if defined(DOORBELL_ON_CUDA)
  u64 ns;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
  return ns;
#elif defined(DOORBELL_ON_HIP)
  // The reference clock of gfx9 and gfx10.3 parts runs at 100 MHz: 10 ns a tick.
  return static_cast<u64>(wall_clock64()) * 10;
#else
  return 0;
#endif
}

/// Cycles of the calling processor's own clock: fine-grained, but two processors' values do not
/// compare and the rate follows the GPU's frequency.
DOORBELL_DEVICE inline u64 gpu_cycles() {
#if defined(DOORBELL_ON_GPU)
  return static_cast<u64>(clock64());
#else
  return 0;
#endif
}

/// Both, as loops of kernels take their Clock.
struct GpuClock {
  /// gpu_cycles().
  static DOORBELL_DEVICE u64 now() { return gpu_cycles(); }
  /// gpu_global_ns().
  static DOORBELL_DEVICE u64 wall_ns() { return gpu_global_ns(); }
};

#endif

}  // namespace doorbell
