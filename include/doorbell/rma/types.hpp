// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// One-sided operations as a queue takes them, whichever device is behind the queue: requests, receives,
// completions.
#pragma once

#include <doorbell/memory_order.hpp>

namespace doorbell::rma {

/// An operation of a send queue.
enum class Op : u32 {
  write,         ///< local bytes to remote memory
  write_imm,     ///< the same, and a receive completes with `imm`
  read,          ///< remote bytes to local memory
  send,          ///< local bytes to the buffer of a receive
  send_imm,      ///< the same with `imm`
  fetch_add,     ///< adds to 8 remote bytes; their old value comes to local memory
  compare_swap,  ///< replaces 8 remote bytes if they equal `compare`; their old value comes likewise
};

/// Atomics move 8 bytes.
[[nodiscard]] DOORBELL_INLINE bool is_atomic(Op op) {
  return op == Op::fetch_add || op == Op::compare_swap;
}
/// True if the operation uses up a receive at the responder.
[[nodiscard]] DOORBELL_INLINE bool takes_receive(Op op) {
  return op == Op::write_imm || op == Op::send || op == Op::send_imm;
}
/// True if the responder's completion reports `imm`.
[[nodiscard]] DOORBELL_INLINE bool has_imm(Op op) {
  return op == Op::write_imm || op == Op::send_imm;
}
/// True if the device writes to the initiator's memory.
[[nodiscard]] DOORBELL_INLINE bool returns_data(Op op) {
  return op == Op::read || is_atomic(op);
}

/// How a request or receive ended. Source: ibv_wc_status (libibverbs, verbs.h), with its numbers.
enum class Status : u32 {
  ok = 0,
  local_length = 1,
  local_qp_op = 2,
  local_eec_op = 3,
  local_protection = 4,
  flushed = 5,
  memory_window = 6,
  bad_response = 7,
  local_access = 8,
  remote_invalid_request = 9,
  remote_access = 10,
  remote_operation = 11,
  retry_exceeded = 12,
  rnr_retry_exceeded = 13,
  remote_aborted = 16,
  fatal = 19,
  response_timeout = 20,
  general = 21,
};

/// The largest message: 2 GiB - 1.
inline constexpr u32 kMaxMessage = 0x7fffffff;
/// The payload of an atomic.
inline constexpr u32 kAtomicBytes = 8;

/// One send-queue request with at most one local buffer. Addresses are IOVAs of registered memory.
struct WorkRequest {
  Op op = Op::write;            ///< decides which of the others count
  bool signalled = true;        ///< asks for a completion; errors have one anyway
  bool fence = false;           ///< starts after earlier reads and atomics have finished
  bool solicited = false;       ///< raises a solicited event at the responder
  bool inlined = false;         ///< the payload travels in the WQE; `payload` says where it is now
  u32 bytes = 0;                ///< 0..kMaxMessage; 8 for atomics
  u64 local = 0;                ///< where `bytes` come from or, of a read or an atomic, go to
  u32 lkey = 0;                 ///< of the memory at `local`
  u32 rkey = 0;                 ///< of the memory at `remote`
  u64 remote = 0;               ///< of atomics a multiple of 8
  u32 imm = 0;                  ///< host value: the responder's completion reports the same number
  u64 operand = 0;              ///< fetch_add: what is added; compare_swap: what is stored
  u64 compare = 0;              ///< compare_swap: the value that is replaced
  const u8* payload = nullptr;  ///< the initiator's own address of `bytes` bytes, when inlined
};

/// A buffer for an incoming SEND, or a token for a WRITE with immediate.
struct ReceiveRequest {
  u64 local = 0;  ///< IOVA of the buffer
  u32 lkey = 0;   ///< of its memory
  u32 bytes = 0;  ///< its size: a longer message is an error; 0: no buffer
};

/// The contents of a completion.
struct Completion {
  Status status = Status::ok;  ///< other than ok: `bytes` and `imm` mean nothing
  bool receive = false;        ///< of a receive, not of a request
  bool with_imm = false;       ///< `imm` is valid
  bool flush_all = false;      ///< not one request: everything outstanding on this queue is flushed
  bool ignore = false;         ///< carries no news (a format's stale or padding entry)
  /// The request that completed, in the format's own count: see the format's kMark.
  u32 mark = 0;
  u32 bytes = 0;         ///< received bytes; of requests only where the format reports them
  u32 imm = 0;           ///< the requester's number, in the host's order
  u32 vendor_error = 0;  ///< the vendor's own code, for messages
};

// --- set-up. Host code only ----------------------------------------------------------------------------

/// Memory that the device may use, until this object is destroyed; the region must live as long.
class RegisteredMemory {
 public:
  virtual ~RegisteredMemory() = default;
  /// The address of byte 0 in requests.
  [[nodiscard]] u64 iova() const { return iova_; }
  /// The key with which this end's requests name the memory.
  [[nodiscard]] u32 lkey() const { return lkey_; }
  /// The key with which the other end's requests name it.
  [[nodiscard]] u32 rkey() const { return rkey_; }

 protected:
  u64 iova_ = 0;
  u32 lkey_ = 0;
  u32 rkey_ = 0;
};

/// Limits of the device, to check before anything is created.
struct Limits {
  u32 max_requests = 32768;       ///< of one queue
  u32 max_receives = 32768;       ///< likewise
  u32 max_queues = 1024;          ///< at the same time
  u32 max_inline = 0;             ///< bytes of one request
  u32 max_message = kMaxMessage;  ///< bytes of one request
  bool atomics = true;            ///< fetch_add and compare_swap
  bool gpu_memory = false;        ///< can register GPU memory
  bool gpu_initiator = false;     ///< a GPU can reach its queues and doorbells
};

}  // namespace doorbell::rma
