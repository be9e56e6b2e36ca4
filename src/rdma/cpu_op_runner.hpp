// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// CPU threads that drive connections over one kind of queue pair.
#pragma once

#include "measure/cpu_runner.hpp"
#include "rdma/device.hpp"
#include "rdma/ping_pong.hpp"

namespace doorbell::rdma {

/// By OpLoop or, where both ends send, by PingPong. `states`: where each connection stands.
template <class Queue>
std::unique_ptr<OpRunner> cpu_op_runner(const DriverShape& shape,
                                        const std::vector<OpState<typename Queue::State>>& states) {
  if (shape.ping_pong)
    return std::make_unique<measure::CpuRunner<PingPongWork<Queue>>>(shape.threads, shape.window, states);
  return std::make_unique<measure::CpuRunner<OpWork<Queue>>>(shape.threads, shape.window, states);
}

}  // namespace doorbell::rdma
