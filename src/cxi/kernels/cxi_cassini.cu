// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The kernel that is a Cassini.
#include "cxi/model/served_engine.hpp"
#include "model/serve_block.hpp"

// One block of kServerThreads, with sizeof(ServedMemory) bytes of dynamic shared memory.
extern "C" __global__ void __launch_bounds__(doorbell::cxi::kServerThreads, 1)
    doorbell_cxi_cassini(const doorbell::cxi::ServerJob* job) {
  extern __shared__ __align__(16) doorbell::u64 shared[];
  doorbell::model::serve_block<doorbell::cxi::ServedEngine<doorbell::GpuWarp, doorbell::GpuClock>>(*job,
                                                                                                   shared);
}
