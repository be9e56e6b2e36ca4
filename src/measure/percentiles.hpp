// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The percentiles that a Result has.
#pragma once

#include "report/result.hpp"

namespace doorbell::measure {

/// Fills them in: `percentile` gives the one of a share in percent, in ns, or none.
template <class Percentile>
void fill_percentiles(report::Latency& l, const Percentile& percentile) {
  l.p50 = percentile(50);
  l.p90 = percentile(90);
  l.p95 = percentile(95);
  l.p99 = percentile(99);
  l.p99_9 = percentile(99.9);
  l.p99_99 = percentile(99.99);
}

}  // namespace doorbell::measure
