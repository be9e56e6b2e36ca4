// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "qdma/daemon/process/process.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <optional>

#include "qdma/daemon/process/metrics_endpoint.hpp"
#include "service/local_socket.hpp"
#include "service/signals.hpp"
#include "service/socket_loop.hpp"
#include "service/spare_memory.hpp"
#include "service/systemd/manager.hpp"
#include "system/clock.hpp"
#include "system/open_files.hpp"
#include "system/sysfs.hpp"

namespace doorbell::qdma::daemon {

using service::Priority;

namespace {

/// How often the service manager is told what it has not taken yet, and a card that has gone is looked for.
constexpr u64 kAgainNs = 100'000'000, kReopenNs = 1'000'000'000, kBuffersNs = 250'000'000;

std::string subject_of(const DaemonOptions& o) {
  return fmt::format("{} {}", o.socket_name, o.socket);
}

Roles read_roles(const DaemonOptions& o) {
  if (o.roles_file.empty()) return Roles::defaults(::geteuid());
  return Roles::read(o.roles_file, NameService::system());
}

class RunningDaemon final : public service::Protocol {
 public:
  RunningDaemon(const OpenCard& open_card, const DaemonOptions& options, std::vector<Descriptor> sockets,
                service::Log& log)
      : options_(options),
        log_(log),
        open_card_(open_card),
        loop_({.clients = {.longest = kMaxMessage, .most_unsent = 1},
               .pairs = {.longest = wire::kMaxMessage, .most_unsent = wire::kMaxInFlight},
               .workers = options.service.limits.control + options.service.limits.host_buffers +
                          options.service.limits.transfers}),
        service_(open_card(), options.service, roles(), loop_, loop_, log) {
    loop_.serve(*this);
    service_.on_card_gone([this] { loop_.post([this] { card_has_gone(); }); });
    if (!options.metrics.empty())
      metrics_.emplace(
          options.metrics, options.metrics_name,
          [this](std::function<void()> f) { loop_.post(std::move(f)); }, [this] { return page(); });
    if (sockets.empty()) {
      sockets.push_back(service::listen_at(options.socket, subject_of(options),
                                           {.mode = options.socket_mode, .group = socket_group()}));
      file_ = service::SocketFile(options.socket);
    }
    for (Descriptor& socket : sockets) loop_.listen(std::move(socket));
    loop_.watch(signals_.fd(), [this] { take_signals(); });
    service::SpareMemory::provide();
  }

  int run() {
    feed_watchdog();
    warn_of_files();
    if (metrics_ && metrics_->port() != 0)
      log_.write({Priority::notice, fmt::format("serves metrics at port {}", metrics_->port())});
    log_.write({Priority::notice, fmt::format("serves the card {}{}", service_.info().bdf.data(),
                                              file_.path().empty() ? "" : " at " + file_.path())});
    look_at_buffers();
    tell("READY=1\nSTATUS=serves clients");
    loop_.run();
    metrics_.reset();
    file_.remove();
    return 0;
  }

  // Protocol
  service::SocketId next_socket() override { return service_.next_socket(); }
  int connect(service::SocketId id, service::Peer peer) override {
    if (gone_) {
      service_.count_refused("card");
      return ENODEV;
    }
    const int error = service_.connect(id, std::move(peer));
    if (error == 0 && !silent_.running()) watch_silent();
    return error;
  }
  std::vector<u8> refusal(int error) override { return refusal_message(error, "", 0, false); }
  void message(service::SocketId id, service::Message m) override { service_.message(id, std::move(m)); }
  void closed(service::SocketId id) override { service_.closed(id); }
  void refused(std::string_view why) override {
    service_.count_refused(why);
    // Nobody knows whose it was: the users share what one may cause.
    log_.write({.priority = Priority::warning,
                .text = fmt::format("a client could not be taken: {}",
                                    why == "descriptors" ? "no descriptor is free" : why),
                .user = service::kNobody});
  }

 private:
  [[nodiscard]] Roles roles() const {
    Roles roles = read_roles(options_);
    for (const std::string& warning : roles.warnings()) log_.write({Priority::warning, warning});
    return roles;
  }

  [[nodiscard]] std::optional<gid_t> socket_group() const {
    if (options_.socket_group.empty()) return {};
    const auto group = NameService::system().group(options_.socket_group);
    // The default group is made by whoever wants others than root to connect.
    if (!group && options_.socket_group == DaemonOptions{}.socket_group)
      log_.write({Priority::notice, fmt::format("there is no group {}: the socket is the daemon's own",
                                                options_.socket_group)});
    else if (!group)
      throw Error(fmt::format("{} {}", options_.group_name, options_.socket_group), "there is no such group");
    return group;
  }

  /// One user should not be able to take all descriptors of this process.
  void warn_of_files() const {
    const u64 most = open_file_limit();
    const Quotas& q = options_.service.quotas;
    const u64 one = u64{q.connections} + q.descriptors + q.host_buffers + q.sent_files +
                    service::Closers::kMostWaiting + service::kMostFiles;
    const u64 open = open_file_count().value_or(0);
    if (open + one <= most) return;
    log_.write({Priority::warning,
                fmt::format("one user may hold {} descriptors of this process, and {} of {} are free: others "
                            "may be refused; raise the limit (ulimit -n, LimitNOFILE=) or lower the quotas",
                            one, most - std::min(open, most), most)});
  }

