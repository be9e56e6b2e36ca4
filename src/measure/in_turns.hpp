// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Several ways to do the same work, measured in turns, so that other load on the machine affects all alike.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "measure/bench_run.hpp"

namespace doorbell::measure {

/// One of the ways. It holds its device only while it is measured.
class Contender {
 public:
  virtual ~Contender() = default;
  [[nodiscard]] virtual std::string label() const = 0;
  virtual void warm_up() = 0;
  virtual void repeat(u32 number) = 0;
  /// False after an error or a signal: no more repeats.
  [[nodiscard]] virtual bool going() const = 0;
  /// Once, at the end. The result has one cell.
  [[nodiscard]] virtual BenchResult finish() = 0;
};

/// Warms all up, then repeats each in turn. The results are in the order of `all`; those after the first
/// carry the first one's ratios to them (cell.beside). An Error of one ends the measurement and is noted in
/// its result.
[[nodiscard]] std::vector<BenchResult> run_in_turns(const RunOptions& options, const RunWatch& watch,
                                                    const std::vector<Contender*>& all);

}  // namespace doorbell::measure
