// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "measure/runner.hpp"

#include <algorithm>

namespace doorbell::measure {

void PhaseOutcome::add(const OpStats& stats, std::span<const u64> bins) {
  queues.push_back(stats);
  latency.merge(bins, stats.min_ns, stats.max_ns, stats.sum_ns, stats.sum_sq_ns);
  if (stats.posted == 0) return;
  begin_ns_ = std::min(begin_ns_, stats.begin_ns);
  end_ns_ = std::max(end_ns_, stats.end_ns);
  if (end_ns_ > begin_ns_) elapsed_s = static_cast<double>(end_ns_ - begin_ns_) * 1e-9;
}

}  // namespace doorbell::measure
