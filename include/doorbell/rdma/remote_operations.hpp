// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// One-sided and two-sided operations for kernels and CPU threads: put, get, send and atomics on a
// QueuePair, with completions that are waited for by ticket and deadlines on every wait.
//
//   rdma::QueuePair<GpuWarp, rdma::Mlx5> qp(state);
//   rdma::RemoteOperations<GpuWarp, rdma::Mlx5, Clock> remote(qp, timeout_ticks);
//   remote.put_nbi(warp, {remote, rkey}, {local, lkey}, 4096);   // the whole warp, one operation
//   remote.put_nbi_lanes(warp, mine, to, from, 64);              // each lane its own, one doorbell
//   if (remote.quiet(warp) != rdma::Status::ok) ...
//   state = remote.state();
//
// Sizes are bytes, 0..kMaxMessage. Addresses are IOVAs. Keys are those of registered memory and are given
// with each operation, so one queue pair can use any number of regions.
// `state.memory` must stay in place as long as both objects exist.
// Thread rule: that of QueuePair: one thread or one warp owns it, every call is collective.
// Errors: nothing throws or traps. A request that failed, or a wait that passed its deadline, is the
// returned status; after a failed request the queue pair is in its error state and takes no more.
#pragma once

#include <doorbell/rdma/queue_pair.hpp>

namespace doorbell::rdma {

/// Memory of the other end.
struct RemoteAddress {
  u64 address = 0;  ///< IOVA there
  u32 rkey = 0;     ///< that the other end has told
};

/// Memory of this end.
struct LocalAddress {
  u64 address = 0;  ///< IOVA
  u32 lkey = 0;     ///< of its registration
  /// The same bytes in the initiator's own addresses; needed only for inlined data.
  const u8* bytes = nullptr;
};

/// Stands for all requests up to and including one; a count modulo 2^32.
using Ticket = u32;

/// Operations on a queue pair, for kernels and CPU threads; the head of remote_operations.hpp has the rules.
/// `Clock::now()` gives ticks (NsClock: nanoseconds). `timeout_ticks` bounds every wait.
template <class Warp, WireFormat F, class Clock>
class RemoteOperations {
 public:
  using Queue = QueuePair<Warp, F>;  ///< of which it holds one

  /// Goes on where `queue` is; that object must not be used beside this one.
  DOORBELL_INLINE RemoteOperations(const Queue& queue, u64 timeout_ticks)
      : qp_(queue), timeout_ticks_(timeout_ticks) {}
  /// For a later kernel, or to count receives with QueuePair::take_receives().
  [[nodiscard]] DOORBELL_INLINE QueuePairState state() const { return qp_.state(); }
  /// Its counts: posted, completed, errors of the device.
  [[nodiscard]] DOORBELL_INLINE const Queue& queue() const { return qp_; }
  /// The first status other than ok of any request or receive.
  [[nodiscard]] DOORBELL_INLINE Status status() const { return status_; }

  /// @name One operation of the whole warp, without waiting
  /// After the ticket has completed, the data of `from` may be reused, and the result of a get or atomic may
  /// be read. Waits only for room in the queue.
  /// @{

  /// `bytes` of this end to the other's memory.
  DOORBELL_INLINE Ticket put_nbi(const Warp& warp, RemoteAddress to, LocalAddress from, u32 bytes) {
    return post_one(warp, transfer(Op::write, to, from, bytes));
  }
  /// The same; a receive of the other end completes with `imm`.
  DOORBELL_INLINE Ticket put_nbi_imm(const Warp& warp, RemoteAddress to, LocalAddress from, u32 bytes,
                                     u32 imm) {
    WorkRequest r = transfer(Op::write_imm, to, from, bytes);
    r.imm = imm;
    return post_one(warp, r);
  }
  /// `bytes` of the other end to this one's memory.
  DOORBELL_INLINE Ticket get_nbi(const Warp& warp, LocalAddress to, RemoteAddress from, u32 bytes) {
    return post_one(warp, transfer(Op::read, from, to, bytes));
  }
  /// `bytes` to the buffer that the other end has posted with post_recv().
  DOORBELL_INLINE Ticket send(const Warp& warp, LocalAddress from, u32 bytes) {
    return post_one(warp, transfer(Op::send, {}, from, bytes));
  }
  /// Adds to 8 bytes of the other end, and writes their old value to `result`, 8 bytes.
  DOORBELL_INLINE Ticket atomic_fetch_add(const Warp& warp, LocalAddress result, RemoteAddress target,
                                          u64 addend) {
    WorkRequest r = transfer(Op::fetch_add, target, result, kAtomicBytes);
    r.operand = addend;
    return post_one(warp, r);
  }
  /// Replaces 8 bytes of the other end by `swap` if they are `compare`; their old value likewise.
  DOORBELL_INLINE Ticket atomic_compare_swap(const Warp& warp, LocalAddress result, RemoteAddress target,
                                             u64 compare, u64 swap) {
    WorkRequest r = transfer(Op::compare_swap, target, result, kAtomicBytes);
    r.compare = compare;
    r.operand = swap;
    return post_one(warp, r);
  }
  /// Posts a buffer for one incoming send, or with no bytes a token for a write with immediate. False: no
  /// room.
  DOORBELL_INLINE bool post_recv(const Warp& warp, LocalAddress to, u32 bytes) {
    if (qp_.receive_room() == 0) return false;
    qp_.post_receives(warp, 1, [&](u32) { return ReceiveRequest{to.address, to.lkey, bytes}; });
    qp_.ring_receives(warp);
    return true;
  }

