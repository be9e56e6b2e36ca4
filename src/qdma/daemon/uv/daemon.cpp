// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "qdma/daemon/uv/daemon.hpp"

#include <doorbell/error.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "qdma/daemon/uv/metrics_endpoint.hpp"
#include "qdma/daemon/uv/socket_loop.hpp"
#include "qdma/peer/local_socket.hpp"
#include "system/clock.hpp"
#include "system/sysfs.hpp"

namespace doorbell::qdma::daemon {

namespace {

Roles read_roles(const DaemonOptions& o) {
  if (o.roles_file.empty()) return Roles::defaults(::geteuid());
  return Roles::read(o.roles_file, NameService::system());
}

/// Calls of other threads, which the loop's thread makes.
class PostedCalls {
 public:
  explicit PostedCalls(uv_loop_t* loop) : wake_(new uv_async_t{}) {
    uv_async_init(loop, wake_, [](uv_async_t* a) { static_cast<PostedCalls*>(a->data)->run(); });
    wake_->data = this;
  }
  /// No thread posts any more.
  ~PostedCalls() {
    uv_close(reinterpret_cast<uv_handle_t*>(wake_),
             [](uv_handle_t* h) { delete reinterpret_cast<uv_async_t*>(h); });
  }
  PostedCalls(const PostedCalls&) = delete;
  PostedCalls& operator=(const PostedCalls&) = delete;

  /// Any thread.
  void post(std::function<void()> call) {
    {
      const std::scoped_lock lock(mutex_);
      calls_.push_back(std::move(call));
    }
    uv_async_send(wake_);
  }

 private:
  void run() {
    std::vector<std::function<void()>> calls;
    {
      const std::scoped_lock lock(mutex_);
      calls.swap(calls_);
    }
    for (const auto& call : calls) call();
  }

  std::mutex mutex_;
  std::vector<std::function<void()>> calls_;
  uv_async_t* wake_;  // libuv's until it has closed it
};

class RunningDaemon {
 public:
  RunningDaemon(std::shared_ptr<Driver> card, const DaemonOptions& options, std::vector<Descriptor> sockets,
                Log& log)
      : options_(options), log_(log), service_(std::move(card), options.service, roles(), loop_, loop_, log) {
    loop_.set_events({.next = [this] { return service_.next_socket(); },
                      .connect = [this](SocketId id, Peer p) { return connect(id, std::move(p)); },
                      .message = [this](SocketId id, Message m) { service_.message(id, std::move(m)); },
                      .closed = [this](SocketId id) { service_.closed(id); },
                      .refused = [this](std::string_view why) { refused(why); }});
    if (!options.metrics.empty())
      metrics_.emplace(
          options.metrics, options.metrics_name,
          [this](std::function<void()> call) { posted_.post(std::move(call)); },
          [this] { return prometheus_text(service_.metrics(), service_.gauges()); });
    if (sockets.empty()) {
      sockets.push_back(listen_at(options.socket, options.socket_mode, options.socket_name));
      file_ = SocketFile(options.socket);
    }
    for (Descriptor& socket : sockets) loop_.listen(std::move(socket));
    for (std::size_t i = 0; i < std::size(signals_); ++i) {
      uv_signal_init(loop_.uv(), &signals_[i]);
      signals_[i].data = this;
      uv_signal_start(
          &signals_[i],
          [](uv_signal_t* s, int number) { static_cast<RunningDaemon*>(s->data)->take_signal(number); },
          kSignals[i]);
    }
    for (uv_timer_t* const timer : {&watchdog_, &ending_, &silent_}) {
      uv_timer_init(loop_.uv(), timer);
      timer->data = this;
    }
  }

  ~RunningDaemon() {
    for (uv_signal_t& s : signals_) uv_close(reinterpret_cast<uv_handle_t*>(&s), nullptr);
    for (uv_timer_t* const timer : {&watchdog_, &ending_, &silent_})
      uv_close(reinterpret_cast<uv_handle_t*>(timer), nullptr);
    metrics_.reset();
    uv_run(loop_.uv(), UV_RUN_NOWAIT);  // the handles above are members: they must be closed before they go
    file_.remove();
  }

  int run() {
    u64 watchdog_us = 0;
    if (sd_watchdog_enabled(0, &watchdog_us) > 0)
      uv_timer_start(
          &watchdog_, [](uv_timer_t*) { static_cast<void>(sd_notify(0, "WATCHDOG=1")); }, 0,
          watchdog_us / 2000);
    if (metrics_ && metrics_->port() != 0)
      log_.write({Priority::notice, fmt::format("serves metrics at port {}", metrics_->port())});
    log_.write({Priority::notice, fmt::format("serves the card {}{}", service_.info().bdf.data(),
                                              file_.path().empty() ? "" : " at " + file_.path())});
    static_cast<void>(sd_notify(0, "READY=1\nSTATUS=serves clients"));
    loop_.run();
    return code_;
  }

