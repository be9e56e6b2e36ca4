// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Accesses to memory that a device (or a model's thread) reads and writes at the same time.
//
// Scope is always the whole system: the other side may be a CPU thread, a GPU or a PCIe device.
// On a GPU a release waits for earlier stores to reach their memory (about 600 ns to host memory on
// an H200), a relaxed store does not: release once a batch, never once an entry.
#pragma once

#include <doorbell/config.hpp>

#include <cstring>

namespace doorbell {

/// 16 bytes that move as one access where the hardware can: the unit of ring writes.
struct alignas(16) Word16 {
  u32 w[4];  ///< little endian, in the order of memory
  friend DOORBELL_INLINE bool operator==(const Word16& a, const Word16& b) {
    return ((a.w[0] ^ b.w[0]) | (a.w[1] ^ b.w[1]) | (a.w[2] ^ b.w[2]) | (a.w[3] ^ b.w[3])) == 0;
  }
};
static_assert(sizeof(Word16) == 16);

/// Orders nothing: for a word that says all by itself.
DOORBELL_INLINE u32 load_relaxed(const u32* p) {
#if defined(DOORBELL_ON_CUDA)
  u32 v;
  asm volatile("ld.relaxed.sys.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
#elif defined(DOORBELL_ON_HIP)
  return __hip_atomic_load(p, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
#else
  return __atomic_load_n(p, __ATOMIC_RELAXED);
#endif
}

/// Later loads and stores of this thread stay behind this load.
DOORBELL_INLINE u32 load_acquire(const u32* p) {
#if defined(DOORBELL_ON_CUDA)
  u32 v;
  asm volatile("ld.acquire.sys.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
#elif defined(DOORBELL_ON_HIP)
  return __hip_atomic_load(p, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_SYSTEM);
#else
  return __atomic_load_n(p, __ATOMIC_ACQUIRE);
#endif
}

/// A device register write that orders nothing: for a value whose readers need no other data.
DOORBELL_INLINE void store_relaxed(u32* p, u32 v) {
#if defined(DOORBELL_ON_CUDA)
  asm volatile("st.relaxed.sys.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
#elif defined(DOORBELL_ON_HIP)
  __hip_atomic_store(p, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
#else
  __atomic_store_n(p, v, __ATOMIC_RELAXED);
#endif
}

/// Earlier loads and stores of this thread stay before this store: the doorbell of a ring whose
/// entries this thread (or, after a warp sync, its warp) has written.
DOORBELL_INLINE void store_release(u32* p, u32 v) {
#if defined(DOORBELL_ON_CUDA)
  asm volatile("st.release.sys.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
#elif defined(DOORBELL_ON_HIP)
  __hip_atomic_store(p, v, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_SYSTEM);
#else
  __atomic_store_n(p, v, __ATOMIC_RELEASE);
#endif
}

/// load_relaxed() of 64 bits, which change as a whole.
DOORBELL_INLINE u64 load64_relaxed(const u64* p) {
#if defined(DOORBELL_ON_CUDA)
  u64 v;
  asm volatile("ld.relaxed.sys.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
  return v;
#elif defined(DOORBELL_ON_HIP)
  return __hip_atomic_load(p, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
#else
  return __atomic_load_n(p, __ATOMIC_RELAXED);
#endif
}

/// Later loads and stores of this thread stay behind this load.
DOORBELL_INLINE u64 load64_acquire(const u64* p) {
#if defined(DOORBELL_ON_CUDA)
  u64 v;
  asm volatile("ld.acquire.sys.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
  return v;
#elif defined(DOORBELL_ON_HIP)
  return __hip_atomic_load(p, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_SYSTEM);
#else
  return __atomic_load_n(p, __ATOMIC_ACQUIRE);
#endif
}

/// store_relaxed() of 64 bits, which change as a whole.
DOORBELL_INLINE void store64_relaxed(u64* p, u64 v) {
#if defined(DOORBELL_ON_CUDA)
  asm volatile("st.relaxed.sys.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
#elif defined(DOORBELL_ON_HIP)
  __hip_atomic_store(p, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
#else
  __atomic_store_n(p, v, __ATOMIC_RELAXED);
#endif
}

/// store_release() for a register or record of 64 bits, which changes as a whole.
DOORBELL_INLINE void store64_release(u64* p, u64 v) {
#if defined(DOORBELL_ON_CUDA)
  asm volatile("st.release.sys.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
#elif defined(DOORBELL_ON_HIP)
  __hip_atomic_store(p, v, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_SYSTEM);
#else
  __atomic_store_n(p, v, __ATOMIC_RELEASE);
#endif
}

// Between threads of one initiator: warps of the same GPU, or threads of the CPU. On a GPU this costs less
// than the scope of the whole system. What a device is to see still needs a release of that scope behind it.

/// Later loads and stores of this thread stay behind this load.
DOORBELL_INLINE u64 load64_acquire_own(const u64* p) {
#if defined(DOORBELL_ON_CUDA)
  u64 v;
  asm volatile("ld.acquire.gpu.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
  return v;
#elif defined(DOORBELL_ON_HIP)
  return __hip_atomic_load(p, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT);
#else
  return __atomic_load_n(p, __ATOMIC_ACQUIRE);
#endif
}
/// Earlier loads and stores of this thread (or, after a warp sync, its warp) stay before this store.
DOORBELL_INLINE void store64_release_own(u64* p, u64 v) {
#if defined(DOORBELL_ON_CUDA)
  asm volatile("st.release.gpu.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
#elif defined(DOORBELL_ON_HIP)
  __hip_atomic_store(p, v, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_AGENT);
#else
  __atomic_store_n(p, v, __ATOMIC_RELEASE);
#endif
}
/// Leaves the larger of what is there and `v`. Orders nothing.
DOORBELL_INLINE void raise64_own(u64* p, u64 v) {
#if defined(DOORBELL_ON_GPU)
  atomicMax(reinterpret_cast<unsigned long long*>(p), v);
#else
  u64 seen = __atomic_load_n(p, __ATOMIC_RELAXED);
  while (seen < v && !__atomic_compare_exchange_n(p, &seen, v, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
#endif
}
/// Adds one. Orders nothing.
DOORBELL_INLINE void count64_own(u64* p) {
#if defined(DOORBELL_ON_GPU)
  atomicAdd(reinterpret_cast<unsigned long long*>(p), 1ull);
#else
  __atomic_fetch_add(p, 1, __ATOMIC_RELAXED);
#endif
}

/// Takes what is there and leaves `v`: how a model collects a register's value. On a GPU the register lies in
/// the GPU's own memory, and only its kernels write it. Later loads and stores of this thread stay behind it.
DOORBELL_INLINE u64 exchange64(u64* p, u64 v) {
#if defined(DOORBELL_ON_GPU)
  const u64 was = atomicExch(reinterpret_cast<unsigned long long*>(p), v);
#if defined(DOORBELL_ON_CUDA)
  asm volatile("fence.acq_rel.sys;" ::: "memory");
#else
  __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "");
#endif
  return was;
#else
  return __atomic_exchange_n(p, v, __ATOMIC_ACQ_REL);
#endif
}

/// Sends earlier stores of this thread on their way where memory is mapped write-combining, as some devices'
/// registers are: a release alone leaves them in the CPU's buffers. Orders no loads.
DOORBELL_INLINE void flush_device_stores() {
#if !defined(DOORBELL_ON_GPU) && (defined(__x86_64__) || defined(__i386__))
  __builtin_ia32_sfence();
#elif !defined(DOORBELL_ON_GPU) && defined(__aarch64__)
  asm volatile("dmb oshst" ::: "memory");
#endif
}

/// Stores `v` to `mine`, then loads `theirs`; no thread sees the two the other way round. The pair
/// that a shadow doorbell needs: a release store may still pass a later load, this may not.
DOORBELL_INLINE u32 store_then_load(u32* mine, u32 v, const u32* theirs) {
#if defined(DOORBELL_ON_CUDA)
  u32 seen;
  asm volatile(
      "st.release.sys.u32 [%1], %2;\n\t"
      "fence.sc.sys;\n\t"
      "ld.relaxed.sys.u32 %0, [%3];"
      : "=r"(seen)
      : "l"(mine), "r"(v), "l"(theirs)
      : "memory");
  return seen;
#elif defined(DOORBELL_ON_HIP)
  __hip_atomic_store(mine, v, __ATOMIC_SEQ_CST, __HIP_MEMORY_SCOPE_SYSTEM);
  return __hip_atomic_load(theirs, __ATOMIC_SEQ_CST, __HIP_MEMORY_SCOPE_SYSTEM);
#else
  __atomic_store_n(mine, v, __ATOMIC_SEQ_CST);
  return __atomic_load_n(theirs, __ATOMIC_SEQ_CST);
#endif
}

/// Plain 16-byte store; made visible by a later release.
DOORBELL_INLINE void store16(Word16* p, const Word16& v) {
#if defined(DOORBELL_ON_CUDA)
  asm volatile("st.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(p), "r"(v.w[0]), "r"(v.w[1]), "r"(v.w[2]),
               "r"(v.w[3])
               : "memory");
#else
  *p = v;
#endif
}

/// 16-byte load that no GPU cache answers from an older copy.
DOORBELL_INLINE Word16 load16(const Word16* p) {
#if defined(DOORBELL_ON_CUDA)
  Word16 v;
  asm volatile("ld.relaxed.sys.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.w[0]), "=r"(v.w[1]), "=r"(v.w[2]), "=r"(v.w[3])
               : "l"(p)
               : "memory");
  return v;
#else
  return *p;
#endif
}

/// Loads a 16-byte completion one dword of which, by default the last, is written last: that one with
/// acquire, so the other three belong to the same completion when it carries the phase.
///
/// On CUDA this is one scalar 128-bit access. A four-element vector load is worse: ptxas drops unused
/// elements and splits the rest, low words first, and a poll then pairs a new phase with an old id.
/// Of host memory even the scalar load is whole by halves of 8 bytes only (seen on an H100): what lies in
/// the other half than the phase has to be loaded again behind this.
template <int kLast = 3>
DOORBELL_INLINE Word16 load16_acquire(const Word16* p) {
#if defined(DOORBELL_ON_CUDA)
  u64 lo, hi;
  asm volatile(
      "{\n\t"
      ".reg .b128 entry;\n\t"
      "ld.acquire.sys.b128 entry, [%2];\n\t"
      "mov.b128 {%0, %1}, entry;\n\t"
      "}"
      : "=l"(lo), "=l"(hi)
      : "l"(p)
      : "memory");
  return {
      {static_cast<u32>(lo), static_cast<u32>(lo >> 32), static_cast<u32>(hi), static_cast<u32>(hi >> 32)}};
#elif defined(DOORBELL_ON_HIP)
  Word16 v;
  v.w[kLast] = __hip_atomic_load(&p->w[kLast], __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_SYSTEM);
  for (int i = 0; i < 4; ++i)
    if (i != kLast) v.w[i] = __hip_atomic_load(&p->w[i], __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
  return v;
#else
  // The other three words are atomic too: before the phase matches, a device may be writing them.
  Word16 v;
  v.w[kLast] = __atomic_load_n(&p->w[kLast], __ATOMIC_ACQUIRE);
  for (int i = 0; i < 4; ++i)
    if (i != kLast) v.w[i] = __atomic_load_n(&p->w[i], __ATOMIC_RELAXED);
  return v;
#endif
}

/// The same for several loads in a row: the entry is whole, but what it announces is ordered behind it
/// only by acquire_after(). A GPU waits for each acquiring load before it issues the next; these go
/// out together.
template <int kLast = 3>
DOORBELL_INLINE Word16 load16_unordered(const Word16* p) {
#if defined(DOORBELL_ON_CUDA)
  u64 lo, hi;
  asm volatile(
      "{\n\t"
      ".reg .b128 entry;\n\t"
      "ld.relaxed.sys.b128 entry, [%2];\n\t"
      "mov.b128 {%0, %1}, entry;\n\t"
      "}"
      : "=l"(lo), "=l"(hi)
      : "l"(p)
      : "memory");
  return {
      {static_cast<u32>(lo), static_cast<u32>(lo >> 32), static_cast<u32>(hi), static_cast<u32>(hi >> 32)}};
#else
  return load16_acquire<kLast>(p);
#endif
}

/// Orders the earlier load16_unordered() of this thread before its later loads.
DOORBELL_INLINE void acquire_after() {
#if defined(DOORBELL_ON_CUDA)
  asm volatile("fence.acq_rel.sys;" ::: "memory");
#endif
}

/// The device's side of load16_acquire: three dwords, then the one that carries the phase with release.
template <int kLast = 3>
DOORBELL_INLINE void store16_release(Word16* p, const Word16& v) {
  for (int i = 0; i < 4; ++i)
    if (i != kLast) store_relaxed(&p->w[i], v.w[i]);
  store_release(&p->w[kLast], v.w[kLast]);
}

// One release for several entries of a ring: begin16() each, release_all() once, finish16() each. On a CPU,
// where a release costs nothing, finish16() is one itself.

/// All but the last dword of store16_release().
DOORBELL_INLINE void begin16(Word16* p, const Word16& v) {
  for (int i = 0; i < 3; ++i) store_relaxed(&p->w[i], v.w[i]);
}
/// Orders all earlier loads and stores of this thread before its later finish16().
DOORBELL_INLINE void release_all() {
#if defined(DOORBELL_ON_CUDA)
  asm volatile("fence.acq_rel.sys;" ::: "memory");
#elif defined(DOORBELL_ON_HIP)
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "");
#endif
}
/// The same towards threads of the same initiator alone.
DOORBELL_INLINE void release_all_own() {
#if defined(DOORBELL_ON_CUDA)
  asm volatile("fence.acq_rel.gpu;" ::: "memory");
#elif defined(DOORBELL_ON_HIP)
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "agent");
#endif
}
/// The last dword, which carries the phase.
DOORBELL_INLINE void finish16(Word16* p, const Word16& v) {
#if defined(DOORBELL_ON_GPU)
  store_relaxed(&p->w[3], v.w[3]);
#else
  store_release(&p->w[3], v.w[3]);
#endif
}

/// A hint to the CPU that this is a spin loop.
DOORBELL_INLINE void cpu_relax() {
#if !defined(DOORBELL_ON_GPU) && (defined(__x86_64__) || defined(__i386__))
  __builtin_ia32_pause();
#elif !defined(DOORBELL_ON_GPU) && defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Words of wire formats, and payload that travels inside a ring.

/// Bits 31:0.
[[nodiscard]] DOORBELL_INLINE u32 low(u64 v) {
  return static_cast<u32>(v);
}
/// Bits 63:32.
[[nodiscard]] DOORBELL_INLINE u32 high(u64 v) {
  return static_cast<u32>(v >> 32);
}
/// 64 bits of two halves: the reverse of high() and low().
[[nodiscard]] DOORBELL_INLINE u64 join(u32 upper, u32 lower) {
  return static_cast<u64>(upper) << 32 | lower;
}

/// 16 bytes of two words, `first` at the lower address.
[[nodiscard]] DOORBELL_INLINE Word16 words(u64 first, u64 second) {
  return {{low(first), high(first), low(second), high(second)}};
}
/// `a` if `first`, else `b`, selected and not branched to: the lanes of a warp stay together.
[[nodiscard]] DOORBELL_INLINE Word16 pick(bool first, const Word16& a, const Word16& b) {
  return {
      {first ? a.w[0] : b.w[0], first ? a.w[1] : b.w[1], first ? a.w[2] : b.w[2], first ? a.w[3] : b.w[3]}};
}

/// The smallest power of two that is no less than n; n is at most 2^31.
[[nodiscard]] DOORBELL_INLINE constexpr u32 power_of_two_from(u32 n) {
  u32 v = 1;
  while (v < n) v <<= 1;
  return v;
}

// --- inlined payload -------------------------------------------------------------------------------

/// Payload bytes at..at+3 as they lie in memory, zeros behind the end. `at` may lie behind the end.
[[nodiscard]] DOORBELL_INLINE u32 payload_word(const u8* payload, u32 bytes, u32 at) {
  const u32 left = at < bytes ? bytes - at : 0;
  if (left == 0) return 0;
  const u8* const from = payload + at;
  if (left >= 4) {
    u32 v;
#if defined(DOORBELL_ON_GPU)
    // A GPU faults on a misaligned word.
    if ((reinterpret_cast<std::uintptr_t>(from) & 3) == 0) return *reinterpret_cast<const u32*>(from);
    v = u32{from[0]} | u32{from[1]} << 8 | u32{from[2]} << 16 | u32{from[3]} << 24;
#else
    std::memcpy(&v, from, sizeof v);
#endif
    return v;
  }
  u32 v = from[0];
  if (left > 1) v |= u32{from[1]} << 8;
  if (left > 2) v |= u32{from[2]} << 16;
  return v;
}

/// Payload bytes at..at+15, zeros behind the end.
[[nodiscard]] DOORBELL_INLINE Word16 payload_part(const u8* payload, u32 bytes, u32 at) {
#if !defined(DOORBELL_ON_GPU)
  if (at < bytes && bytes - at >= sizeof(Word16)) {
    Word16 v;
    std::memcpy(&v, payload + at, sizeof v);
    return v;
  }
#endif
  return {{payload_word(payload, bytes, at), payload_word(payload, bytes, at + 4),
           payload_word(payload, bytes, at + 8), payload_word(payload, bytes, at + 12)}};
}

}  // namespace doorbell
