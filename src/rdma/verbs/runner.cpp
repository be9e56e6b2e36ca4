// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/verbs/runner.hpp"

#include "measure/cpu_runner.hpp"
#include "rdma/verbs/device.hpp"

namespace doorbell::rdma {

std::unique_ptr<OpRunner> make_verbs_runner(const std::vector<VerbsEnds>& ends, u32 threads, u32 window) {
  using Work = OpWork<VerbsQueuePair>;
  std::vector<Work::State> states;
  for (const VerbsEnds& e : ends) {
    Work::State s;
    s.own = dynamic_cast<VerbsQueuePairObject&>(*e.own).queue_state();
    s.paired = e.peer != nullptr;
    if (s.paired) s.peer = dynamic_cast<VerbsQueuePairObject&>(*e.peer).queue_state();
    states.push_back(s);
  }
  return std::make_unique<measure::CpuRunner<Work>>(threads, window, states);
}

}  // namespace doorbell::rdma
