// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The host's view of an engine of any format: its queue pairs, its counts, and how set-up work reaches it.
#pragma once

#include <functional>
#include <mutex>
#include <vector>

#include "model/shared.hpp"
#include "rdma/model/config.hpp"
#include "rdma/model/engine_counters.hpp"
#include "rdma/model/engine_rule.hpp"
#include "rdma/model/memory_table.hpp"
#include "rdma/model/qp.hpp"

namespace doorbell::rdma {

/// State that all engines of one NIC share.
struct ModelShared : model::Shared<ModelConfig> {
  MemoryTable memory;
  std::mutex atomics;
  using Shared::Shared;
  [[nodiscard]] EngineRule engine_rule() const {
    return {.loss = config.loss,
            .rnr_tries = config.rnr_tries,
            .seed = config.seed,
            .limited = link.limited(),
            .faulty = faults.active()};
  }
};

class EngineBase {
 public:
  EngineBase() = default;
  virtual ~EngineBase() = default;
  EngineBase(const EngineBase&) = delete;
  EngineBase& operator=(const EngineBase&) = delete;

  /// Runs `work` between two rounds of the engine and waits for it. One caller at a time.
  virtual void run_between_rounds(const std::function<void()>& work) = 0;

  /// Makes the counts those of now. Any thread.
  virtual void refresh() {}
  /// Queue pairs that it can own at a time.
  [[nodiscard]] virtual u32 most_queue_pairs() const { return ~0u; }
  [[nodiscard]] u32 room() const { return most_queue_pairs() - static_cast<u32>(qps_.size()); }

  // Call the following functions only inside run_between_rounds.
  void add(Qp& q);
  void remove(Qp& q);
  /// Links `q` and the queue pair that its remote_qpn names, if this engine serves that one, in both
  /// directions.
  void link(Qp& q);

  [[nodiscard]] virtual const EngineCounters& counters() const = 0;
  [[nodiscard]] virtual u64 dma_faults() const = 0;

 protected:
  std::vector<Qp*> qps_;
};

}  // namespace doorbell::rdma
