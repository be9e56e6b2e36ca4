// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Where Prometheus reads the daemon's metrics: a unix socket, or a port of 127.0.0.1 or [::1].
#pragma once

#include <doorbell/config.hpp>

#include <functional>
#include <string>

#include "export/asked_page.hpp"
#include "export/metrics_server.hpp"
#include "service/local_socket.hpp"
#include "system/descriptor.hpp"

namespace doorbell::qdma::daemon {

/// Throws Error, which begins with `name`, unless `at` is a path with a '/' in a folder that is there,
/// 127.0.0.1:PORT or [::1]:PORT, and libmicrohttpd can be opened (ExitCode::absent). Opens no socket.
void check_metrics_address(const std::string& at, const std::string& name);

/// Serves GET and HEAD of /metrics by a thread of its own; the text is made by the loop's. Constructed and
/// destroyed by the loop's thread. The destructor does not wait for the loop, and `text` is not called after
/// it.
class MetricsEndpoint {
 public:
  /// `at`: as check_metrics_address() takes it. `post`: has a call made by the loop's thread; the server's
  /// thread calls it. `text`: called by the loop's thread; if it has not been within a second, the answer is
  /// 503. Throws Error.
  MetricsEndpoint(const std::string& at, const std::string& name, exporting::AskedPage::Post post,
                  std::function<std::string()> text);
  ~MetricsEndpoint();
  MetricsEndpoint(const MetricsEndpoint&) = delete;
  MetricsEndpoint& operator=(const MetricsEndpoint&) = delete;

  /// The port of a TCP endpoint; 0 of a path.
  [[nodiscard]] u16 port() const { return port_; }

 private:
  MetricsEndpoint(Descriptor listener, const std::string& at, const std::string& name,
                  exporting::AskedPage::Post post, std::function<std::string()> text);
  service::SocketFile file_;  // of a socket with a path
  u16 port_ = 0;
  exporting::AskedPage page_;
  exporting::MetricsServer server_;
};

}  // namespace doorbell::qdma::daemon
