// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "measure/cpu_runner.hpp"
#include "rdma/op_work.hpp"
#include "rdma/ping_pong.hpp"
#include "rdma/verbs/device.hpp"

namespace doorbell::rdma {

std::unique_ptr<OpRunner> VerbsDevice::runner(const std::vector<ConnectedEnds>& ends,
                                              const DriverShape& shape) {
  using Work = OpWork<VerbsQueuePair>;
  std::vector<Work::State> states;
  for (const ConnectedEnds& e : ends) {
    Work::State s;
    s.own = dynamic_cast<VerbsQueuePairObject&>(*e.own).queue_state();
    s.paired = e.peer != nullptr;
    if (s.paired) s.peer = dynamic_cast<VerbsQueuePairObject&>(*e.peer).queue_state();
    states.push_back(s);
  }
  if (shape.ping_pong)
    return std::make_unique<measure::CpuRunner<PingPongWork<VerbsQueuePair>>>(shape.threads, shape.window,
                                                                              states);
  return std::make_unique<measure::CpuRunner<Work>>(shape.threads, shape.window, states);
}

}  // namespace doorbell::rdma
