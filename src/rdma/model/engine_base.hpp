// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// What the engines of all formats share: hand-over of set-up work, counters, and access to the device.
#pragma once

#include <memory>
#include <vector>

#include "model/between_rounds.hpp"
#include "model/count.hpp"
#include "model/shared.hpp"
#include "rdma/model/config.hpp"
#include "rdma/model/transport.hpp"

namespace doorbell::rdma {

/// What all engines of one NIC share.
struct ModelShared : model::Shared<ModelConfig> {
  MemoryTable memory;
  std::mutex atomics;
  using Shared::Shared;
};

/// Counters of one engine.
struct EngineCounters {
  static constexpr u32 kOps = 7;
  std::array<model::Count, kOps> requests;
  model::Count bytes, packets, retransmissions, rnr_naks, rnr_wait_ns, error_completions, cq_overflows,
      doorbells, invalid_doorbell_values;
};

class EngineBase {
 public:
  EngineBase(ModelShared& shared, const SoftwareAddressSpace& space, model::DmaAgent* agent, u32 index)
      : shared_(shared),
        dma_(space, agent, index),
        faults_(shared.faults),
        transport_(shared.memory, dma_, shared.faults, shared.atomics, shared.config.copy_threads),
        set_up_(shared.config.own_threads) {}
  virtual ~EngineBase() = default;
  EngineBase(const EngineBase&) = delete;
  EngineBase& operator=(const EngineBase&) = delete;

  /// Does one round over all queue pairs; true if there was work. Called by the engine's thread only.
  virtual bool poll() = 0;

  /// Runs `work` on the engine's thread between two rounds and waits for it. One caller at a time.
  void run_between_rounds(const std::function<void()>& work) { set_up_.run(work); }

  // Call the following functions only inside run_between_rounds.
  void add(Qp& q);
  void remove(Qp& q);
  /// Links `q` and the queue pair that its remote_qpn names, if this engine serves that one, in both
  /// directions.
  void link(Qp& q);

  [[nodiscard]] const EngineCounters& counters() const { return counters_; }
  [[nodiscard]] u64 dma_faults() const { return dma_.faults() + transport_.violations(); }

 protected:
  void serve_set_up() { set_up_.serve(); }

  ModelShared& shared_;
  model::DmaEngine dma_;
  model::FaultInjector& faults_;
  Transport transport_;
  std::vector<Qp*> qps_;
  EngineCounters counters_;

 private:
  model::BetweenRounds set_up_;
};

}  // namespace doorbell::rdma
