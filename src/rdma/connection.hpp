// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The parameters with which a connection of two queue pairs is made, and its states. Plain data, for kernels
// too.
#pragma once

#include <doorbell/config.hpp>

namespace doorbell::rdma {

/// Access flags of memory and queue pairs; the numbers are those of ibv_access_flags.
namespace access {
inline constexpr u32 local_write = 1, remote_write = 2, remote_read = 4, remote_atomic = 8;
inline constexpr u32 all = local_write | remote_write | remote_read | remote_atomic;
}  // namespace access

/// Queue pair states; the numbers are those of ibv_qp_state.
enum class QpState : u32 { reset = 0, init = 1, rtr = 2, rts = 3, sqd = 4, sqe = 5, error = 6 };

/// The parameters of a connection. Codes are those of the verbs attributes.
struct ConnectionOptions {
  u32 mtu = 0;             ///< 256..4096; 0: the smaller of the two ports' active MTUs
  u32 timeout = 14;        ///< acknowledgement time-out 4.096 us * 2^timeout; 0: none
  u32 retry_count = 7;     ///< 0..7
  u32 rnr_retry = 7;       ///< 0..7; 7: for ever
  u32 min_rnr_timer = 12;  ///< code 0..31; 12: 0.64 ms
  u32 max_rd_atomic = 16;  ///< outstanding reads and atomics as requester and as responder
  u32 access = access::all;
};

}  // namespace doorbell::rdma
