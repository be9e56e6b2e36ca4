// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "export/metrics_server.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

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
constexpr int kNo = 0;
constexpr unsigned kInternalPollingThread = 8, kAutoPolling = 65536;
constexpr int kOptionEnd = 0, kOptionConnectionLimit = 2, kOptionConnectionTimeoutS = 3,
              kOptionListenSocket = 12;
constexpr int kMustCopy = 2;
constexpr unsigned kConnections = 16, kIdleS = 15;

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
};

}  // namespace microhttpd

struct MetricsServer::Http {
  microhttpd::Functions mhd;
  exchange::SocketName at;
  std::string content_type;
  std::function<std::string()> page;
  microhttpd::Daemon* daemon = nullptr;

  int answer(microhttpd::Connection* connection, unsigned status, const std::string& type,
             std::string text) const {
    microhttpd::Response* const response =
        mhd.create_response(text.size(), text.data(), microhttpd::kMustCopy);
    if (response == nullptr) return microhttpd::kNo;
    (void)mhd.add_header(response, "Content-Type", type.c_str());
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
    return http.answer(connection, 200, http.content_type, http.page());
  }
};

MetricsServer::MetricsServer(const exchange::SocketName& at, const char* option, std::string content_type,
                             std::function<std::string()> page)
    : http_(std::make_unique<Http>()) {
  http_->at = at;
  http_->content_type = std::move(content_type);
  http_->page = std::move(page);
  Descriptor socket = exchange::listen_tcp(at, option);
  http_->at.port = exchange::bound_port(socket.get());
  http_->daemon = http_->mhd.start_daemon(
      microhttpd::kInternalPollingThread | microhttpd::kAutoPolling, 0, nullptr, nullptr, &Http::handle,
      http_.get(), microhttpd::kOptionListenSocket, socket.get(), microhttpd::kOptionConnectionLimit,
      microhttpd::kConnections, microhttpd::kOptionConnectionTimeoutS, microhttpd::kIdleS,
      microhttpd::kOptionEnd);
  if (http_->daemon == nullptr)
    throw Error(fmt::format("{} {}", option, at.text()), "libmicrohttpd could not start its server");
  (void)socket.release();  // the daemon closes it
}

MetricsServer::~MetricsServer() {
  http_->mhd.stop_daemon(http_->daemon);
}

std::string MetricsServer::url() const {
  return fmt::format("http://{}/metrics", http_->at.text());
}

}  // namespace doorbell::exporting
