// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A server of one page over HTTP, for programs that collect figures: GNU libmicrohttpd, opened at run time.
#pragma once

#include <doorbell/config.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "exchange/socket.hpp"
#include "system/descriptor.hpp"

namespace doorbell::exporting {

struct ServerLimits {
  u32 connections = 64;  ///< one more ends the oldest, so that a newcomer always gets in
  u32 idle_s = 15;       ///< a connection on which nothing moves for so long is ended
};

/// Answers GET and HEAD of /metrics by a thread of its own from the constructor on until the destructor,
/// which waits for that thread. Everything else is 404 or 405, a request of more than about 4 KiB 414 or 431.
/// A connection is answered once and closed: the oldest one is a slow one.
class MetricsServer {
 public:
  /// Called by the server's thread, which serves nobody else meanwhile; must not throw. Without a page the
  /// answer is 503.
  using Page = std::function<std::optional<std::string>()>;

  /// Serves at this address. Port 0: a free one. Throws doorbell::Error: the address cannot be taken (its
  /// text names `option`), or the library is absent (ExitCode::absent).
  MetricsServer(const exchange::SocketName& at, const char* option, std::string content_type, Page page,
                ServerLimits limits = {});
  /// Serves at a listening stream socket of any family. Throws doorbell::Error: `subject` could not be
  /// served, or the library is absent (ExitCode::absent).
  MetricsServer(Descriptor listener, const std::string& subject, std::string content_type, Page page,
                ServerLimits limits = {});
  ~MetricsServer();
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

  /// Throws doorbell::Error (ExitCode::absent) where the library is absent. Any thread.
  static void check_library();

  /// "http://127.0.0.1:9100/metrics"; empty for a socket that was handed over.
  [[nodiscard]] std::string url() const;
  /// Connections that have been ended for a newcomer. Any thread, the page's included.
  [[nodiscard]] u64 readers_ended() const;

 private:
  void start(Descriptor listener, const std::string& subject);
  struct Http;
  std::unique_ptr<Http> http_;
};

}  // namespace doorbell::exporting
