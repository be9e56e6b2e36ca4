// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The common parts of the RDMA formats below the level of fields: byte order, opcodes, error codes.
#pragma once

#include <doorbell/rdma/format.hpp>
#include <doorbell/words.hpp>

namespace doorbell::rdma {

[[nodiscard]] DOORBELL_INLINE bool is_send(Op op) {
  return op == Op::send || op == Op::send_imm;
}
/// Each dword in the other byte order.
[[nodiscard]] DOORBELL_INLINE Word16 swapped(const Word16& v) {
  return {{be32(v.w[0]), be32(v.w[1]), be32(v.w[2]), be32(v.w[3])}};
}

// --- opcodes and error codes
// -----------------------------------------------------------------------------------

/// Puts `values` side by side into one word, `bits` each, so that a look-up is a shift and no memory access.
template <class... V>
[[nodiscard]] DOORBELL_INLINE constexpr u64 packed(u32 bits, V... values) {
  u64 all = 0;
  u32 shift = 0;
  ((all |= static_cast<u64>(values) << shift, shift += bits), ...);
  return all;
}

/// A vendor's opcodes in the order of Op, a byte each.
template <u32... kCodes>
struct OpTable {
  static constexpr u32 kOps = 7;
  static_assert(sizeof...(kCodes) == kOps && ((kCodes <= 0xff) && ...));
  static constexpr u64 kPacked = packed(8, kCodes...);

  [[nodiscard]] DOORBELL_INLINE static u32 code(Op op) {
    return static_cast<u32>(kPacked >> (8 * static_cast<u32>(op))) & 0xff;
  }
  /// False when no operation has this code.
  [[nodiscard]] DOORBELL_INLINE static bool find(u32 wanted, Op& op) {
    for (u32 i = 0; i < kOps; ++i) {
      op = static_cast<Op>(i);
      if (code(op) == wanted) return true;
    }
    return false;
  }
};

/// A vendor's consecutive error codes from kFrom on, translated to verbs statuses.
template <u32 kFrom, Status... kStatuses>
struct StatusTable {
  static constexpr u32 kFirst = kFrom;
  static constexpr u32 kCount = sizeof...(kStatuses);
  static_assert(kCount <= 12 && ((static_cast<u32>(kStatuses) <= 31) && ...));
  static constexpr u64 kPacked = packed(5, kStatuses...);

  /// Codes that the vendor does not define are general errors.
  [[nodiscard]] DOORBELL_INLINE static Status status(u32 code) {
    const u32 i = code - kFirst;
    return i < kCount ? static_cast<Status>(kPacked >> (5 * i) & 31) : Status::general;
  }
  /// The first code that means `s`, or `otherwise`.
  [[nodiscard]] DOORBELL_INLINE static u32 code(Status s, u32 otherwise) {
    for (u32 c = kFirst; c < kFirst + kCount; ++c)
      if (status(c) == s) return c;
    return otherwise;
  }
};

// --- decoding --------------------------------------------------------------------------------------

/// Adds a buffer to a decoded WQE, unless the buffer is empty; false if there are too many buffers.
[[nodiscard]] DOORBELL_INLINE bool add_sge(DecodedWqe& d, u64 address, u32 bytes, u32 lkey) {
  if (bytes == 0) return true;
  if (d.sges == DecodedWqe::kMaxSges) return false;
  d.sge[d.sges] = {address, bytes, lkey};
  ++d.sges;
  return true;
}

/// Ends a list of buffers: adds up their bytes. On overflow the sum is more than any message may have. The
/// request's own buffer is the first one.
DOORBELL_INLINE void finish_sges(DecodedWqe& d) {
  u64 sum = 0;
  for (u32 i = 0; i < d.sges; ++i) sum += d.sge[i].bytes;
  d.request.bytes = sum > kMaxMessage ? kMaxMessage + 1 : static_cast<u32>(sum);
  if (d.sges == 0) return;
  d.request.local = d.sge[0].address;
  d.request.lkey = d.sge[0].lkey;
}

/// Checks what all formats require: a length within limits, eight bytes for an atomic, and nothing inlined if
/// data comes back.
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

/// The value that names the queue pair in a CQE. Zero marks a stale entry (bnxt), so it is never written.
[[nodiscard]] DOORBELL_INLINE u64 handle_of(const CqeFields& f) {
  return f.qp_handle != 0 ? f.qp_handle : f.qpn;
}

}  // namespace doorbell::rdma
