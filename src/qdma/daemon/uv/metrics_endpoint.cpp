// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "qdma/daemon/uv/metrics_endpoint.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <charconv>
#include <cstring>
#include <filesystem>

#include "qdma/daemon/uv/socket_loop.hpp"
#include "qdma/peer/local_socket.hpp"

namespace doorbell::qdma::daemon {

namespace {

constexpr std::size_t kLongestRequest = 4096;
constexpr std::size_t kMostReaders = 16;
constexpr u64 kReaderMs = 5000;  // to ask and to take the answer

sockaddr_storage loopback_address(const std::string& at, const std::string& name) {
  const auto colon = at.rfind(':');
  u32 port = 0;
  const char* const end = at.data() + at.size();
  const auto parsed = colon == std::string::npos ? std::from_chars_result{end, std::errc::invalid_argument}
                                                 : std::from_chars(at.data() + colon + 1, end, port);
  const std::string host = at.substr(0, colon);
  const bool known = host == "127.0.0.1" || host == "[::1]";
  if (parsed.ec != std::errc{} || parsed.ptr != end || port > 0xffff || !known)
    throw Error(name, fmt::format("'{}' is neither a path with a '/' nor 127.0.0.1:PORT or [::1]:PORT", at),
                "the metrics name users, so they are not offered to a network");
  sockaddr_storage address{};
  if (host == "[::1]") uv_ip6_addr("::1", static_cast<int>(port), reinterpret_cast<sockaddr_in6*>(&address));
  else uv_ip4_addr("127.0.0.1", static_cast<int>(port), reinterpret_cast<sockaddr_in*>(&address));
  return address;
}

}  // namespace

struct MetricsEndpoint::Listening {
  MetricsEndpoint* owner = nullptr;
  union {
    uv_stream_t stream;
    uv_pipe_t pipe;
    uv_tcp_t tcp;
  };
  bool local = false;
};

struct MetricsEndpoint::Reader {
  MetricsEndpoint* owner = nullptr;
  union {
    uv_stream_t stream;
    uv_pipe_t pipe;
    uv_tcp_t tcp;
  };
  uv_timer_t timer{};
  uv_write_t write{};
  std::string request, reply;
  std::array<char, 1024> space{};
  int handles = 2;
  bool too_long = false;

