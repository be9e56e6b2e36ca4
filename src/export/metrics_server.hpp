// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A server of one page over HTTP, for programs that collect figures: GNU libmicrohttpd, opened at run time.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "exchange/socket.hpp"

namespace doorbell::exporting {

/// Answers GET and HEAD of /metrics by a thread of its own from the constructor on until the destructor,
/// which waits for that thread. Everything else is 404 or 405.
class MetricsServer {
 public:
  /// `page` is called by the server's thread and must not throw. Port 0: a free one. Throws doorbell::Error:
  /// the address cannot be taken (its text names `option`), or the library is absent (ExitCode::absent).
  MetricsServer(const exchange::SocketName& at, const char* option, std::string content_type,
                std::function<std::string()> page);
  ~MetricsServer();
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

  /// "http://127.0.0.1:9100/metrics"
  [[nodiscard]] std::string url() const;

 private:
  struct Http;
  std::unique_ptr<Http> http_;
};

}  // namespace doorbell::exporting
