// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The engine of a model Cassini inside a kernel on the GPU that it was opened with, as its host sees it.
// Without a GPU, a CPU thread runs the same code: for tests.
#pragma once

#include <functional>
#include <memory>

#include "cxi/model/engine_base.hpp"
#include "cxi/model/served.hpp"
#include "model/servers.hpp"

namespace doorbell::cxi {

/// Makes the function that a CPU thread calls to run the code of block `server`.
using ServeOnThread = std::function<std::function<bool()>(const ServerJob& job, u32 server)>;
/// With one lane and no helpers.
[[nodiscard]] const ServeOnThread& serve_with_one_lane();

class KernelEngine final : public EngineBase {
 public:
  /// `gpu` may be null: a thread, which runs what `on_thread` makes. `alive`: the page whose first word shows
  /// initiators that the device is there; it must outlive the engine. Throws Error.
  KernelEngine(ModelShared& shared, std::shared_ptr<gpu::Gpu> gpu, const Region& alive,
               const ServeOnThread& on_thread);
  ~KernelEngine() override;

  void change(const Change& c) override;
  void refresh() override { change({}); }
  [[nodiscard]] MostObjects most() const override { return MostObjects::of<ServedRoom>(); }
  [[nodiscard]] const EngineCounters& counters() const override { return counted_.counters; }

 private:
  [[nodiscard]] bool read_counts();
  /// The engine cannot be reached: the device has gone.
  void give_up();

  ModelShared& shared_;
  model::Servers servers_;
  Region state_;  ///< the job, and what the engine uses that finds no room in its block
  u64 gone_at_ = 0, counts_at_ = 0;
  ServedCounts counted_{};
};

}  // namespace doorbell::cxi
