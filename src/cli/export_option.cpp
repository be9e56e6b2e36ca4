// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/export_option.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <string_view>

#include "export/prometheus.hpp"
#include "report/tool.hpp"

namespace doorbell::cli {

namespace {

constexpr const char* kExport = "--export";

/// Only programs of this machine can read the figures unless another address is given.
exchange::SocketName export_address(const std::string& text) {
  constexpr std::string_view kFormat = "prometheus=";
  if (!text.starts_with(kFormat))
    throw Error(kExport, fmt::format("'{}' is not prometheus=[ADDR:]PORT", text),
                "give prometheus=9100, for example");
  exchange::SocketName at = exchange::parse_listen(text.substr(kFormat.size()), kExport);
  if (at.host.empty()) at.host = "127.0.0.1";
  return at;
}

}  // namespace

std::unique_ptr<exporting::MetricsServer> export_figures(const Options& options, const Context& context,
                                                         const measure::LiveBoard& board) {
  if (!options.has("export")) return nullptr;
  // The run's words: the program's name, then the command's.
  const std::string command = context.argv.size() > 1 ? context.argv[1] : context.program;
  const exporting::RunName name = {command, report::tool().version, report::tool().git};
  auto server = std::make_unique<exporting::MetricsServer>(
      export_address(options.text("export")), kExport, exporting::kPrometheusType,
      [&board, name] { return exporting::prometheus_text(board.figures(), name); });
  if (!options.flag("quiet")) fmt::print(stderr, "figures at {}\n", server->url());
  return server;
}

}  // namespace doorbell::cli
