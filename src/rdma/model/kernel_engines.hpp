// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The engines of a model NIC inside a kernel on the GPU that it was opened with, as their host sees them.
// Without a GPU, CPU threads run the same code: for tests.
#pragma once

#include <mutex>

#include "model/servers.hpp"
#include "rdma/model/engine_base.hpp"
#include "rdma/model/served.hpp"
#include "rdma/model/shape.hpp"

namespace doorbell::rdma {

class KernelEngine;

class KernelEngines {
 public:
  /// `gpu` may be null: threads. `registers`: the NIC's page of words, the first of which shows that it is
  /// there; it must outlive the engines. Throws Error.
  KernelEngines(ModelShared& shared, const FormatShape& format, std::shared_ptr<gpu::Gpu> gpu,
                const Region& registers);
  ~KernelEngines();

  [[nodiscard]] u32 count() const { return servers_.count(); }
  /// Engine `server` for the NIC's list. `this` must outlive it.
  [[nodiscard]] std::unique_ptr<EngineBase> engine(u32 server);

 private:
  friend class KernelEngine;
  [[nodiscard]] bool order(u32 server, ServerOrder::Kind kind, u32 queue_pairs = 0);
  /// The engines cannot be reached: the device has gone.
  void give_up();

  ModelShared& shared_;
  model::Servers servers_;
  Region keys_;   ///< the GPU's copy of the table of registered memory
  Region state_;  ///< everything else that the engines share
  u64 gone_at_ = 0, images_at_ = 0, counts_at_ = 0;
};

/// Pauses its engine for set-up work, and brings the queue pairs to the host and back.
class KernelEngine final : public EngineBase {
 public:
  KernelEngine(KernelEngines& all, u32 server) : all_(all), server_(server) {}

  void run_between_rounds(const std::function<void()>& work) override;
  void refresh() override {
    run_between_rounds([] {});
  }
  [[nodiscard]] u32 most_queue_pairs() const override { return kServedQps; }
  [[nodiscard]] const EngineCounters& counters() const override { return counted_.counters; }
  [[nodiscard]] u64 dma_faults() const override { return counted_.violations; }

 private:
  [[nodiscard]] bool fetch();
  [[nodiscard]] bool give_back();

  KernelEngines& all_;
  u32 server_;
  std::mutex mutex_;  // counts are asked for by other threads than the set-up's
  ServedCounts counted_{};
};

}  // namespace doorbell::rdma