  /// @}
  /// @name One operation a lane, one reservation and one doorbell
  /// Lanes with `wanted` false take no part. Only the last operation of the call asks for a completion.
  /// @{

  DOORBELL_INLINE Ticket put_nbi_lanes(const Warp& warp, bool wanted, RemoteAddress to, LocalAddress from,
                                       u32 bytes) {
    return post_lanes(warp, wanted, transfer(Op::write, to, from, bytes));
  }
  DOORBELL_INLINE Ticket put_nbi_imm_lanes(const Warp& warp, bool wanted, RemoteAddress to, LocalAddress from,
                                           u32 bytes, u32 imm) {
    WorkRequest r = transfer(Op::write_imm, to, from, bytes);
    r.imm = imm;
    return post_lanes(warp, wanted, r);
  }
  DOORBELL_INLINE Ticket get_nbi_lanes(const Warp& warp, bool wanted, LocalAddress to, RemoteAddress from,
                                       u32 bytes) {
    return post_lanes(warp, wanted, transfer(Op::read, from, to, bytes));
  }
  DOORBELL_INLINE Ticket atomic_fetch_add_lanes(const Warp& warp, bool wanted, LocalAddress result,
                                                RemoteAddress target, u64 addend) {
    WorkRequest r = transfer(Op::fetch_add, target, result, kAtomicBytes);
    r.operand = addend;
    return post_lanes(warp, wanted, r);
  }

  /// @}
  /// @name Waiting
  /// @{

  /// Takes completions without waiting; returns the ticket of the last finished request.
  DOORBELL_INLINE Ticket poll(const Warp& warp) {
    const auto p = qp_.poll(warp, qp_.posted() - qp_.completed());
    note(warp, p);
    return qp_.completed();
  }
  /// Waits until everything up to `ticket` has completed. Returns ok, the first error, or response_timeout.
  [[nodiscard]] DOORBELL_INLINE Status wait(const Warp& warp, Ticket ticket) {
    const u64 begin = now(warp);
    while (static_cast<i32>(qp_.completed() - ticket) < 0) {
      if (static_cast<i32>(poll(warp) - ticket) >= 0) break;
      if (now(warp) - begin > timeout_ticks_) {
        if (status_ == Status::ok) status_ = Status::response_timeout;
        break;
      }
    }
    return status_;
  }
  /// Waits until everything posted has completed.
  [[nodiscard]] DOORBELL_INLINE Status quiet(const Warp& warp) { return wait(warp, qp_.posted()); }

  /// A receive that has completed.
  struct Received {
    Status status = Status::ok;  ///< response_timeout: none has
    u32 bytes = 0;               ///< of the message
    u32 imm = 0;                 ///< the sender's number
    bool with_imm = false;       ///< there was one
  };
  /// Waits until the next receive has completed; receives complete in the order in which they were posted.
  [[nodiscard]] DOORBELL_INLINE Received wait_recv(const Warp& warp) {
    const u64 begin = now(warp);
    for (;;) {
      if (arrived_ == 0) {
        // A poll can return several receives; those that were not asked for stay here.
        pending_ = qp_.poll_receives(warp, qp_.receives_posted() - qp_.receives_completed());
        arrived_ = pending_.count;
        next_ = 0;
      }
      if (arrived_ > 0) {
        --arrived_;
        const u32 lane = next_++;
        Received r;
        r.status = static_cast<Status>(warp.shfl(static_cast<u32>(pending_.mine.status), lane));
        r.bytes = warp.shfl(pending_.mine.bytes, lane);
        r.imm = warp.shfl(pending_.mine.imm, lane);
        r.with_imm = warp.shfl(pending_.mine.with_imm ? 1u : 0u, lane) != 0;
        const bool nothing = warp.shfl(pending_.mine.ignore ? 1u : 0u, lane) != 0;
        if (nothing) continue;
        if (r.status != Status::ok && status_ == Status::ok) status_ = r.status;
        return r;
      }
      if (now(warp) - begin > timeout_ticks_) return {.status = Status::response_timeout};
    }
  }

  /// @}
  /// @name Blocking: the operation, then wait() for it
  /// @{

  [[nodiscard]] DOORBELL_INLINE Status put(const Warp& warp, RemoteAddress to, LocalAddress from, u32 bytes) {
    return wait(warp, put_nbi(warp, to, from, bytes));
  }
  [[nodiscard]] DOORBELL_INLINE Status get(const Warp& warp, LocalAddress to, RemoteAddress from, u32 bytes) {
    return wait(warp, get_nbi(warp, to, from, bytes));
  }
  /// @}