  std::string page() {
    Gauges now = service_.gauges();
    now.closing = loop_.closing();
    now.card_gone = gone_;
    return prometheus_text(service_.metrics(), now);
  }

  /// Disconnects who has sent nothing; looks again when the next client should have sent its first request.
  void watch_silent() {
    const u64 now_ns = wall_ns();
    const u64 next_ns = service_.end_silent(now_ns);
    if (next_ns != 0) silent_.start(next_ns - now_ns + 1'000'000);
  }

  /// No event says that a host buffer has gone.
  void look_at_buffers() {
    if (!gone_ && ending_since_ns_ == 0) service_.look_at_host_buffers();
    buffers_.start(kBuffersNs);
  }

  void feed_watchdog() {
    const u64 every_ns = service::watchdog_ns();
    if (every_ns == 0) return;
    static_cast<void>(service::notify("WATCHDOG=1"));
    watchdog_.start(every_ns / 2);
  }

  /// The service manager is told later what it does not take now.
  void tell(const std::string& state) {
    untold_ = service::notify(state) ? "" : state;
    if (!untold_.empty()) telling_.start(kAgainNs);
  }

  void take_signals() {
    for (int number = signals_.take(); number != 0; number = signals_.take())
      if (number == SIGHUP) reload();
      else end();
  }

  void end() {
    if (ending_since_ns_ != 0) return;
    ending_since_ns_ = wall_ns();
    log_.write({Priority::notice, "ends: clients are disconnected"});
    tell("STOPPING=1");
    loop_.stop_listening();
    service_.close_all();
    look_whether_ended();
  }

  void look_whether_ended() {
    if (service_.idle()) return loop_.stop();
    if (static_cast<double>(wall_ns() - ending_since_ns_) < options_.end_s * 1e9)
      return ending_.start(5'000'000);
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
    tell(fmt::format("RELOADING=1\nMONOTONIC_USEC={}", wall_ns() / 1000));
    try {
      service_.set_roles(roles());
      log_.write({Priority::notice, "the roles have been read again"});
    } catch (const Error& e) {
      log_.write({Priority::error, fmt::format("the roles stay as they were: {}", e.what())});
    }
    tell("READY=1");
  }

  /// Its clients hold nothing any more; they find a card again when there is one.
  void card_has_gone() {
    if (gone_ || ending_since_ns_ != 0) return;
    gone_ = true;
    log_.write({Priority::error, "the card has gone: clients are disconnected until it is back"});
    tell("STATUS=the card has gone");
    service_.close_all();
    reopening_.start(kReopenNs);
  }

  void reopen() {
    if (ending_since_ns_ != 0) return;
    if (!service_.idle()) return reopening_.start(kAgainNs);
    struct Found {
      std::shared_ptr<Driver> card;
      Info info;
      bool good = false;
    };
    auto found = std::make_shared<Found>();
    loop_.run(
        [open = open_card_, found] {
          try {
            found->card = open();
            found->good = read_info(*found->card, found->info) >= 0;
          } catch (const Error&) {
            // It is not back.
          }
        },
        [this, found] {
          if (ending_since_ns_ != 0) return;
          if (!found->good) return reopening_.start(kReopenNs);
          service_.set_card(found->card, found->info);
          gone_ = false;
          log_.write({Priority::notice, fmt::format("serves the card {} again", service_.info().bdf.data())});
          tell("STATUS=serves clients");
        });
  }

  const DaemonOptions& options_;
  service::Log& log_;
  const OpenCard open_card_;
  service::Signals signals_{SIGTERM, SIGINT, SIGHUP};
  service::SocketLoop loop_;
  Service service_;
  std::optional<MetricsEndpoint> metrics_;
  service::SocketFile file_;  // of a socket of this process's own
  service::Timer watchdog_{loop_, [this] { feed_watchdog(); }};
  service::Timer telling_{loop_, [this] { tell(untold_); }};
  service::Timer ending_{loop_, [this] { look_whether_ended(); }};
  service::Timer silent_{loop_, [this] { watch_silent(); }};
  service::Timer buffers_{loop_, [this] { look_at_buffers(); }};
  service::Timer reopening_{loop_, [this] { reopen(); }};
  std::string untold_;
  bool gone_ = false;  // the card
  u64 ending_since_ns_ = 0;
};

}  // namespace

void check(const DaemonOptions& o) {
  if (!o.metrics.empty()) check_metrics_address(o.metrics, o.metrics_name);
  static_cast<void>(service::local_address(o.socket, subject_of(o)));
  static_cast<void>(read_roles(o));
}

int run_daemon(const OpenCard& open_card, const DaemonOptions& options, std::vector<Descriptor> sockets,
               service::Log& log) {
  return RunningDaemon(open_card, options, std::move(sockets), log).run();
}

}  // namespace doorbell::qdma::daemon
