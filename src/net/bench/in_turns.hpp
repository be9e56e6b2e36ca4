// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A stream and programs of others over the same link and on the same cores, measured in turns.
#pragma once

#include "measure/in_turns.hpp"
#include "net/bench/cell_setup.hpp"

namespace doorbell::net {

/// One of the programs that a stream is compared with. `link` is opened, and outlives it.
[[nodiscard]] std::unique_ptr<measure::Contender> iperf3_contender(const BenchOptions& options,
                                                                   const CellSettings& cell,
                                                                   const measure::RunWatch& watch,
                                                                   Link& link);

[[nodiscard]] std::unique_ptr<measure::Contender> testpmd_contender(const BenchOptions& options,
                                                                    const CellSettings& cell,
                                                                    const measure::RunWatch& watch,
                                                                    Link& link);

/// The programs that a stream can be compared with.
[[nodiscard]] std::vector<std::string> other_programs();
/// Throws Error for a name that there is not, or one that does not do this stream.
void check_others(const BenchOptions& options, const std::vector<std::string>& others);
/// Measures each cell of the options with all `others`.
[[nodiscard]] measure::BenchResult run_in_turns(const BenchOptions& options, const measure::RunWatch& watch,
                                                const std::vector<std::string>& others);

}  // namespace doorbell::net
