// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The work of the responder and the wire on one request of any queue format: checks of keys and rights,
// movement of data, atomics.
#pragma once

#include "model/count.hpp"
#include "model/fault_draw.hpp"
#include "rdma/model/memory_keys.hpp"
#include "rdma/model/qp.hpp"

namespace doorbell::rdma {

/// Bytes in memory that the NIC has looked up. Has no initialisers, because every request has a list of them.
struct Segment {
  model::DmaPlace place;
  u32 bytes;
  const MemoryEntry* memory;  ///< null for inlined payload
};

struct SegmentList {
  static constexpr u32 kMax = DecodedWqe::kMaxSges;
  u32 count = 0;
  bool gpu = false;
  Segment list[kMax];
  DOORBELL_INLINE void add(const Segment& s) {
    list[count++] = s;
    gpu = gpu || s.place.gpu;
  }
};

/// The pause for a code of min_rnr_timer.
[[nodiscard]] DOORBELL_HD inline u64 rnr_timer_ns(u32 code) {
  constexpr u32 kHundredthsOfMs[32] = {65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,   32,
                                       48,    64,   96,   128,  192,  256,   384,   512,   768,   1024, 1536,
                                       2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};
  return u64{kHundredthsOfMs[code & 31]} * 10'000;
}

/// Bytes on the wire for a message of `packets` packets, RoCEv2 over IPv4.
[[nodiscard]] DOORBELL_HD inline u64 wire_bytes(Op op, u32 bytes, u32 packets) {
  // Ethernet preamble and gap 20, header 14, IPv4 20, UDP 8, base transport header 12, ICRC 4, FCS 4.
  constexpr u32 kPacketOverhead = 82;
  constexpr u32 kRemoteHeader = 16;  // address, key, length
  constexpr u32 kAtomicHeader = 28;
  constexpr u32 kAckHeader = 4;
  constexpr u32 kImmediate = 4;
  u64 n = u64{packets} * kPacketOverhead + bytes;
  if (op == Op::read) return n + u64{packets} * kAckHeader + kPacketOverhead + kRemoteHeader;
  if (is_atomic(op)) return n + kAtomicHeader + kPacketOverhead + kAckHeader + kAtomicBytes;
  if (op == Op::write || op == Op::write_imm) n += kRemoteHeader;
  if (has_imm(op)) n += kImmediate;
  return n;
}

/// The right that a request needs at the responder.
[[nodiscard]] DOORBELL_INLINE u32 right_for(Op op) {
  if (is_atomic(op)) return access::remote_atomic;
  return op == Op::read ? access::remote_read : access::remote_write;
}

/// One for each engine. `Mover` moves bytes where the engine runs:
///   copy(to, from, bytes)   false: it cannot; the result is as if each copy ended before the next begins
///   copy_damaged(to, from, bytes, at)  the same, with one byte changed
///   atomic(at, adds, operand, compare, old)
///   pending(), settle()     whether copies are under way; their end
///   full()                  whether so many are that the round is to end
/// `Faults` has count(fault).
template <class Mover, class Faults>
class Transport {
 public:
  /// `for_mover`: what the Mover is made of.
  template <class... ForMover>
  DOORBELL_HD Transport(const MemoryKeys& keys, Faults& faults, ForMover&&... for_mover)
      : keys_(keys), faults_(faults), mover_(for_mover...) {}

  /// Looks up the buffers of a request or of a receive. `written`: the NIC will write, so local_write is
  /// required.
  [[nodiscard]] DOORBELL_GPU_NOINLINE Status find_local(const DecodedWqe& d, bool written, SegmentList& out) {
    for (u32 i = 0; i < d.sges; ++i) {
      const DecodedWqe::Sge& sge = d.sge[i];
      if (sge.bytes == 0) continue;
      const MemoryEntry* m = keys_.local(sge.lkey);
      if (m == nullptr || !m->lets(sge.address, sge.bytes, written ? access::local_write : 0))
        return violation(Status::local_protection);
      out.add({m->at(sge.address), sge.bytes, m});
    }
    return Status::ok;
  }
  /// Checks whether the responder lets `wr` reach its memory, and stores the place in `out`.
  [[nodiscard]] DOORBELL_GPU_NOINLINE Status find_remote(const WorkRequest& wr, const Qp& responder,
                                                         Segment& out) {
    const u32 right = right_for(wr.op);
    if ((responder.options.access & right) == 0) return violation(Status::remote_access);
    if (wr.bytes == 0) return Status::ok;  // neither key nor address is checked
    if (is_atomic(wr.op) && wr.remote % kAtomicBytes != 0) return violation(Status::remote_invalid_request);
    const MemoryEntry* m = keys_.remote(wr.rkey);
    if (m == nullptr || !m->lets(wr.remote, wr.bytes, right)) return violation(Status::remote_access);
    out = {m->at(wr.remote), wr.bytes, m};
    return Status::ok;
  }

