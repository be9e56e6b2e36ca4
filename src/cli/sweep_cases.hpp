// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A sweep's runs as JUnit test cases.
#pragma once

#include <vector>

#include "cli/run_sweep.hpp"
#include "report/junit.hpp"

namespace doorbell::cli {

/// One case for each run of a cell: failed, with its classes of errors; skipped if what it needs is absent,
/// or if the sweep ended before it. Where the sweep's code is not 0 and no case says why, one more case does.
[[nodiscard]] std::vector<report::TestCase> cases_of(const PreparedSweep& sweep, const SweepOutcome& outcome);

}  // namespace doorbell::cli
