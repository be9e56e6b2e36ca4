// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "export/metrics_server.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include "system/descriptor.hpp"
#include "system/library.hpp"

namespace doorbell::exporting {

namespace microhttpd {

constexpr std::array kLibraries = {"libmicrohttpd.so.12"};

// The part of the library's interface that is used here: microhttpd.h of 0.9.71 and later, whose soname
// is 12. The library's manual describes it.
struct Daemon;
struct Connection;
struct Response;
using Handler = int(void* self, Connection* connection, const char* url, const char* method,
                    const char* version, const char* upload, std::size_t* upload_bytes, void** state);
using Notify = void(void* self, Connection* connection, void** socket_state, int what);
union Information {
  int socket;
};
constexpr int kNo = 0;
constexpr unsigned kInternalPollingThread = 8, kAutoPolling = 65536;
constexpr int kOptionEnd = 0, kOptionConnectionMemory = 1, kOptionConnectionLimit = 2,
              kOptionConnectionTimeoutS = 3, kOptionListenSocket = 12, kOptionNotifyConnection = 27;
constexpr int kMustCopy = 2;
constexpr int kConnectionStarted = 0;
constexpr int kSocketOfConnection = 6;
/// Of a connection: the request, and the head of the answer.
constexpr std::size_t kConnectionBytes = 4096;
/// Connections that have been ended and are not closed yet: the library takes ten at a time and then closes
/// what has ended.
constexpr unsigned kEnding = 64;

struct Functions {
  Library library{"DOORBELL_LIBMICROHTTPD", kLibraries, "install libmicrohttpd12"};
  Daemon* (*start_daemon)(unsigned flags, u16 port, void* policy, void* policy_self, Handler* handler,
                          void* self, ...) = library.need("MHD_start_daemon");
  void (*stop_daemon)(Daemon*) = library.need("MHD_stop_daemon");
  Response* (*create_response)(std::size_t bytes, void* text,
                               int mode) = library.need("MHD_create_response_from_buffer");
  int (*add_header)(Response*, const char* name, const char* value) = library.need("MHD_add_response_header");
  int (*queue_response)(Connection*, unsigned status, Response*) = library.need("MHD_queue_response");
  void (*destroy_response)(Response*) = library.need("MHD_destroy_response");
  const Information* (*connection_info)(Connection*, int what, ...) = library.need("MHD_get_connection_info");
};

}  // namespace microhttpd

struct MetricsServer::Http {
  Http(std::string type, Page page_function, ServerLimits server_limits)
      : content_type(std::move(type)), page(std::move(page_function)), limits(server_limits) {}

  microhttpd::Functions mhd;
  exchange::SocketName at;
  std::string content_type;
  Page page;
  ServerLimits limits;
  std::vector<microhttpd::Connection*> readers;  // oldest first; the server's thread's
  std::atomic<u64> ended{0};
  microhttpd::Daemon* daemon = nullptr;

  int answer(microhttpd::Connection* connection, unsigned status, const std::string& type,
             std::string text) const {
    microhttpd::Response* const response =
        mhd.create_response(text.size(), text.data(), microhttpd::kMustCopy);
    if (response == nullptr) return microhttpd::kNo;
    (void)mhd.add_header(response, "Content-Type", type.c_str());
    (void)mhd.add_header(response, "Connection", "close");
    const int queued = mhd.queue_response(connection, status, response);
    mhd.destroy_response(response);
    return queued;
  }

  static int handle(void* self, microhttpd::Connection* connection, const char* url, const char* method,
                    const char* /*version*/, const char* /*upload*/, std::size_t* upload_bytes,
                    void** /*state*/) {
    const Http& http = *static_cast<const Http*>(self);
    const std::string_view verb = method;
    if (verb != "GET" && verb != "HEAD") {
      *upload_bytes = 0;
      return http.answer(connection, 405, "text/plain", "only GET is answered here\n");
    }
    if (std::string_view(url) != "/metrics")
      return http.answer(connection, 404, "text/plain", "the figures are at /metrics\n");
    std::optional<std::string> text = http.page();
    if (!text) return http.answer(connection, 503, "text/plain", "the figures are not to be had now\n");
    return http.answer(connection, 200, http.content_type, *std::move(text));
  }

  static void notify(void* self, microhttpd::Connection* connection, void** /*socket_state*/, int what) {
    Http& http = *static_cast<Http*>(self);
    if (what != microhttpd::kConnectionStarted) {
      std::erase(http.readers, connection);
      return;
    }
    http.readers.push_back(connection);
    if (http.readers.size() <= http.limits.connections) return;
    http.ended.fetch_add(1, std::memory_order_relaxed);
    // The library sees the end of the connection in its next round, and only then closes the socket.
    ::shutdown(http.mhd.connection_info(http.readers.front(), microhttpd::kSocketOfConnection)->socket,
               SHUT_RDWR);
    http.readers.erase(http.readers.begin());
  }
};

MetricsServer::MetricsServer(const exchange::SocketName& at, const char* option, std::string content_type,
                             Page page, ServerLimits limits)
    : http_(std::make_unique<Http>(std::move(content_type), std::move(page), limits)) {
  Descriptor listener = exchange::listen_tcp(at, option);
  http_->at = {at.host, exchange::bound_port(listener.get())};
  start(std::move(listener), fmt::format("{} {}", option, http_->at.text()));
}

MetricsServer::MetricsServer(Descriptor listener, const std::string& subject, std::string content_type,
                             Page page, ServerLimits limits)
    : http_(std::make_unique<Http>(std::move(content_type), std::move(page), limits)) {
  start(std::move(listener), subject);
}

void MetricsServer::start(Descriptor listener, const std::string& subject) {
  // The library closes the socket at its end, and in some of the cases in which it does not start.
  http_->daemon = http_->mhd.start_daemon(
      microhttpd::kInternalPollingThread | microhttpd::kAutoPolling, 0, nullptr, nullptr, &Http::handle,
      http_.get(), microhttpd::kOptionListenSocket, listener.release(), microhttpd::kOptionConnectionLimit,
      http_->limits.connections + microhttpd::kEnding, microhttpd::kOptionConnectionTimeoutS,
      http_->limits.idle_s, microhttpd::kOptionConnectionMemory, microhttpd::kConnectionBytes,
      microhttpd::kOptionNotifyConnection, static_cast<microhttpd::Notify*>(&Http::notify), http_.get(),
      microhttpd::kOptionEnd);
  if (http_->daemon == nullptr) throw Error(subject, "libmicrohttpd could not start its server");
}

MetricsServer::~MetricsServer() {
  http_->mhd.stop_daemon(http_->daemon);
}

void MetricsServer::check_library() {
  static_cast<void>(microhttpd::Functions{});
}

std::string MetricsServer::url() const {
  return http_->at.port == 0 ? "" : fmt::format("http://{}/metrics", http_->at.text());
}

u64 MetricsServer::readers_ended() const {
  return http_->ended.load(std::memory_order_relaxed);
}

}  // namespace doorbell::exporting
