// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Compiler differences between host code and the GPU compilers, in one place. Code that says DOORBELL_HD
// compiles with g++, clang++, nvcc and hipcc (C++20).
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__CUDACC__) || defined(__HIPCC__)
/// Of a function: for host code and for kernels. Nothing without a GPU's compiler.
#define DOORBELL_HD __host__ __device__
/// Of a function: for kernels alone.
#define DOORBELL_DEVICE __device__
#else
#define DOORBELL_HD
#define DOORBELL_DEVICE
#endif

// Defined while a GPU compiler generates device code (its host pass leaves it undefined).
#if defined(__CUDA_ARCH__)
#define DOORBELL_ON_GPU 1
#define DOORBELL_ON_CUDA 1
#elif defined(__HIP_DEVICE_COMPILE__)
#define DOORBELL_ON_GPU 1
#define DOORBELL_ON_HIP 1
#endif

/// Of a function on the hot path, for both sides.
///
/// Tests, and what AddressSanitizer adds its checks to, let the compiler choose: with everything inlined
/// everywhere a test of the loops compiles three to four times as long.
#if defined(__SANITIZE_ADDRESS__) || defined(DOORBELL_INLINE_FREELY)
#define DOORBELL_INLINE DOORBELL_HD inline
#else
#define DOORBELL_INLINE DOORBELL_HD inline __attribute__((always_inline))
#endif
/// For slow paths: a GPU's instruction cache is small, and one warp alone feels every miss.
#define DOORBELL_NOINLINE DOORBELL_HD inline __attribute__((noinline))

/// For work that comes in batches: inlined into a GPU's loop, whose registers a call empties, and a function
/// of its own on a CPU, where all loops share it.
#if defined(DOORBELL_ON_GPU)
#define DOORBELL_CPU_NOINLINE DOORBELL_INLINE
#else
#define DOORBELL_CPU_NOINLINE DOORBELL_NOINLINE
#endif

/// For slow paths where only the GPU is told so: the CPU's compiler chooses.
#if defined(DOORBELL_ON_GPU)
#define DOORBELL_GPU_NOINLINE DOORBELL_HD __attribute__((noinline))
#else
#define DOORBELL_GPU_NOINLINE DOORBELL_HD
#endif

#if defined(DOORBELL_ON_CUDA) || defined(__clang__)
#define DOORBELL_NO_UNROLL _Pragma("unroll 1")
#define DOORBELL_UNROLL_4 _Pragma("unroll 4")
#define DOORBELL_UNROLL _Pragma("unroll")
#else
/// Before a loop that the GPU compiler must not unroll: its instruction cache is small.
#define DOORBELL_NO_UNROLL
/// Before a loop of many independent rounds: four of them overlap.
#define DOORBELL_UNROLL_4
/// Before a loop that the GPU compiler must unroll, because its rounds are independent and a lone warp has
/// nothing else to fill their latency with.
#define DOORBELL_UNROLL
#endif

namespace doorbell {

/// @name Integers by their bits, as host code and kernels have them
/// @{
using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i64 = std::int64_t;
/// @}

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "the little-endian wire formats are written as native words");

/// std::convertible_to. That one asks through std::declval, which hipcc 5 does not find in code for a GPU:
/// there every concept that uses it is false.
template <class From, class To>
concept ConvertibleTo = requires(void (&take)(To), From&& from) {
  take(static_cast<From&&>(from));
};

}  // namespace doorbell
