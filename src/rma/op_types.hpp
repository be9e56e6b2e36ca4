// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The input and the state of a loop of one-sided operations. Plain data in memory that both host and GPU can
// reach.
#pragma once

#include <doorbell/config.hpp>
#include <doorbell/rma/types.hpp>

#include <concepts>
#include <utility>

#include "loop/check_ring.hpp"
#include "loop/loop_guard.hpp"
#include "loop/mirror.hpp"

namespace doorbell::rma {

/// Operations in flight on one queue pair at most.
inline constexpr u32 kMaxWindow = 1024;

/// Which end of a connection a loop plays.
enum class Role : u32 {
  initiator,  ///< posts requests; also receives, if it reaches the responder's memory
  responder,  ///< in another process than the initiator: posts receives and checks what arrives
};

/// One phase: the same kind of operation on every queue pair.
struct OpPhase : PhaseLimits {
  Op op = Op::write;
  Role role = Role::initiator;
  bool timed = true;       ///< stamp every operation; false: only the phase as a whole
  bool verify = false;     ///< payloads carry the pattern and are checked where they arrive
  bool inlined = false;    ///< payloads travel in the WQE
  bool drain = false;      ///< post nothing, consume completions that are still there
  u32 verify_below = ~0u;  ///< check an operation if a hash of its index is at most this
  u32 bytes = 0;
  u32 signal_every = 1;  ///< one request in so many asks for a completion, and the last of each batch
  u32 batch = 1;         ///< requests a doorbell
  u32 window = 1;        ///< operations in flight, <= kMaxWindow and the queue's requests
  u32 peer_window = 0;   ///< responder only: the initiator's window, whose slots name the payloads
  /// The slots of the target's buffers, where these are not as many as the window (0: they are): operation i
  /// uses slot i % target_slots. For a WRITE with immediate to another process they are the window plus the
  /// receives: the first packets of an operation may arrive before its receive is posted, and no operation
  /// may overwrite data that has not been checked. A device's own memory has as many as are read back
  /// together.
  u32 target_slots = 0;
  u64 seed = 1;
  u64 generation = 1;          ///< sequence of the first operation; each further one adds 1
  const u32* alive = nullptr;  ///< zero: the device is gone; may be null

  [[nodiscard]] DOORBELL_INLINE StopReason lost() const {
    return alive != nullptr && load_relaxed(alive) == 0 ? StopReason::removed : StopReason::done;
  }
};

/// One queue pair's share of a phase and where its memory lies. Slot s of a buffer is at s * stride.
struct OpQueue {
  u8* local = nullptr;   ///< the initiator's buffers, in its own addresses; null in any other process
  u8* remote = nullptr;  ///< the responder's buffers, likewise
  u64 local_iova = 0;
  u64 remote_iova = 0;
  u32 lkey = 0;
  u32 rkey = 0;
  u32 receive_lkey = 0;  ///< for receives into `remote`
  u32 local_rkey = 0;    ///< of `local`, for a responder that writes to it; 0: none may
  u32 number = 0;        ///< of the queue, for the pattern's addresses
  u64 stride = 0;        ///< a multiple of 64; 0: every operation uses the same bytes, without verification
  u64 count = 0;         ///< operations to do; ~0 with a duration
  CheckRing checks;      ///< who makes and checks payloads; the runner's
  /// Mirrors of GPU memory, in which `local` and `remote` then lie; null: they are what the device uses.
  Mirror* local_mirror = nullptr;
  Mirror* remote_mirror = nullptr;
};

/// State of both ends' queue pairs between two phases. `peer` is unused if a queue pair is connected to
/// itself.
template <class QueueState>
struct OpState {
  QueueState own;
  QueueState peer;
  bool paired = false;
};

/// A queue that an OpLoop can drive: rdma::QueuePair, the libibverbs and the Cassini queues are such queues.
/// Requests are counted by serials modulo 2^32 and finish in the order in which they were posted.
template <class Q, class Warp>
concept LoopQueue = requires(Q& q, const Q& c, const Warp& warp, u32 n, WorkRequest (*request)(u32)) {
  requires std::constructible_from<Q, const typename Q::State&>;
  { c.state() } -> ConvertibleTo<typename Q::State>;
  { c.room() } -> std::same_as<u32>;      // requests that may be posted now
  q.post(warp, n, request);               // request(i) makes request i; the device sees it after ring()
  { q.ring(warp) } -> std::same_as<u32>;  // returns the number of register writes
  { c.completed() } -> std::same_as<u32>;
  // Completions that came twice, that never came, and that belong to no posted request.
  { c.duplicated() } -> std::same_as<u32>;
  { c.skipped() } -> std::same_as<u32>;
  { c.protocol() } -> std::same_as<u32>;
  // Lanes 0..count-1 each hold one of the next completions; at most `n` are expected. `serial` is the serial
  // of the last request that the completion finishes.
  { q.poll(warp, n) } -> std::same_as<typename Q::Polled>;
  requires requires(const typename Q::Polled& p) {
    { p.count } -> ConvertibleTo<u32>;
    { p.mine } -> ConvertibleTo<const Completion&>;
    { p.serial } -> ConvertibleTo<u32>;
  };
};

/// A LoopQueue that posts and rings a single request faster than as a batch of one. `between` is called
/// before the doorbell.
template <class Q, class Warp>
concept PostsOne = LoopQueue<Q, Warp> &&
    requires(Q& q, const Warp& warp, const WorkRequest& request, void (*between)()) {
  { q.post_one(warp, request, between) } -> std::same_as<u32>;  // returns the number of register writes
};

/// A LoopQueue at which messages arrive: a queue pair. Receives are counted in the same way as requests.
template <class Q, class Warp>
concept ReceivingQueue = LoopQueue<Q, Warp> &&
    requires(Q& q, const Q& c, const Warp& warp, u32 n, ReceiveRequest (*receive)(u32),
             typename Q::State& state) {
  Q::take_receives(state, std::as_const(state));  // copies the receive side of the second into the first
  { c.receive_room() } -> std::same_as<u32>;
  q.post_receives(warp, n, receive);
  { q.ring_receives(warp) } -> std::same_as<u32>;
  { c.receives_completed() } -> std::same_as<u32>;
  { q.poll_receives(warp, n) } -> std::same_as<typename Q::Polled>;
};

/// Working memory of one loop: shared memory on a GPU, the heap on a CPU.
struct OpScratch {
  u64* posted_at = nullptr;  ///< window entries
  u32* state = nullptr;      ///< window entries: 0, or why an operation failed
  u64* bins = nullptr;       ///< histogram::kBuckets counters

  static constexpr u64 bytes(u32 window, u32 buckets) {
    return 8ull * window + 8ull * buckets + 4ull * window;
  }
};

/// Carves an OpScratch out of `memory` (aligned to 8, OpScratch::bytes() long).
DOORBELL_INLINE OpScratch carve_op_scratch(void* memory, u32 window, u32 buckets) {
  auto* words = static_cast<u64*>(memory);
  OpScratch s;
  s.posted_at = words;
  s.bins = words + window;
  s.state = reinterpret_cast<u32*>(words + window + buckets);
  return s;
}

}  // namespace doorbell::rma
