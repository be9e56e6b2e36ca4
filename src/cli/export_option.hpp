// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// --export: live figures of a run for other programs.
#pragma once

#include <memory>

#include "cli/command.hpp"
#include "export/metrics_server.hpp"
#include "measure/live.hpp"

namespace doorbell::cli {

/// The server that --export asks for, or null without the option. It reads `board`, which must outlive it.
/// Its address goes to standard error, except with --quiet. Throws doorbell::Error naming the option.
[[nodiscard]] std::unique_ptr<exporting::MetricsServer> export_figures(const Options& options,
                                                                       const Context& context,
                                                                       const measure::LiveBoard& board);

}  // namespace doorbell::cli
