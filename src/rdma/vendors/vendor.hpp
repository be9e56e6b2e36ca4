// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Makes a vendor's row from its format. Each vendor's translation unit includes this file.
#pragma once

#include <doorbell/rdma/queue_pair.hpp>

#include "rdma/burst_queue.hpp"
#include "rdma/model/describe.hpp"
#include "rdma/nic_device.hpp"
#include "rma/op_runner.hpp"

namespace doorbell::rdma {

template <class Format>
std::unique_ptr<OpRunner> direct_runner(const std::vector<ConnectedEnds>& ends, const DriverShape& driver,
                                        const measure::KernelNames& kernels) {
  static_assert(ReceivingQueue<QueuePair<OneLane, Format>, OneLane>);
  // The kernels' queue pairs have the same state type as this one.
  return op_runner<QueuePair<OneLane, Format>>(driver, kernels, direct_states(ends, driver.initiator));
}

template <class Format>
std::unique_ptr<BurstQueue> direct_burst_queue(QueuePairObject& queue_pair) {
  return std::make_unique<BurstQueueOf<QueuePair<OneLane, Format>>>(
      initial_state(queue_pair.memory(Initiator::cpu)));
}

template <class Format>
constexpr Vendor vendor() {
  return {.shape = format_shape<Format>,
          .runner = direct_runner<Format>,
          .burst_queue = direct_burst_queue<Format>};
}

}  // namespace doorbell::rdma
