// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// libmlx5, the part of rdma-core for ConnectX NICs. It is loaded at run time, like libibverbs. It shows where
// the queues lie that libibverbs has created.
#pragma once

#include <infiniband/mlx5dv.h>

#include "rdma/verbs/library.hpp"
#include "system/library.hpp"

namespace doorbell::rdma {

/// The functions' names without mlx5dv_.
struct Mlx5Library {
  /// Throws doorbell::Error (ExitCode::absent) when there is no usable libmlx5.
  Mlx5Library();

  Library library;
  bool (*is_supported)(ibv_device*);
  int (*init_obj)(mlx5dv_obj*, uint64_t);
  ibv_qp* (*create_qp)(ibv_context*, ibv_qp_init_attr_ex*, mlx5dv_qp_init_attr*);
};

/// Whether a ConnectX can be driven through its own queues: which one, or why not, on one line. Never throws.
[[nodiscard]] BackendStatus mlx5_status();

}  // namespace doorbell::rdma
