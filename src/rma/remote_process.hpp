// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The other process of a run, if the memory at the other end belongs to another process. That process takes
// over the options, prepares its buffers for each phase and reports what arrived in them.
#pragma once

#include "measure/runner.hpp"

namespace doorbell::rma {

struct BenchOptions;
struct CellSetup;
class Session;

/// The message that the other process gets when a phase begins.
struct PhaseMessage {
  u64 generation = 0;  ///< OpPhase::generation
  u64 count = 0;       ///< operations of each queue; ~0: unknown
};

class RemoteProcess {
 public:
  virtual ~RemoteProcess() = default;
  /// Prepares the other process for a cell and connects the session's queues to it.
  virtual void open(const BenchOptions& options, const CellSetup& setup, Session& session) = 0;
  /// Call before each phase; returns when the other end's buffers and receives are ready.
  virtual void begin(const PhaseMessage& phase) = 0;
  /// Call often while a phase lasts: the other end learns that this one goes on. Throws Error if it has
  /// failed.
  virtual void alive() = 0;
  /// Call after each phase. `mine` is what this end did; returns what the other end found, queue by queue.
  [[nodiscard]] virtual measure::PhaseOutcome end(const measure::PhaseOutcome& mine) = 0;
  /// There will be no further cell.
  virtual void finish() = 0;
};

}  // namespace doorbell::rma
