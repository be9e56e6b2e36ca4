// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The measurements of one-sided operations, for each payload size: single operations one after the other
// (latency), a window of operations (rate), and messages there and back (ping-pong). Every payload is checked
// where it arrives.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "measure/bench_run.hpp"
#include "measure/runner.hpp"
#include "rma/names.hpp"
#include "rma/remote_process.hpp"
#include "rma/session.hpp"
#include "rma/settings.hpp"

namespace doorbell::rma {

/// The words with which a path describes itself in results.
struct PathTexts {
  std::string path = "rma";  ///< of the cells
  std::string_view (*op_name)(Op) = name;
  Setting queues = setting::queues;
  Setting inline_below = setting::inline_below;
  /// The owner of the queues, if the path's devices have several kinds of queues.
  std::string provider = {};
  /// True if a connection can lead elsewhere than back to itself; the cell then names where it leads.
  bool connects = false;
  /// The rate by the device's own clock, of ports that have one.
  std::string clock_rate = "device_clock_bytes_per_s";
  measure::KernelNames kernels = {};  ///< the kernels that drive queues on a GPU
};

struct BenchOptions : measure::RunOptions {
  PathTexts texts;
  OpenPort open;
  std::string device = "model";
  Op op = Op::write;
  std::vector<u32> sizes = {1024};
  bool latency = true;     ///< measure single operations
  bool rate = true;        ///< measure a window of operations
  bool ping_pong = false;  ///< measure messages that the other end answers
  u64 iterations = 0;      ///< operations of a queue in each part and repeat; 0: chosen from the size
  Ends ends = Ends::self;
  u32 slot_alignment = 64;  ///< SessionShape::slot_alignment
  /// For Ends::remote: connects to the other process.
  std::function<std::unique_ptr<RemoteProcess>(const measure::RunWatch&)> connect_remote;
  u32 queues = 1;
  u32 batch = 0;         ///< requests a doorbell; 0: chosen from the size
  u32 in_flight = 0;     ///< on one queue; 0: chosen from batch and size
  u32 signal_every = 0;  ///< 0: one completion a batch
  u32 inline_below = 0;  ///< payloads up to so many bytes travel in the request
  Place queue_memory = Place::pageable;
  Place local_memory = Place::pageable;
  Place remote_memory = Place::pageable;
  u32 threads = 0;  ///< CPU initiator threads; 0: as the cores allow
  bool substeps = false;
  bool one_offset = false;       ///< operations share their bytes instead of each having a slot of its own
  double model_bytes_per_s = 0;  ///< what the model is limited to; 0: it is not, or that is not known
};

using measure::BenchResult;  ///< a cell for each size and part

/// Checks the options as far as this is possible without a device. Throws doorbell::Error.
void check(const BenchOptions& options);

/// Runs the bench. Throws doorbell::Error for what cannot be set up. An error after cells have been measured
/// ends the run with StopReason::broken instead, so that the measured cells are kept.
[[nodiscard]] BenchResult run_bench(const BenchOptions& options, const measure::RunWatch& watch);

}  // namespace doorbell::rma
