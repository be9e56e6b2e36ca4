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
#include <cstdlib>

#include "cli/output.hpp"
#include "cli/parse.hpp"
#include "cli/texts.hpp"
#include "qdma/cli/doorbelld.hpp"
#include "qdma/daemon/uv/daemon.hpp"
#include "qdma/daemon/uv/journal.hpp"
#include "qdma/settings.hpp"
#include "system/open_files.hpp"

namespace doorbell::cli {

namespace {

qdma::daemon::Priority priority_of(const std::string& text) {
  using qdma::daemon::Priority;
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
  o.read_into(d);
  o.read_into(d.service);
  o.read_into(d.service.quotas);
  qdma::daemon::FairQueueLimits& limits = d.service.limits;
  o.read_into(limits);
  limits.transfers = static_cast<u32>(o.integer("threads")) - limits.control - limits.host_buffers;
  return d;
}

int serve(const Options& options) {
  std::vector<Descriptor> sockets = qdma::daemon::activated_sockets();
  const qdma::daemon::DaemonOptions daemon = daemon_options(options);
  qdma::daemon::check(daemon);
  const auto log =
      qdma::daemon::open_log(options.text("log"), priority_of(options.text("log-level")), "--log");
  allow_all_open_files();  // clients, transfer descriptors and the buffers of messages
  // libuv reads it when the first call is given to a thread.
  setenv("UV_THREADPOOL_SIZE", std::to_string(options.integer("threads")).c_str(), 1);
  return qdma::daemon::run_daemon(
      qdma::open_driver({.spec = options.text("card"), .named_by = qdma::setting::served_card}), daemon,
      std::move(sockets), *log);
}

}  // namespace
}  // namespace doorbell::cli

#if defined(__SANITIZE_THREAD__)
/// libuv closes by a system call of its own, which ThreadSanitizer does not see: it takes the number's next
/// owner for the one before.
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_suppressions() {
  return "race:doorbell::Descriptor::close\n";
}
#endif

int main(int argc, char** argv) {
  doorbell::Setting::name_by_options();
  using namespace doorbell;
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(fd, F_GETFD) < 0) (void)open("/dev/null", O_RDWR);
  (void)std::signal(SIGPIPE, SIG_IGN);
  try {
    const cli::Command texts = cli::doorbelld_texts();
    const std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
    if (cli::wants_help(words)) {
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
