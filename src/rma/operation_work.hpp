// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Queues of one-sided operations as the runners take them (measure/runner.hpp).
#pragma once

#include "measure/runner.hpp"
#include "rma/op_loop.hpp"
#include "system/clock.hpp"

// A checker's work with payloads is the same for all queues: checker.cpp has it.
extern template class doorbell::Checker<doorbell::OneLane, doorbell::rma::OpPayload<doorbell::OneLane>>;

namespace doorbell::rma {

/// `Queue`: a LoopQueue.
template <class Queue>
struct OperationWork {
  using Phase = OpPhase;
  using Item = OpQueue;
  using State = OpState<typename Queue::State>;
  using Scratch = OpScratch;
  using Payload = OpPayload<OneLane>;
  template <bool Substeps>
  using Loop = OpLoop<OneLane, HostClock, Substeps, Queue>;

  static u64 scratch_bytes(u32 window) { return OpScratch::bytes(window, histogram::kBuckets); }
  static OpScratch carve(void* memory, u32 window) {
    return carve_op_scratch(memory, window, histogram::kBuckets);
  }
  static u32 kept_words(u32) { return 0; }  // a slot's state ends with its phase
  static u64 payload_bytes(const OpPhase& phase) { return is_atomic(phase.op) ? kAtomicBytes : phase.bytes; }
};

/// The kernels over one kind of queue, as DOORBELL_OP_KERNELS(plain, ...) names them, and the one for
/// payloads.
[[nodiscard]] inline measure::KernelNames op_kernels(const std::string& plain) {
  return {plain, plain + "_substeps", "doorbell_rma_checks"};
}

}  // namespace doorbell::rma
