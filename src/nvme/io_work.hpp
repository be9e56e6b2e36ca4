// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// NVMe queues as the runners take them (measure/runner.hpp).
#pragma once

#include "measure/gpu_runner.hpp"
#include "measure/runner.hpp"
#include "nvme/io_loop.hpp"
#include "system/clock.hpp"

// A checker's work with blocks is the same for all queues: checker.cpp has it.
extern template class doorbell::Checker<doorbell::OneLane, doorbell::nvme::IoPayload<doorbell::OneLane>>;

namespace doorbell::nvme {

using IoRunner = measure::Runner<IoPhase, IoQueue>;

/// `Queue`: a queue pair, or what looks like one to IoLoop.
template <class Queue>
struct IoWork {
  using Phase = IoPhase;
  using Item = IoQueue;
  using State = typename Queue::State;
  using Scratch = IoScratch;
  using Payload = IoPayload<OneLane>;
  template <bool Substeps>
  using Loop = IoLoop<OneLane, HostClock, Substeps, Queue>;

  static u64 scratch_bytes(u32 window) { return IoScratch::bytes(window, histogram::kBuckets); }
  static IoScratch carve(void* memory, u32 window) {
    return carve_scratch(memory, window, histogram::kBuckets);
  }
  static u32 kept_words(u32 window) { return window; }
  static u64 payload_bytes(const IoPhase& phase) { return u64{phase.blocks} * phase.lba_bytes; }
};

/// Those of kernels/nvme_io.cu.
inline const measure::KernelNames kIoKernels = {"doorbell_nvme_io", "doorbell_nvme_io_substeps",
                                                "doorbell_nvme_checks"};

}  // namespace doorbell::nvme
