// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// What the wire formats have in common below the level of fields: words, inlined payload, error codes.
#pragma once

#include <doorbell/rdma/format.hpp>

namespace doorbell::rdma {

[[nodiscard]] DOORBELL_INLINE u32 low(u64 v) {
  return static_cast<u32>(v);
}
[[nodiscard]] DOORBELL_INLINE u32 high(u64 v) {
  return static_cast<u32>(v >> 32);
}
[[nodiscard]] DOORBELL_INLINE u64 join(u32 upper, u32 lower) {
  return static_cast<u64>(upper) << 32 | lower;
}

[[nodiscard]] DOORBELL_INLINE Word16 words(u64 first, u64 second) {
  return {{low(first), high(first), low(second), high(second)}};
}
[[nodiscard]] DOORBELL_INLINE bool is_send(Op op) {
  return op == Op::send || op == Op::send_imm;
}
/// Each dword in the other byte order.
[[nodiscard]] DOORBELL_INLINE Word16 swapped(const Word16& v) {
  return {{be32(v.w[0]), be32(v.w[1]), be32(v.w[2]), be32(v.w[3])}};
}
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

// --- opcodes and error codes
// -----------------------------------------------------------------------------------

/// A vendor's opcodes in the order of Op, a byte each.
struct OpTable {
  u64 packed = 0;

  template <class... Codes>
  [[nodiscard]] static constexpr OpTable of(Codes... codes) {
    static_assert(sizeof...(Codes) == kOps);
    OpTable t;
    u32 at = 0;
    ((t.packed |= static_cast<u64>(codes) << (8 * at++)), ...);
    return t;
  }
  [[nodiscard]] DOORBELL_INLINE constexpr u32 code(Op op) const {
    return static_cast<u32>(packed >> (8 * static_cast<u32>(op))) & 0xff;
  }
  /// False when no operation has this code.
  [[nodiscard]] DOORBELL_INLINE bool find(u32 code_, Op& op) const {
    for (u32 i = 0; i < kOps; ++i) {
      op = static_cast<Op>(i);
      if (code(op) == code_) return true;
    }
    return false;
  }
  static constexpr u32 kOps = 7;
};

/// A vendor's consecutive error codes from `first` on, translated to verbs statuses: five bits each, so
/// that a look-up is a shift and no memory access.
struct StatusTable {
  u64 packed = 0;
  u32 first = 0;
  u32 count = 0;

  template <class... S>
  [[nodiscard]] static constexpr StatusTable of(u32 first_code, S... statuses) {
    static_assert(sizeof...(S) <= 12);
    StatusTable t;
    t.first = first_code;
    ((t.packed |= static_cast<u64>(statuses) << (5 * t.count++)), ...);
    return t;
  }
  /// Codes that nobody has defined are general errors.
  [[nodiscard]] DOORBELL_INLINE constexpr Status status(u32 code) const {
    const u32 i = code - first;
    return i < count ? static_cast<Status>(packed >> (5 * i) & 31) : Status::general;
  }
  /// The first code that means `s`, or `otherwise`.
  [[nodiscard]] DOORBELL_INLINE constexpr u32 code(Status s, u32 otherwise) const {
    for (u32 c = first; c < first + count; ++c)
      if (status(c) == s) return c;
    return otherwise;
  }
};

// --- decoding --------------------------------------------------------------------------------------

/// Adds a buffer to what was decoded, unless it is empty; false when there are too many of them.
[[nodiscard]] DOORBELL_INLINE bool add_sge(DecodedWqe& d, u64 address, u32 bytes, u32 lkey) {
  if (bytes == 0) return true;
  if (d.sges == DecodedWqe::kMaxSges) return false;
  d.sge[d.sges] = {address, bytes, lkey};
  ++d.sges;
  return true;
}

/// Ends a list of buffers: their bytes, more than any message may have when those overflow. The request's
/// own buffer is the first one.
DOORBELL_INLINE void finish_sges(DecodedWqe& d) {
  u64 sum = 0;
  for (u32 i = 0; i < d.sges; ++i) sum += d.sge[i].bytes;
  d.request.bytes = sum > kMaxMessage ? kMaxMessage + 1 : static_cast<u32>(sum);
  if (d.sges == 0) return;
  d.request.local = d.sge[0].address;
  d.request.lkey = d.sge[0].lkey;
}

/// A request that every format can say: the length within limits, an atomic with its one result of
/// eight bytes, nothing inlined where data comes back.
[[nodiscard]] DOORBELL_INLINE bool plausible(const DecodedWqe& d) {
  const WorkRequest& wr = d.request;
  if (wr.bytes > kMaxMessage || (wr.inlined && returns_data(wr.op))) return false;
  return !is_atomic(wr.op) || (d.sges == 1 && d.sge[0].bytes == kAtomicBytes);
}

// --- completions -----------------------------------------------------------------------------------

/// One part of a CQE; the consumer reads the part with the ownership bit first.
DOORBELL_INLINE void store_cqe_part(Word16* to, const Word16& v) {
  for (int i = 0; i < 4; ++i) store_relaxed(&to->w[i], v.w[i]);
}

/// What a CQE names its queue pair by. Zero marks a stale entry (bnxt), so it is never written.
[[nodiscard]] DOORBELL_INLINE u64 handle_of(const CqeFields& f) {
  return f.qp_handle != 0 ? f.qp_handle : f.qpn;
}

/// Gives consumed CQEs back. On a GPU relaxed: the entries were read, not written, and their values are
/// already in this thread's hands. A release is free on x86 and lets a race detector see the order.
DOORBELL_INLINE void give_back(u32* record, u32 v) {
#if defined(DOORBELL_ON_GPU)
  store_relaxed(record, v);
#else
  store_release(record, v);
#endif
}
DOORBELL_INLINE void give_back64(u64* reg, u64 v) {
#if defined(DOORBELL_ON_GPU)
  store64_relaxed(reg, v);
#else
  store64_release(reg, v);
#endif
}

}  // namespace doorbell::rdma
