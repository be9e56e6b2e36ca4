// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The program `doorbelld`.
#include <doorbell/error.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>

#include "cli/output.hpp"
#include "cli/parse.hpp"
#include "cli/texts.hpp"
#include "qdma/cli/doorbelld.hpp"
#include "qdma/daemon/process/process.hpp"
#include "qdma/settings.hpp"
#include "service/systemd/journal.hpp"
#include "service/systemd/manager.hpp"
#include "system/open_files.hpp"

namespace doorbell::cli {

namespace {

service::Priority priority_of(const std::string& text) {
  using service::Priority;
  return text == "error"     ? Priority::error
         : text == "warning" ? Priority::warning
         : text == "notice"  ? Priority::notice
         : text == "info"    ? Priority::info
                             : Priority::debug;
}

qdma::daemon::DaemonOptions daemon_options(const Options& o) {
  qdma::daemon::DaemonOptions d;
  d.metrics_name = "--metrics";
  d.socket_name = "--socket";
  d.group_name = "--socket-group";
  o.read_into(d);
  o.read_into(d.service);
  o.read_into(d.service.quotas);
  qdma::daemon::FairQueueLimits& limits = d.service.limits;
  o.read_into(limits);
  limits.transfers = static_cast<u32>(o.integer("threads")) - limits.control - limits.host_buffers;
  return d;
}

int serve(const Options& options) {
  std::vector<Descriptor> sockets = service::activated_sockets();
  const qdma::daemon::DaemonOptions daemon = daemon_options(options);
  qdma::daemon::check(daemon);
  const auto log = service::open_log(options.text("log"), priority_of(options.text("log-level")), "--log");
  allow_all_open_files();  // clients, transfer descriptors and the buffers of messages
  const auto open_card = [&]() -> std::shared_ptr<qdma::Driver> {
    return qdma::open_driver({.spec = options.text("card"), .named_by = qdma::setting::served_card});
  };
  return qdma::daemon::run_daemon(open_card, daemon, std::move(sockets), *log);
}

}  // namespace
}  // namespace doorbell::cli

int main(int argc, char** argv) {
  doorbell::Setting::name_by_options();
  using namespace doorbell;
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(fd, F_GETFD) < 0) (void)open("/dev/null", O_RDWR);
  (void)std::signal(SIGPIPE, SIG_IGN);
  try {
    const cli::Command texts = cli::doorbelld_texts();
    const std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
    if (cli::wanted_help(words) != cli::Help::none) {
      std::fputs(cli::command_help(texts).c_str(), stdout);
      return std::fflush(stdout) == 0 ? 0 : 1;
    }
    const cli::Options options = cli::parse("doorbelld", texts.options, words);
    try {
      return cli::serve(options);
    } catch (const Error& e) {
      return cli::print_error("doorbelld: ", e);
    }
  } catch (const Error& e) {
    return cli::print_error("", e);  // the message names the program itself
  } catch (const std::exception& e) {
    fmt::print(stderr, "doorbelld: {}\n", e.what());
    return 1;
  }
}
