// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Options of `doorbell net` about windows: their size, where they lie, what computes on them.
#pragma once

#include "cli/option.hpp"
#include "net/bench/bench.hpp"

namespace doorbell::cli {

void add_window_options(OptionTable& t);
/// Throws for options that contradict each other. `b` has the stream's own options.
void read_window_options(const Options& o, net::BenchOptions* b);

}  // namespace doorbell::cli
