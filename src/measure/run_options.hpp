// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The options that the benches of all paths share: how often, how long, which initiator, what is checked.
#pragma once

#include <doorbell/region.hpp>

#include <functional>
#include <optional>
#include <string>

#include "measure/live.hpp"
#include "measure/stop.hpp"
#include "model/use.hpp"

namespace doorbell::measure {

struct RunOptions {
  u64 seed = 1;
  bool verify = true;
  bool strict = false;       ///< data not known to have been written is checked too
  double verify_sample = 1;  ///< share of operations that are checked
  std::optional<u32>
      check_threads;    ///< of a CPU initiator; not given: as many as there are free cores, within reason
  u32 check_warps = 0;  ///< of a GPU initiator, for each queue
  double timeout_s = 10;
  double late_after_s = 1;
  double warmup_s = 0;
  u32 repeats = 1;
  double duration_s = 0;  ///< 0: by count
  model::FaultRates faults;
  Initiator initiator = Initiator::cpu;
  int gpu = 0;
  /// Share of the usual work by which references are measured (copy engine, harness floor). Tests take
  /// little.
  double reference_work = 1;

  /// A loop checks an operation when a 32-bit hash of it is at most this.
  [[nodiscard]] u32 verify_below() const;
  /// Result's verify.mode: "full", "sample=P", "strict", or "none" where nothing was `verified`.
  [[nodiscard]] std::string verify_mode(bool verified) const;
  /// CPU threads for `queues` queues: `asked`, or half the cores when that is 0; none with a GPU initiator.
  [[nodiscard]] u32 initiator_threads(u32 asked, u32 queues) const;
  /// Who makes and checks payloads, as the runners take it: CPU threads besides `threads` initiators and a
  /// device that may use as many as it has `queues`, or warps of the GPU for each queue (0: as many as pay).
  [[nodiscard]] u32 checkers(u32 threads, u32 queues, u64 payload_bytes) const;
  /// The use for which the device is opened.
  [[nodiscard]] model::Use use(u32 queues, u32 threads, bool gpu_memory) const;
};

/// How a bench is watched and stopped while it runs.
struct RunWatch {
  StopFlag* stop = nullptr;
  /// `fraction` of the work of this phase; NaN for work without an end.
  std::function<void(double fraction, const std::string& what)> progress = {};
  LiveBoard* live = nullptr;  ///< gets the figures before each call of `progress`
};

}  // namespace doorbell::measure
