// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Where Prometheus reads: HTTP/1.0 on a unix socket or on 127.0.0.1. It knows GET /metrics only, answers once
// and closes.
#pragma once

#include <uv.h>

#include <functional>
#include <set>
#include <string>

#include <doorbell/config.hpp>

#include "qdma/peer/local_socket.hpp"

namespace doorbell::qdma::daemon {

/// Throws Error unless `at` is a path with a '/', 127.0.0.1:PORT or [::1]:PORT.
void check_metrics_address(const std::string& at, const std::string& name);

class MetricsEndpoint {
 public:
  /// `at`: a path (with a '/'), or "127.0.0.1:PORT" or "[::1]:PORT". Throws Error.
  MetricsEndpoint(uv_loop_t* loop, const std::string& at, std::function<std::string()> text,
                  const std::string& name);
  ~MetricsEndpoint();
  MetricsEndpoint(const MetricsEndpoint&) = delete;
  MetricsEndpoint& operator=(const MetricsEndpoint&) = delete;

  /// The port of a TCP endpoint.
  [[nodiscard]] u16 port() const;

 private:
  struct Reader;
  struct Listening;
  void accept();
  void answer(Reader& r);
  Listening* listening_;
  uv_loop_t* loop_;
  std::function<std::string()> text_;
  std::set<Reader*> readers_;
  SocketFile file_;  // of a socket with a path
};

}  // namespace doorbell::qdma::daemon
