// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/burst_queue.hpp"
#include "rdma/verbs/nic.hpp"
#include "rma/op_runner.hpp"

namespace doorbell::rdma {

std::unique_ptr<OpRunner> VerbsNic::runner(const std::vector<ConnectedEnds>& ends, const DriverShape& shape) {
  std::vector<OpState<VerbsQueuePair::State>> states;
  for (const ConnectedEnds& e : ends) {
    OpState<VerbsQueuePair::State> s;
    s.own = dynamic_cast<VerbsQueuePairObject&>(*e.own).queue_state();
    s.paired = e.peer != nullptr;
    if (s.paired) s.peer = dynamic_cast<VerbsQueuePairObject&>(*e.peer).queue_state();
    states.push_back(s);
  }
  static_assert(ReceivingQueue<VerbsQueuePair, OneLane>);
  return cpu_op_runner<VerbsQueuePair>(shape, states);
}

std::unique_ptr<BurstQueue> VerbsNic::burst_queue(QueuePairObject& queue_pair) {
  return std::make_unique<BurstQueueOf<VerbsQueuePair>>(
      dynamic_cast<VerbsQueuePairObject&>(queue_pair).queue_state());
}

}  // namespace doorbell::rdma
