// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The program `doorbelld`.
#include <doorbell/error.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
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

/// Threads for what is no transfer.
constexpr u32 kControlThreads = 4, kHostBufferThreads = 4;

unsigned mode_of(const std::string& text) {
  unsigned mode = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), mode, 8);
  if (parsed.ec != std::errc{} || parsed.ptr != text.data() + text.size() || mode > 0777)
    throw Error("--socket-mode", fmt::format("'{}' is no octal number in 0..0777", text));
  return mode;
}

qdma::daemon::Priority priority_of(const std::string& text) {
  using qdma::daemon::Priority;
  return text == "error"     ? Priority::error
         : text == "warning" ? Priority::warning
         : text == "notice"  ? Priority::notice
         : text == "info"    ? Priority::info
                             : Priority::debug;
}

u32 small(const Options& o, const char* option) {
  return static_cast<u32>(o.integer(option));
}

qdma::daemon::DaemonOptions daemon_options(const Options& o) {
  const u32 threads = small(o, "threads");
  return {.service = {.quotas = {.connections = small(o, "max-connections"),
                                 .queue_pairs = small(o, "max-queue-pairs"),
                                 .buffers = small(o, "max-buffers"),
                                 .descriptors = small(o, "max-descriptors"),
                                 .card_bytes = o.bytes("max-card-memory"),
                                 .host_bytes = o.bytes("max-host-buffers"),
                                 .host_buffers = small(o, "max-host-buffer-count"),
                                 .sent_files = small(o, "max-sent-descriptors")},
                      .limits = {.control = kControlThreads,
                                 .host_buffers = kHostBufferThreads,
                                 .transfers = threads - kControlThreads - kHostBufferThreads,
                                 .transfers_per_client = small(o, "transfers-per-client")},
                      .max_connections = small(o, "max-clients"),
                      .ring_index = small(o, "ring-size-index"),
                      .max_transfer_ns = static_cast<u64>(o.seconds("transfer-limit") * 1e9),
                      .first_request_ns = static_cast<u64>(o.seconds("first-request-limit") * 1e9)},
          .socket = o.text("socket"),
          .socket_mode = mode_of(o.text("socket-mode")),
          .roles_file = o.text("roles"),
          .metrics = o.text("metrics"),
          .metrics_name = "--metrics",
          .socket_name = "--socket"};
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