  /// Both handles, then this.
  void close() {
    if (uv_is_closing(reinterpret_cast<uv_handle_t*>(&timer)) != 0) return;
    owner->readers_.erase(this);
    const auto closed = [](uv_handle_t* h) {
      auto* const self = static_cast<Reader*>(h->data);
      if (--self->handles == 0) delete self;
    };
    uv_close(reinterpret_cast<uv_handle_t*>(&stream), closed);
    uv_close(reinterpret_cast<uv_handle_t*>(&timer), closed);
  }
};

void check_metrics_address(const std::string& at, const std::string& name) {
  if (at.find('/') == std::string::npos) {
    static_cast<void>(loopback_address(at, name));
    return;
  }
  static_cast<void>(local_address(at, fmt::format("{} {}", name, at)));
  // libuv calls it a lack of permission.
  const auto folder = std::filesystem::path(at).parent_path();
  std::error_code ignored;
  if (!std::filesystem::is_directory(folder, ignored))
    throw Error(fmt::format("{} {}", name, at), fmt::format("there is no folder {}", folder.string()));
}

MetricsEndpoint::MetricsEndpoint(uv_loop_t* loop, const std::string& at, std::function<std::string()> text,
                                 const std::string& name)
    : listening_(nullptr), loop_(loop), text_(std::move(text)) {
  const bool local = at.find('/') != std::string::npos;
  sockaddr_storage address{};
  Descriptor fd;
  if (local) fd = listen_at(at, {}, name, SOCK_STREAM);
  else address = loopback_address(at, name);
  listening_ = new Listening;
  listening_->owner = this;
  listening_->local = local;
  int rc = 0;
  if (local) {
    // libuv's own bind removes whatever lies at the path when the pipe is closed.
    file_ = SocketFile(at);
    uv_pipe_init(loop, &listening_->pipe, 0);
    rc = uv_pipe_open(&listening_->pipe, fd.get());
    if (rc == 0) static_cast<void>(fd.release());
  } else {
    uv_tcp_init(loop, &listening_->tcp);
    rc = uv_tcp_bind(&listening_->tcp, reinterpret_cast<const sockaddr*>(&address), 0);
  }
  listening_->stream.data = listening_;
  if (rc == 0)
    rc = uv_listen(&listening_->stream, 16, [](uv_stream_t* s, int status) {
      if (status == 0) static_cast<Listening*>(s->data)->owner->accept();
    });
  if (rc != 0) {
    uv_close(reinterpret_cast<uv_handle_t*>(&listening_->stream),
             [](uv_handle_t* h) { delete static_cast<Listening*>(h->data); });
    throw Error(fmt::format("{} {}", name, at), uv_strerror(rc));
  }
}

MetricsEndpoint::~MetricsEndpoint() {
  while (!readers_.empty()) (*readers_.begin())->close();
  uv_close(reinterpret_cast<uv_handle_t*>(&listening_->stream),
           [](uv_handle_t* h) { delete static_cast<Listening*>(h->data); });
  file_.remove();
}

u16 MetricsEndpoint::port() const {
  sockaddr_in6 address{};
  int size = sizeof address;
  if (listening_->local ||
      uv_tcp_getsockname(&listening_->tcp, reinterpret_cast<sockaddr*>(&address), &size) != 0)
    return 0;
  return ntohs(address.sin6_port);  // at the same place in both families
}

void MetricsEndpoint::accept() {
  auto* const r = new Reader;
  r->owner = this;
  if (listening_->local) uv_pipe_init(loop_, &r->pipe, 0);
  else uv_tcp_init(loop_, &r->tcp);
  uv_timer_init(loop_, &r->timer);
  r->stream.data = r->timer.data = r->write.data = r;
  readers_.insert(r);
  if (uv_accept(&listening_->stream, &r->stream) != 0 || readers_.size() > kMostReaders) return r->close();
  uv_timer_start(
      &r->timer, [](uv_timer_t* t) { static_cast<Reader*>(t->data)->close(); }, kReaderMs, 0);
  uv_read_start(
      &r->stream,
      [](uv_handle_t* h, std::size_t, uv_buf_t* out) {
        auto& space = static_cast<Reader*>(h->data)->space;
        *out = uv_buf_init(space.data(), static_cast<unsigned>(space.size()));
      },
      [](uv_stream_t* s, ssize_t n, const uv_buf_t* in) {
        auto* const reader = static_cast<Reader*>(s->data);
        if (n < 0) return reader->close();
        reader->request.append(in->base, static_cast<std::size_t>(n));
        if (reader->request.find("\r\n\r\n") != std::string::npos) return reader->owner->answer(*reader);
        if (reader->request.size() <= kLongestRequest) return;
        // The rest is read and forgotten: an answer before its end would be lost with the connection.
        reader->too_long = true;
        reader->request.erase(0, reader->request.size() - 3);
      });
}

void MetricsEndpoint::answer(Reader& r) {
  uv_read_stop(&r.stream);
  const std::string line = r.request.substr(0, r.request.find("\r\n"));
  const char* status = "200 OK";
  std::string body;
  if (r.too_long || r.request.size() > kLongestRequest) status = "431 Request Header Fields Too Large";
  else if (!line.starts_with("GET ")) status = "405 Method Not Allowed";
  else if (!line.starts_with("GET /metrics ")) status = "404 Not Found";
  else body = text_();
  r.reply = fmt::format(
      "HTTP/1.0 {}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}",
      status, body.size(), body);
  uv_buf_t out = uv_buf_init(r.reply.data(), static_cast<unsigned>(r.reply.size()));
  if (uv_write(&r.write, &r.stream, &out, 1,
               [](uv_write_t* w, int) { static_cast<Reader*>(w->data)->close(); }) != 0)
    r.close();
}

}  // namespace doorbell::qdma::daemon
