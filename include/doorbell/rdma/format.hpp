// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The requirements on a NIC vendor's wire format that is the template parameter of a QueuePair and of the NIC
// model. A format is a struct of static functions without state; each format has a file of its own.
#pragma once

#include <doorbell/config.hpp>
#include <doorbell/memory_order.hpp>
#include <doorbell/rdma/types.hpp>

#include <concepts>

namespace doorbell::rdma {

/// The addresses of a queue pair's parts, as the initiator reaches them. Plain data, which is passed to
/// kernels. A pointer that a format does not use is null.
struct QueuePairMemory {
  Word16* sq = nullptr;             ///< the send ring
  u64* sq_table = nullptr;          ///< bnxt: the MSN table behind the ring
  Word16* rq = nullptr;             ///< the receive ring
  Word16* cq = nullptr;             ///< the send queue's completions
  const Word16* recv_cq = nullptr;  ///< the receive queue's completions
  /// In memory that device and initiator share. mlx5: the QP's doorbell record {receive, send}; ernic: the
  /// QP's ring state {tx tail, tx head, rx tail, rx head}.
  u32* qp_record = nullptr;
  /// mlx5: a CQ's doorbell record {consumer, arm}; ernic: a CQ's ring state, the pair at 8 {.., .., tail,
  /// head}.
  u32* cq_record = nullptr;
  u32* recv_cq_record = nullptr;  ///< likewise
  /// @name Doorbell registers; the same one may serve several queues on hardware
  /// @{
  u64* sq_doorbell = nullptr;
  u64* rq_doorbell = nullptr;
  u64* cq_doorbell = nullptr;
  u64* recv_cq_doorbell = nullptr;
  /// @}
  /// The initiator's own records, `track_entries` of them: which requests a CQE's mark finishes.
  Word16* track = nullptr;
  u32 sq_units = 0;         ///< of the format's unit
  u32 sq_requests = 0;      ///< requests outstanding at most
  u32 rq_entries = 0;       ///< a power of two
  u32 cq_entries = 0;       ///< likewise
  u32 recv_cq_entries = 0;  ///< likewise
  u32 track_entries = 0;    ///< a power of two above sq_requests (Mark::serial) or sq_units (Mark::unit)
  u32 qpn = 0;              ///< queue pair number, 24 bits
  /// The name of the queue pair in doorbells, if that is not its number (ernic); the device chooses it.
  u32 handle = 0;
  u32 cqn = 0;         ///< the number of `cq` in doorbells
  u32 recv_cqn = 0;    ///< the number of `recv_cq` in doorbells
  u32 mtu = 1024;      ///< of the connection, in bytes
  u32 max_inline = 0;  ///< bytes that the send ring has room for in each request
};

/// To or from the byte order on the wire.
[[nodiscard]] DOORBELL_INLINE u32 be32(u32 v) {
#if defined(DOORBELL_ON_GPU)
  return __byte_perm(v, 0, 0x0123);
#else
  return __builtin_bswap32(v);
#endif
}
/// The same of 64 bits.
[[nodiscard]] DOORBELL_INLINE u64 be64(u64 v) {
  return static_cast<u64>(be32(static_cast<u32>(v))) << 32 | be32(static_cast<u32>(v >> 32));
}

/// Reads 16-byte part `i` of a WQE on the device's side.
struct PartReader {
  const Word16* ring = nullptr;  ///< part 0 of slot 0
  u32 parts = 1;                 ///< of the whole ring; a WQE may wrap around its end
  u32 first = 0;                 ///< the part of the ring where the WQE begins
  /// Part `i`, as it is in memory now.
  [[nodiscard]] DOORBELL_INLINE Word16 operator()(u32 i) const {
    const u32 at = first + i;
    return load16(ring + (at >= parts ? at - parts : at));  // a GPU's cache may hold what was there before
  }
};

/// A vendor's queue format: Mlx5, Bnxt, IonicFormat, Ernic. A part is 16 bytes of a ring, a unit so many
/// parts as positions count by.
///
/// Its shape:
/// - `kName`: the provider's name
/// - `kUnitParts`: parts a ring unit: 4, 1, 4, 8
/// - `kReceiveParts`: parts an RQ entry of one SGE takes
/// - `kCqeParts`: parts of a CQE: 4, 2, 2, 4
/// - `kMark`: the meaning of Completion::mark
/// - `kCqByIndex`: validity by ring indices in cq_record (ernic), not by a bit
/// - `kMaxInline`: the most that one WQE can carry; 0: no inline layout
/// - `kCqCredits`: the CQ's consumer index must be rung before it runs out
/// - `sq_units(requests, max_inline)`: ring units for so many outstanding requests with up to so many inlined
///   bytes each, margins included
/// - `sq_reserve(max_inline)`: units of these that must stay free, so that a full ring differs from an empty
/// one
/// - `rq_entries(receives)`, `cq_entries(completions)`: entries for so many
///
/// The initiator's side, which QueuePair calls:
/// - `units(request)`: ring units that the request takes
/// - `parts(request)`: parts that must be written, <= units * kUnitParts
/// - `part(request, position, memory, p)`: part p of the WQE; unused parts and padding are zero
/// - `kHasTable`, `table_entry(request, position, memory)`, `table_index(position, memory)`: the MSN table's
///   entry and its index, for formats that have one
/// - `sq_doorbell_word(request, position, memory)`: the word of the last posted request that ring_sq() needs
///   (mlx5: the first 8 bytes of its WQE; else 0)
/// - `ring_sq(memory, next, word)`: makes everything before `next` visible to the device: first the records,
/// then
///   the register. One lane calls it. Every store is a release: it orders the entries before the record, and
///   the record before the register
/// - `receive_part(receive, position, memory, p)`, `ring_rq(memory, next)`: the same for receives
/// - `kCqePartA`, `kCqePartB`: the two parts of a CQE that matter; B carries the ownership bit and is read
/// first
///   (acquire)
/// - `kCqeOwnerWord`: the dword of part B that carries it
/// - `kRequestInPartB`: part B alone describes a request's completion
/// - `kFirstReceiveMark`: the mark of the first receive; they count up, modulo the RQ
/// - `mark_modulo(memory)`: of requests, where marks are serials; 0: 2^32
/// - `cqe_initial(part)`: the first contents of a CQ, the same in each entry
/// - `cqe_valid(b, pass)`: of part B in pass `pass` of the ring (0 = first)
/// - `decode_cqe(a, b)`: parts A and B; with a third argument, part `kCqePartC`, where a format has that
/// - `ring_cq(record, register, position, cqn)`: shows the device that the consumer has taken the entries
/// before
///   the position's `running`; `pass` is its wraps. One lane calls it
///
/// The device's side, which the NIC model calls:
/// - `decode_wqe(reader, pass)`: `pass` of the ring, for ownership hints
/// - `decode_receive(reader)`: of an RQ entry
/// - `encode_cqe(fields, pass, out)`: kCqeParts parts for that pass; part B is stored last
/// - `decode_doorbell(word)`: of a doorbell register
template <class F>
concept WireFormat = requires(const WorkRequest& wr, const ReceiveRequest& rr, const RingPosition& at,
                              const QueuePairMemory& m, const Word16& w, const CqeFields& fields,
                              const PartReader& reader, Word16* out, u32 n, u64 word) {
  { F::kName } -> ConvertibleTo<const char*>;

  // --- shape -----------------------------------------------------------------------------------------
  { F::kUnitParts } -> ConvertibleTo<u32>;
  { F::kReceiveParts } -> ConvertibleTo<u32>;
  { F::kCqeParts } -> ConvertibleTo<u32>;
  { F::kMark } -> ConvertibleTo<Mark>;
  { F::kCqByIndex } -> ConvertibleTo<bool>;
  { F::kMaxInline } -> ConvertibleTo<u32>;
  { F::kCqCredits } -> ConvertibleTo<bool>;
  { F::sq_units(n, n) } -> std::same_as<u32>;
  { F::sq_reserve(n) } -> std::same_as<u32>;
  { F::rq_entries(n) } -> std::same_as<u32>;
  { F::cq_entries(n) } -> std::same_as<u32>;

  // --- the initiator's side ----------------------------------------------------------------------------
  { F::units(wr) } -> std::same_as<u32>;
  { F::parts(wr) } -> std::same_as<u32>;
  { F::part(wr, at, m, n) } -> std::same_as<Word16>;
  { F::kHasTable } -> ConvertibleTo<bool>;
  { F::table_entry(wr, at, m) } -> std::same_as<u64>;
  { F::table_index(at, m) } -> std::same_as<u32>;
  { F::sq_doorbell_word(wr, at, m) } -> std::same_as<u64>;
  { F::ring_sq(m, at, word) } -> std::same_as<void>;
  { F::receive_part(rr, at, m, n) } -> std::same_as<Word16>;
  { F::ring_rq(m, at) } -> std::same_as<void>;
  { F::kCqePartA } -> ConvertibleTo<u32>;
  { F::kCqePartB } -> ConvertibleTo<u32>;
  { F::kCqeOwnerWord } -> ConvertibleTo<int>;
  { F::kRequestInPartB } -> ConvertibleTo<bool>;
  { F::kFirstReceiveMark } -> ConvertibleTo<u32>;
  { F::mark_modulo(m) } -> std::same_as<u32>;
  { F::cqe_initial(n) } -> std::same_as<Word16>;
  { F::cqe_valid(w, n) } -> std::same_as<bool>;
  { F::decode_cqe(w, w) } -> std::same_as<Completion>;
  { F::ring_cq(out == nullptr ? nullptr : &n, &word, at, n) } -> std::same_as<void>;

  // --- the device's side -------------------------------------------------------------------------------
  { F::decode_wqe(reader, n) } -> std::same_as<DecodedWqe>;
  { F::decode_receive(reader) } -> std::same_as<DecodedWqe>;
  { F::encode_cqe(fields, n, out) } -> std::same_as<void>;
  { F::decode_doorbell(word) } -> std::same_as<DoorbellValue>;
};

// The common parts of the RDMA formats below the level of fields: byte order, opcodes, error codes.

/// True if the request names no remote memory.
[[nodiscard]] DOORBELL_INLINE bool is_send(Op op) {
  return op == Op::send || op == Op::send_imm;
}
/// Each dword in the other byte order.
[[nodiscard]] DOORBELL_INLINE Word16 swapped(const Word16& v) {
  return {{be32(v.w[0]), be32(v.w[1]), be32(v.w[2]), be32(v.w[3])}};
}

// --- opcodes and error codes ---------------------------------------------------------------------------

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
  static constexpr u32 kOps = 7;  ///< of Op
  static_assert(sizeof...(kCodes) == kOps && ((kCodes <= 0xff) && ...));
  static constexpr u64 kPacked = packed(8, kCodes...);  ///< the table in one word

  /// The vendor's opcode.
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
  static constexpr u32 kFirst = kFrom;                 ///< the first code
  static constexpr u32 kCount = sizeof...(kStatuses);  ///< codes with a meaning
  static_assert(kCount <= 12 && ((static_cast<u32>(kStatuses) <= 31) && ...));
  static constexpr u64 kPacked = packed(5, kStatuses...);  ///< the table in one word

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
