// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The kernel of a format's NIC. For GPU code only.
#pragma once

#include "model/serve_block.hpp"
#include "rdma/model/served_engine.hpp"

// Launch a block of kServerThreads for each engine, with sizeof(ServedMemory) bytes of dynamic shared memory.
#define DOORBELL_NIC_KERNEL(name, Format)                                                       \
  extern "C" __global__ void __launch_bounds__(doorbell::rdma::kServerThreads, 1)               \
      name(const doorbell::rdma::ServerJob* job) {                                              \
    extern __shared__ __align__(16) doorbell::u64 shared[];                                     \
    using Served = doorbell::rdma::ServedEngine<Format, doorbell::GpuWarp, doorbell::GpuClock>; \
    doorbell::model::serve_block<Served>(*job, shared);                                         \
  }
