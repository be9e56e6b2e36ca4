// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Several ways to do the same work, measured in turns: ours, the kernel's, and fio's.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "measure/in_turns.hpp"
#include "nvme/bench.hpp"

namespace doorbell::nvme {

/// One of the ways, of I/Os.
class Contender : public measure::Contender {
 public:
  /// Bytes an I/O, once it has been opened.
  [[nodiscard]] virtual u64 io_bytes() = 0;
  /// Operations in flight on one queue.
  [[nodiscard]] virtual u32 in_flight() = 0;
};

/// `stay_open`: keep the device between repeats. Opens it, and throws what is wrong with the options.
[[nodiscard]] std::unique_ptr<Contender> bench_contender(const BenchOptions& options,
                                                         const measure::RunWatch& watch,
                                                         const std::string& label, bool stay_open);
/// fio on `options.file` with an engine of its own ("psync", "libaio", "io_uring", "io_uring-poll").
[[nodiscard]] std::unique_ptr<Contender> fio_contender(const BenchOptions& options,
                                                       const measure::RunWatch& watch,
                                                       const std::string& engine, u64 io_bytes);

/// Measures the run itself and all `others` in turns, so that other load on the machine affects all alike.
/// Each of `others` is "cpu", "gpu", "io_uring", "sync", "fio" or "fio:ENGINE". The first result is the
/// run's; the others carry ratios to it (cell.beside). `file` is what the kernel's ways are measured on, when
/// the run itself is not on a file.
[[nodiscard]] std::vector<BenchResult> run_in_turns(const BenchOptions& options,
                                                    const measure::RunWatch& watch,
                                                    const std::vector<std::string>& others,
                                                    const std::string& file);
/// The checks that run_in_turns() makes before it opens anything. Throws Error.
void check_in_turns(const BenchOptions& options, const std::vector<std::string>& others,
                    const std::string& file);

}  // namespace doorbell::nvme
