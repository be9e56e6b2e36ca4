// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Work requests and completions of the RoCE NIC. Enumerations have the numbers of libibverbs (verbs.h), which
// the drop-in library asserts.
#pragma once

#include <doorbell/config.hpp>

#include "rdma/roce/carrier.hpp"

namespace doorbell::roce {

enum class WrOpcode : u8 {
  write = 0,
  write_immediate = 1,
  send = 2,
  send_immediate = 3,
  read = 4,
  compare_swap = 5,
  fetch_add = 6,
  local_invalidate = 7,
  bind_window = 8,
  send_invalidate = 9,
  atomic_write = 15,
};
/// Of tables by opcode, which have gaps.
inline constexpr std::size_t kWrOpcodes = 16;

enum class Status : u8 {
  success = 0,
  local_length = 1,
  local_operation = 2,
  local_protection = 4,
  flushed = 5,
  window_bind = 6,
  bad_response = 7,
  local_access = 8,
  remote_invalid_request = 9,
  remote_access = 10,
  remote_operation = 11,
  retry_exceeded = 12,
  rnr_retry_exceeded = 13,
  fatal = 19,
  general = 21,
};

/// Of a completion: what was done. The receiving ones have bit 7.
enum class WcOpcode : u8 {
  send = 0,
  write = 1,
  read = 2,
  compare_swap = 3,
  fetch_add = 4,
  bind_window = 5,
  local_invalidate = 6,
  atomic_write = 9,
  receive = 128,
  receive_write_immediate = 129,
};

enum class State : u8 { reset = 0, init = 1, rtr = 2, rts = 3, sqd = 4, sqe = 5, error = 6 };

/// Access rights of memory and of queue pairs, as bits.
enum Access : u32 {
  kLocalWrite = 1,
  kRemoteWrite = 2,
  kRemoteRead = 4,
  kRemoteAtomic = 8,
  kBindWindow = 16,
  kZeroBased = 32,
};

/// A piece of registered memory.
struct Sge {
  u64 address = 0;
  u32 length = 0;
  u32 key = 0;
};

/// Flags of a send request, as bits.
enum SendFlag : u8 { kFence = 1, kSignaled = 2, kSolicited = 4, kInline = 8 };

struct SendRequest {
  u64 id = 0;
  WrOpcode opcode = WrOpcode::send;
  u8 flags = 0;
  u32 immediate_or_key = 0;  ///< the immediate as the program gave it, or the key to invalidate
  u64 remote_address = 0;
  u32 remote_key = 0;
  u64 compare_or_add = 0;
  u64 swap = 0;   ///< of an atomic write the eight bytes, as they are to lie in memory
  Endpoint to{};  ///< UD: the peer, its queue pair and Q_Key
  u32 to_queue_pair = 0;
  u32 queue_key = 0;
  u32 shared_receives = 0;  ///< XRC: the peer's shared receive queue
  u32 window = 0;           ///< bind_window: the window's key now; `bind` is what it covers
  struct Bind {
    u32 region_key = 0;  ///< lkey of the region
    u32 new_key = 0;     ///< the window's key afterwards
    u64 address = 0;
    u64 length = 0;
    u32 access = 0;
  } bind{};
};

struct Completion {
  u64 id = 0;
  Status status = Status::success;
  WcOpcode opcode = WcOpcode::send;  ///< of errors, too
  u8 flags = 0;                      ///< CompletionFlag
  u32 vendor_error = 0;
  u32 bytes = 0;
  u32 immediate_or_key = 0;
  u32 queue_pair = 0;
  u32 source_queue_pair = 0;
  u64 time_ns = 0;  ///< when the NIC wrote it (wall_ns)
};
enum CompletionFlag : u8 { kHasGrh = 1, kHasImmediate = 2, kHasInvalidated = 8 };

/// Events outside of completions; numbers of ibv_event_type.
enum class Event : u8 {
  cq_error = 0,
  qp_fatal = 1,
  qp_request_error = 2,
  qp_access_error = 3,
  communication_established = 4,
  send_queue_drained = 5,
  port_active = 9,
  port_error = 10,
  srq_error = 14,
  srq_limit = 15,
  last_wqe_reached = 16,
};

}  // namespace doorbell::roce