 private:
  static constexpr int kSignals[] = {SIGTERM, SIGINT, SIGHUP};

  [[nodiscard]] Roles roles() const {
    Roles roles = read_roles(options_);
    for (const std::string& warning : roles.warnings()) log_.write({Priority::warning, warning});
    return roles;
  }

  int connect(SocketId id, Peer peer) {
    const int error = service_.connect(id, std::move(peer));
    if (error == 0 && uv_is_active(reinterpret_cast<uv_handle_t*>(&silent_)) == 0) watch_silent(wall_ns());
    return error;
  }

  /// Looks again when the next client should have sent its first request.
  void watch_silent(u64 now_ns) {
    const u64 next_ns = service_.end_silent(now_ns);
    if (next_ns == 0) return;
    uv_timer_start(
        &silent_, [](uv_timer_t* t) { static_cast<RunningDaemon*>(t->data)->watch_silent(wall_ns()); },
        (next_ns - now_ns) / 1'000'000 + 1, 0);
  }

  void refused(std::string_view why) {
    service_.count_refused(why);
    // Nobody knows whose it was: the users share what one may cause.
    log_.write({.priority = Priority::warning,
                .text = fmt::format("a client could not be taken: {}",
                                    why == "descriptors" ? "no descriptor is free" : why),
                .user = ~uid_t{0}});
  }

  void take_signal(int number) {
    if (number == SIGHUP) return reload();
    if (ending_since_ns_ != 0) return;
    ending_since_ns_ = wall_ns();
    log_.write({Priority::notice, "ends: clients are disconnected"});
    static_cast<void>(sd_notify(0, "STOPPING=1"));
    loop_.stop_listening();
    service_.close_all();
    uv_timer_start(
        &ending_, [](uv_timer_t* t) { static_cast<RunningDaemon*>(t->data)->look_whether_ended(); }, 0, 5);
  }

  void look_whether_ended() {
    if (service_.idle()) return loop_.stop();
    if (static_cast<double>(wall_ns() - ending_since_ns_) < options_.end_s * 1e9) return;
    const Gauges now = service_.gauges();
    log_.write({Priority::error,
                fmt::format("the card is not quiet after {} s: {} calls in progress, {} queue pairs",
                            options_.end_s, now.running, now.held.queue_pairs)});
    // A worker that does not come back cannot be waited for; the kernel takes back what the process holds.
    file_.remove();
    log_.flush();
    ::_exit(2);
  }

  void reload() {
    static_cast<void>(
        sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%llu", static_cast<unsigned long long>(wall_ns() / 1000)));
    try {
      service_.set_roles(roles());
      log_.write({Priority::notice, "the roles have been read again"});
    } catch (const Error& e) {
      log_.write({Priority::error, fmt::format("the roles stay as they were: {}", e.what())});
    }
    static_cast<void>(sd_notify(0, "READY=1"));
  }

  const DaemonOptions& options_;
  Log& log_;
  SocketLoop loop_;
  Service service_;
  PostedCalls posted_{loop_.uv()};
  std::optional<MetricsEndpoint> metrics_;  // its thread posts
  SocketFile file_;                         // of a socket of this process's own
  uv_signal_t signals_[3]{};
  uv_timer_t watchdog_{}, ending_{}, silent_{};
  u64 ending_since_ns_ = 0;
  int code_ = 0;
};

}  // namespace

void check(const DaemonOptions& o) {
  if (!o.metrics.empty()) check_metrics_address(o.metrics, o.metrics_name);
  static_cast<void>(local_address(o.socket, fmt::format("{} {}", o.socket_name, o.socket)));
  static_cast<void>(read_roles(o));
}

std::vector<Descriptor> activated_sockets() {
  const int count = sd_listen_fds(1);
  if (count < 0)
    throw Error("socket activation", reason(-count),
                "LISTEN_FDS is more than the descriptors that were passed");
  for (int fd = SD_LISTEN_FDS_START; fd < SD_LISTEN_FDS_START + count; ++fd)
    if (sd_is_socket_unix(fd, SOCK_SEQPACKET, 1, nullptr, 0) <= 0)
      throw Error(fmt::format("descriptor {} of the service manager", fd),
                  "is no listening unix socket of sequential packets",
                  "the socket unit needs ListenSequentialPacket=");
  std::vector<Descriptor> sockets;
  for (int i = 0; i < count; ++i) sockets.emplace_back(SD_LISTEN_FDS_START + i);
  return sockets;
}

int run_daemon(std::shared_ptr<Driver> card, const DaemonOptions& options, std::vector<Descriptor> sockets,
               Log& log) {
  return RunningDaemon(std::move(card), options, std::move(sockets), log).run();
}

}  // namespace doorbell::qdma::daemon
