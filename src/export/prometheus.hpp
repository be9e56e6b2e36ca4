// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Live figures in the text format that Prometheus reads (version 0.0.4 of its exposition format).
#pragma once

#include <string>

#include "measure/live.hpp"

namespace doorbell::exporting {

inline constexpr const char* kPrometheusType = "text/plain; version=0.0.4; charset=utf-8";

/// The identity of a run.
struct RunName {
  std::string command;  ///< "nvme"
  std::string version;
  std::string git;
};

/// Counters of operations, bytes and errors by class, the rate of about the last second, percentiles of the
/// latencies so far, and their histogram, from which Prometheus makes percentiles of any interval. A
/// percentile that is not known is left out.
[[nodiscard]] std::string prometheus_text(const measure::LiveFigures& figures, const RunName& name);

}  // namespace doorbell::exporting
