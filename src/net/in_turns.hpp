// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A stream and programs of others over the same link and on the same cores, measured in turns.
#pragma once

#include "measure/in_turns.hpp"
#include "net/cell_setup.hpp"

namespace doorbell::net {

/// One of --beside's programs. `link` is opened, and outlives it.
[[nodiscard]] std::unique_ptr<measure::Contender> iperf3_contender(const BenchOptions& options,
                                                                   const CellSettings& cell,
                                                                   const measure::RunWatch& watch,
                                                                   Link& link);

[[nodiscard]] std::unique_ptr<measure::Contender> testpmd_contender(const BenchOptions& options,
                                                                    const CellSettings& cell,
                                                                    const measure::RunWatch& watch,
                                                                    Link& link);

/// What --beside may name.
[[nodiscard]] std::vector<std::string> beside_names();
/// Throws Error for a name that there is not, or one that does not do this stream.
void check_beside(const BenchOptions& options, const std::vector<std::string>& others);
/// Measures each cell of the options with all `others`.
[[nodiscard]] measure::BenchResult run_in_turns(const BenchOptions& options, const measure::RunWatch& watch,
                                                const std::vector<std::string>& others);

}  // namespace doorbell::net
