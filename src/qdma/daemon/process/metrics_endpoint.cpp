// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "qdma/daemon/process/metrics_endpoint.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <sys/socket.h>

#include <charconv>
#include <filesystem>
#include <utility>

#include "exchange/socket.hpp"
#include "export/metric_text.hpp"
#include "export/prometheus.hpp"

namespace doorbell::qdma::daemon {

namespace {

bool is_path(const std::string& at) {
  return at.find('/') != std::string::npos;
}

exchange::SocketName loopback_address(const std::string& at, const std::string& name) {
  const auto colon = at.rfind(':');
  u16 port = 0;
  const char* const end = at.data() + at.size();
  const auto parsed = colon == std::string::npos ? std::from_chars_result{end, std::errc::invalid_argument}
                                                 : std::from_chars(at.data() + colon + 1, end, port);
  const std::string host = at.substr(0, colon);
  const bool known = host == "127.0.0.1" || host == "[::1]";
  if (parsed.ec != std::errc{} || parsed.ptr != end || !known)
    throw Error(name, fmt::format("'{}' is neither a path with a '/' nor 127.0.0.1:PORT or [::1]:PORT", at),
                "the metrics name users, so they are not offered to a network");
  return {host == "[::1]" ? "::1" : host, port};
}

Descriptor listen(const std::string& at, const std::string& name) {
  // Nothing is opened, and no file is made, where nobody can serve.
  exporting::MetricsServer::check_library();
  return is_path(at) ? service::listen_at(at, fmt::format("{} {}", name, at), {.type = SOCK_STREAM})
                     : exchange::listen_tcp(loopback_address(at, name), name);
}

}  // namespace

void check_metrics_address(const std::string& at, const std::string& name) {
  if (is_path(at)) {
    static_cast<void>(service::local_address(at, fmt::format("{} {}", name, at)));
    const auto folder = std::filesystem::path(at).parent_path();
    std::error_code ignored;
    if (!std::filesystem::is_directory(folder, ignored))
      throw Error(fmt::format("{} {}", name, at), fmt::format("there is no folder {}", folder.string()));
  } else {
    static_cast<void>(loopback_address(at, name));
  }
  exporting::MetricsServer::check_library();
}

MetricsEndpoint::MetricsEndpoint(const std::string& at, const std::string& name,
                                 exporting::AskedPage::Post post, std::function<std::string()> text)
    : MetricsEndpoint(listen(at, name), at, name, std::move(post), std::move(text)) {}

MetricsEndpoint::MetricsEndpoint(Descriptor listener, const std::string& at, const std::string& name,
                                 exporting::AskedPage::Post post, std::function<std::string()> text)
    : file_(is_path(at) ? service::SocketFile(at) : service::SocketFile()),
      port_(is_path(at) ? 0 : exchange::bound_port(listener.get())),
      page_(std::move(post), std::move(text)),
      server_(std::move(listener), fmt::format("{} {}", name, at), exporting::kPrometheusType,
              [this]() -> std::optional<std::string> {
                std::optional<std::string> page = page_.ask();
                if (!page) return page;
                exporting::MetricText own("doorbelld_");
                own.one("metrics_readers_ended_total", "counter",
                        "Slow readers of this page that have been ended for a newcomer.",
                        server_.readers_ended());
                return *std::move(page) + own.take();
              }) {}

MetricsEndpoint::~MetricsEndpoint() {
  // The loop makes no page while this waits for the server's thread.
  page_.end();
  file_.remove();
}

}  // namespace doorbell::qdma::daemon
