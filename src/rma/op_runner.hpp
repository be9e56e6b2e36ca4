// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Drives connections over one kind of queue, by CPU threads or by a kernel for the same kind.
#pragma once

#include <doorbell/error.hpp>

#include "measure/cpu_runner.hpp"
#include "measure/gpu_runner.hpp"
#include "rma/ping_pong.hpp"
#include "rma/port.hpp"

namespace doorbell::rma {

template <class Queue>
using OpStates = std::vector<OpState<typename Queue::State>>;

/// CPU threads run OpLoop, or PingPong if both ends send. `states`: each connection's present state.
template <class Queue>
std::unique_ptr<OpRunner> cpu_op_runner(const DriverShape& driver, const OpStates<Queue>& states) {
  if (driver.ping_pong) {
    if constexpr (ReceivingQueue<Queue, OneLane>)
      return std::make_unique<measure::CpuRunner<PingPongWork<Queue>>>(driver.threads, 0, driver.window,
                                                                       states);
    throw Error("a ping-pong", "these queues have no other end that could answer");
  }
  return std::make_unique<measure::CpuRunner<OperationWork<Queue>>>(driver.threads, driver.checkers,
                                                                    driver.window, states);
}

/// CPU threads, or `kernels` on the driver's GPU.
template <class Queue>
std::unique_ptr<OpRunner> op_runner(const DriverShape& driver, const measure::KernelNames& kernels,
                                    const OpStates<Queue>& states) {
  if (driver.initiator == Initiator::gpu)
    return std::make_unique<measure::GpuRunner<OperationWork<Queue>>>(driver.gpu, kernels, driver.checkers,
                                                                      driver.window, states);
  return cpu_op_runner<Queue>(driver, states);
}

}  // namespace doorbell::rma
