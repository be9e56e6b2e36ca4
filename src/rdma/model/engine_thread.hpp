// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// An engine on a thread of the CPU. What it cannot reach itself, in a GPU's memory, a DMA agent moves for it.
#pragma once

#include "model/between_rounds.hpp"
#include "model/dma.hpp"
#include "model/host_mover.hpp"
#include "rdma/model/engine.hpp"
#include "rdma/model/engine_base.hpp"
#include "system/clock.hpp"

namespace doorbell::rdma {

/// An engine that a NIC's threads poll.
class PolledEngine : public EngineBase {
 public:
  /// Does one round over all queue pairs; true if there was work. Called by the engine's thread only.
  virtual bool poll() = 0;
};

/// The parts of an engine on a thread; see Engine.
struct ThreadParts {
  static constexpr u32 kHeld = 1024;
  static constexpr u32 kInARow = 64;

  ThreadParts(ModelShared& shared, const SoftwareAddressSpace& space, model::DmaAgent* agent, u32 index,
              const std::vector<Qp*>& queue_pairs)
      : shared_(shared),
        qps_(queue_pairs),
        rule(shared.engine_rule()),
        faults(shared.faults),
        dma(space, agent, index),
        transport(shared.memory.keys(), faults, dma, shared.atomics, shared.config.copy_threads) {}

  [[nodiscard]] u32 qps() const { return static_cast<u32>(qps_.size()); }
  [[nodiscard]] Qp& qp(u32 i) const { return *qps_[i]; }
  [[nodiscard]] bool gone() const { return shared_.presence.gone(); }
  void remove_device() { faults.remove(shared_.presence); }
  [[nodiscard]] u64 finish_time(u64 now_ns, u64 bytes) { return shared_.link.finish_time(now_ns, bytes); }
  [[nodiscard]] static u64 wall_ns() { return doorbell::wall_ns(); }

 private:
  ModelShared& shared_;
  const std::vector<Qp*>& qps_;

 public:
  const EngineRule rule;
  model::FaultInjector& faults;
  model::DmaEngine dma;
  Transport<model::HostMover, model::FaultInjector> transport;
  EngineCounters counters;
};

template <class F>
class EngineThread final : public PolledEngine {
 public:
  EngineThread(ModelShared& shared, const SoftwareAddressSpace& space, model::DmaAgent* agent, u32 index)
      : parts_(shared, space, agent, index, qps_), engine_(parts_), set_up_(shared.config.own_threads) {}

  bool poll() override {
    set_up_.serve();
    const bool work = engine_.poll();
    // A round that ended because the device has gone leaves no copy behind: the memory may be gone next.
    parts_.transport.mover().settle_shared();
    return work;
  }
  void run_between_rounds(const std::function<void()>& work) override { set_up_.run(work); }
  [[nodiscard]] const EngineCounters& counters() const override { return parts_.counters; }
  [[nodiscard]] u64 dma_faults() const override {
    return parts_.dma.faults() + parts_.transport.violations();
  }

 private:
  ThreadParts parts_;
  Engine<F, ThreadParts> engine_;
  model::BetweenRounds set_up_;
};

}  // namespace doorbell::rdma
