// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The work that a cell of the kernels' bench does over and over: windows put together in one way.
#pragma once

#include <nlohmann/json.hpp>

#include "net/kernel_bench/bench.hpp"
#include "net/kernel_bench/stored_packets.hpp"
#include "net/workload/workload.hpp"

namespace doorbell::net {

class KernelWork {
 public:
  virtual ~KernelWork() = default;
  /// Starts so many windows in a row, and waits for the last one.
  virtual void run(u64 windows) = 0;
  [[nodiscard]] virtual u64 window_bytes() const = 0;
  [[nodiscard]] virtual u64 window_packets() const = 0;

  struct Checked {
    u64 packets = 0, wrong = 0;
    u64 results = 0, wrong_results = 0;  ///< of a workload
    u64 uncounted = 0;                   ///< packets that a kernel did not say it had placed
  };
  /// Behind all runs: compares every result with what was sent.
  [[nodiscard]] virtual Checked verify() = 0;
  /// Further facts of the cell.
  [[nodiscard]] virtual nlohmann::ordered_json facts() const { return nlohmann::ordered_json::object(); }
};

// `packets` outlive what is made of them. `list`: the memory in which the kernel finds the packets'
// addresses.

/// Kernel `gather`: the host has chosen each packet's place.
[[nodiscard]] std::unique_ptr<KernelWork> gathering(const KernelBenchOptions& options,
                                                    const StoredPackets& packets, Place list,
                                                    const std::shared_ptr<gpu::Gpu>& gpu);
/// Kernel `place`: it reads the headers.
[[nodiscard]] std::unique_ptr<KernelWork> placing(const KernelBenchOptions& options,
                                                  const StoredPackets& packets, Place list,
                                                  const std::shared_ptr<gpu::Gpu>& gpu);
/// One copy for each window, many of them queued.
[[nodiscard]] std::unique_ptr<KernelWork> copies(const KernelBenchOptions& options,
                                                 const std::shared_ptr<gpu::Gpu>& gpu, Place source);
/// Windows that are gathered by a kernel or go through a CopyStage, and then through a workload, two of them
/// in flight. Throws Error (ExitCode::absent): no library for it.
[[nodiscard]] std::unique_ptr<KernelWork> computing(const KernelBenchOptions& options,
                                                    const StoredPackets& packets, bool gathers,
                                                    WorkloadKind kind, const std::shared_ptr<gpu::Gpu>& gpu);

}  // namespace doorbell::net