  /// Moves `bytes` bytes and applies the faults that change data. False: the mover cannot move them.
  [[nodiscard]] DOORBELL_GPU_NOINLINE bool move(const SegmentList& to, const SegmentList& from, u32 bytes,
                                                const model::InjectedFault& injected) {
    if (injected.fault != model::Fault::none && bytes > 0) [[unlikely]]
      return move_with_fault(to, from, bytes, injected);
    return move(to, from, bytes);
  }
  /// Reads, changes and writes 8 bytes; no other atomic of this device comes between.
  [[nodiscard]] DOORBELL_HD bool atomic(const WorkRequest& wr, const Segment& at, u64& old) {
    return mover_.atomic(at.place, wr.op == Op::fetch_add, wr.operand, wr.compare, old);
  }
  /// True if a copy that move() started needs settle().
  [[nodiscard]] DOORBELL_INLINE bool pending() const { return mover_.pending(); }
  /// True when the round is to end before further requests are executed.
  [[nodiscard]] DOORBELL_INLINE bool full() const { return mover_.full(); }
  /// False if what has to move the bytes did not answer.
  [[nodiscard]] DOORBELL_INLINE bool settle() { return mover_.settle(); }
  [[nodiscard]] DOORBELL_INLINE u64 violations() const { return violations_.value(); }
  [[nodiscard]] DOORBELL_INLINE Mover& mover() { return mover_; }
  [[nodiscard]] DOORBELL_INLINE const MemoryKeys& keys() const { return keys_; }

 private:
  DOORBELL_HD Status violation(Status s) {
    violations_ += 1;
    return s;
  }
  [[nodiscard]] DOORBELL_GPU_NOINLINE bool move(const SegmentList& to, const SegmentList& from, u32 bytes) {
    if (to.count == 1 && from.count == 1) [[likely]]
      return mover_.copy(to.list[0].place, from.list[0].place, bytes);
    return side_by_side(to, from, bytes, [this](const model::DmaPlace& t, const model::DmaPlace& f, u32 n) {
      return mover_.copy(t, f, n);
    });
  }
  [[nodiscard]] DOORBELL_GPU_NOINLINE bool move_with_fault(const SegmentList& to, const SegmentList& from,
                                                           u32 bytes, const model::InjectedFault& injected) {
    switch (injected.fault) {
      case model::Fault::stale:
        faults_.count(injected.fault);
        return true;
      case model::Fault::misplace: {
        SegmentList other;
        if (!displaced(to, bytes, other)) return move(to, from, bytes);
        faults_.count(injected.fault);
        return mover_.misplaced([&] { return move(other, from, bytes); });
      }
      case model::Fault::corrupt: {
        faults_.count(injected.fault);
        const u64 bad = injected.position(bytes);
        u64 at = 0;
        return side_by_side(to, from, bytes, [&](const model::DmaPlace& t, const model::DmaPlace& f, u32 n) {
          const bool here = bad - at < n;  // behind `bad` the difference wraps
          const bool ok = here ? mover_.copy_damaged(t, f, n, bad - at) : mover_.copy(t, f, n);
          at += n;
          return ok;
        });
      }
      default:
        return move(to, from, bytes);
    }
  }

  /// Walks two lists side by side: calls fn(to, from, bytes) for each piece that lies within one segment of
  /// both.
  template <class Fn>
  [[nodiscard]] DOORBELL_GPU_NOINLINE static bool side_by_side(const SegmentList& to, const SegmentList& from,
                                                               u32 bytes, Fn&& fn) {
    u32 t = 0, f = 0, t_done = 0, f_done = 0;
    while (bytes > 0) {
      if (t == to.count || f == from.count) return false;
      u32 n = bytes;
      if (to.list[t].bytes - t_done < n) n = to.list[t].bytes - t_done;
      if (from.list[f].bytes - f_done < n) n = from.list[f].bytes - f_done;
      if (n > 0 && !fn(to.list[t].place + t_done, from.list[f].place + f_done, n)) return false;
      bytes -= n;
      if ((t_done += n) == to.list[t].bytes) ++t, t_done = 0;
      if ((f_done += n) == from.list[f].bytes) ++f, f_done = 0;
    }
    return true;
  }
  /// Makes a list for the same bytes in another place of the same memory: `bytes` further on, or `bytes`
  /// before.
  [[nodiscard]] DOORBELL_GPU_NOINLINE static bool displaced(const SegmentList& to, u32 bytes,
                                                            SegmentList& out) {
    if (to.count != 1 || to.list[0].memory == nullptr) return false;
    const Segment& s = to.list[0];
    const MemoryEntry& m = *s.memory;
    const auto other =
        model::InjectedFault::elsewhere(static_cast<u64>(s.place.address - m.base.address), bytes, m.bytes);
    if (!other) return false;
    out.add({m.base + *other, bytes, s.memory});
    return true;
  }

  MemoryKeys keys_;
  Faults& faults_;
  Mover mover_;
  model::Count violations_;
};

}  // namespace doorbell::rdma
