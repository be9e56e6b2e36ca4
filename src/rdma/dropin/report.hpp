// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The statistics of each queue pair when the program ends.
#pragma once

#include <string>

#include "rdma/dropin/objects.hpp"

namespace doorbell::dropin {

/// To a file, to which each process adds a line of JSON, or to standard error as text.
void report_at_exit(const std::string& to);
/// Whether anybody asked.
[[nodiscard]] bool reporting();
/// A queue pair that lives, until remember() takes its last counts.
void watch(Qp& queue_pair, Context& context);
/// Forgets a handle of a queue pair that others still have.
void unwatch(const Qp& queue_pair);
/// Its counts stay when it ends. Nothing where nobody asked for a report.
void remember(Qp& queue_pair, const Adapter& adapter);
/// At the end of the program.
void write_report();
/// In a child of fork(): its report is of its own queue pairs.
void forget_parent();

}  // namespace doorbell::dropin