 private:
  using i32 = std::int32_t;

  [[nodiscard]] DOORBELL_INLINE static u64 now(const Warp& warp) { return warp.shfl(Clock::now(), 0); }

  [[nodiscard]] DOORBELL_INLINE WorkRequest transfer(Op op, RemoteAddress remote, LocalAddress local,
                                                     u32 bytes) const {
    WorkRequest r;
    r.op = op;
    r.bytes = bytes;
    r.local = local.address;
    r.lkey = local.lkey;
    r.remote = remote.address;
    r.rkey = remote.rkey;
    if (local.bytes != nullptr && !returns_data(op) && bytes > 0 && bytes <= qp_.max_inline()) {
      r.inlined = true;
      r.payload = local.bytes;
    }
    return r;
  }

  /// Waits for room for `n` requests; false if the deadline passed or the queue pair has failed.
  DOORBELL_INLINE bool reserve(const Warp& warp, u32 n) {
    const u64 begin = now(warp);
    while (qp_.room() < n) {
      if (status_ != Status::ok) return false;
      poll(warp);
      if (now(warp) - begin > timeout_ticks_) {
        status_ = Status::response_timeout;
        return false;
      }
    }
    return status_ == Status::ok;
  }

  DOORBELL_INLINE Ticket post_one(const Warp& warp, const WorkRequest& r) {
    if (!reserve(warp, 1)) return qp_.posted();
    (void)qp_.post_one(warp, r, [] {});
    return qp_.posted();
  }

  /// Posts the lanes' requests. Requests that take the same number of ring units go together.
  DOORBELL_INLINE Ticket post_lanes(const Warp& warp, bool wanted, WorkRequest mine) {
    u64 left = warp.ballot(wanted);
    const u32 units = F::units(mine);
    const u32 parts = F::parts(mine);
    const u32 packets = packets_of(mine.bytes, qp_.state().memory.mtu);
    if (left == 0 || !reserve(warp, count_bits(left))) return qp_.posted();
    while (left != 0) {
      const u32 leader = lowest_bit(left);
      // Every lane takes part in the shuffles, even if it wants nothing.
      const bool units_alike = same(warp, units, leader);
      const bool parts_alike = same(warp, parts, leader);
      const bool packets_alike = same(warp, packets, leader);
      const u64 group = warp.ballot(wanted && units_alike && parts_alike && packets_alike) & left;
      left &= ~group;
      const bool last = left == 0;
      const u32 n = count_bits(group);
      qp_.post(warp, n, [&](u32 i) {
        WorkRequest r = from_lane(warp, mine, nth_bit(group, i));
        r.signalled = last && i + 1 == n;
        return r;
      });
    }
    qp_.ring(warp);
    return qp_.posted();
  }

  [[nodiscard]] DOORBELL_INLINE static bool same(const Warp& warp, u32 mine, u32 leader) {
    return mine == warp.shfl(mine, leader);
  }
  [[nodiscard]] DOORBELL_INLINE static u32 nth_bit(u64 mask, u32 n) {
    for (; n > 0; --n) mask &= mask - 1;
    return lowest_bit(mask);
  }

  /// Returns lane `from`'s request; each lane may name another lane.
  [[nodiscard]] DOORBELL_INLINE static WorkRequest from_lane(const Warp& warp, const WorkRequest& mine,
                                                             u32 from) {
    WorkRequest r = mine;
    r.bytes = warp.shfl(mine.bytes, from);
    r.local = warp.shfl(mine.local, from);
    r.lkey = warp.shfl(mine.lkey, from);
    r.rkey = warp.shfl(mine.rkey, from);
    r.remote = warp.shfl(mine.remote, from);
    r.imm = warp.shfl(mine.imm, from);
    r.operand = warp.shfl(mine.operand, from);
    r.compare = warp.shfl(mine.compare, from);
    r.inlined = warp.shfl(mine.inlined ? 1u : 0u, from) != 0;
    r.payload = reinterpret_cast<const u8*>(warp.shfl(reinterpret_cast<u64>(mine.payload), from));
    return r;
  }

  DOORBELL_INLINE void note(const Warp& warp, const typename Queue::Polled& p) {
    const bool bad = warp.lane() < p.count && !p.mine.ignore && p.mine.status != Status::ok;
    const u64 lanes = warp.ballot(bad);
    if (lanes != 0 && status_ == Status::ok)
      status_ = static_cast<Status>(warp.shfl(static_cast<u32>(p.mine.status), lowest_bit(lanes)));
  }

  Queue qp_;
  u64 timeout_ticks_;
  Status status_ = Status::ok;
  typename Queue::Polled pending_;  // receives taken from the queue but not asked for yet
  u32 arrived_ = 0;
  u32 next_ = 0;
};

}  // namespace doorbell::rdma
