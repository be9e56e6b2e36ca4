// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <thread>

#include "cli/run_options.hpp"
#include "model/config.hpp"
#include "qdma/cli/parts.hpp"
#include "qdma/model/card.hpp"
#include "qdma/settings.hpp"
#include "service/queued_log.hpp"
#include "service/spare_memory.hpp"
#include "system/sysfs.hpp"

namespace doorbell::cli {

namespace {

class StderrLines final : public service::Log {
 public:
  void write(const service::LogEntry& entry) override {
    // For this thread a reader who has gone is an error, no signal.
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
    const std::string line = fmt::format("doorbell: {}\n", entry.text);
    if (::write(STDERR_FILENO, line.data(), line.size()) < 0) throw Error("standard error", reason(errno));
  }
};

std::vector<std::string> places(const Options& options) {
  std::vector<std::string> out;
  for (const char* const option : {"listen", "slash-dir"})
    if (options.has(option)) out.push_back(options.text(option));
  return out;
}

void check_card(const Options& options) {
  check_served_card(options);
  if (places(options).empty())
    throw Error("--listen PATH", "it is missing, and so is --slash-dir DIR", "give one of them, or both");
}

int run_card(const Options& options, Context& context) {
  check_card(options);
  const auto server = make_card_server(options);
  if (options.has("listen")) server->listen(options.text("listen"));
  if (options.has("slash-dir")) server->listen_slash(options.text("slash-dir"), slash_notice());
  service::SpareMemory::provide();
  fmt::print("{} at {}; Ctrl-C ends it\n", options.text("card"), fmt::join(places(options), " and "));
  std::fflush(stdout);
  while (!context.stop.requested()) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const qdma::ServerCounts c = server->counts();
  fmt::print(
      "{} requests, {} refused; {} connections, {} descriptors, {} buffers, {} queue pairs still there\n",
      c.requests, c.refused, c.connections, c.descriptors, c.buffers, c.queue_pairs);
  if (options.flag("counters")) fmt::print("{}\n", qdma::counters_of(server->card()).dump(2));
  return 0;
}

// The words are doorbelld's. There they are for each user; here only one user may connect.
void add_limits(OptionTable& t) {
  t.group("Limits of all clients")
      .add(
          model::whole_key("max-connections", "64", 1, 4096, "connections", &qdma::ServerLimits::connections))
      .add(model::whole_key("max-queue-pairs", fmt::format("{}", qdma::kMaxQueuePairs), {},
                            qdma::kMaxQueuePairs, "queue pairs", &qdma::ServerLimits::queue_pairs))
      .add(model::whole_key("max-descriptors", "1024", {}, 4096, "transfer descriptors",
                            &qdma::ServerLimits::descriptors))
      .add(model::bytes_key("max-host-buffers", "64Gi", {}, {},
                            "bytes of host buffers that a process still has",
                            &qdma::ServerLimits::host_bytes));
}

}  // namespace

void check_served_card(const Options& options) {
  const std::string& spec = options.text("card");
  if (!qdma::is_model(spec))
    throw Error(fmt::format("--card {}", spec), "only a software card can be served",
                "give model or model:KEY=VALUE,...");
}

std::unique_ptr<qdma::CardServer> make_card_server(const Options& options) {
  model::Use use;
  options.read_into(use);
  qdma::ServerLimits limits;
  options.read_into(limits);
  return std::make_unique<qdma::CardServer>(
      qdma::make_model_card(options.text("card"), use, qdma::setting::served_card), limits);
}

qdma::SlashNotice slash_notice() {
  auto log = std::make_shared<service::QueuedLog>(std::make_unique<StderrLines>(), service::Priority::notice);
  return [log](const std::string& line) { log->write({service::Priority::notice, line}); };
}

void add_served_card_options(OptionTable& t) {
  t.add({.name = "card",
         .metavar = "model[:KEY=VALUE,...]",
         .default_text = "model",
         .help = "the card; doorbell help qdma has the keys"})
      .add({.name = "counters",
            .kind = Kind::flag,
            .help = "at the end print the card's own counters as JSON too"})
      .add(fault_option("make the card go wrong: fault KIND happens to each sub-transfer with probability P",
                        "Server"))
      .add({.name = "seed",
            .default_text = "1",
            .help = "seed of the faults; the same seed chooses the same sub-transfers of each queue",
            .into = &model::Use::seed});
  add_limits(t);
}

Command card_command() {
  Command c;
  c.name = "card";
  c.summary = "serve a software QDMA card to other processes";
  c.description = {
      "Listens at a path and gives a software card to every program that opens it as server:PATH: with the "
      "structures and error numbers of the kernel's driver, as messages of a local socket. All clients see one "
      "card, and the bytes that one of them has written. What a client had goes away with it.",
      "With --slash-dir it also has the three sockets of AMD's emulation in a folder, which programs over AMD's "
      "libslash take for a V80: slash_qdma_ctl0, slash_ctl0, slash_hotplug. 'doorbell run card' starts such a "
      "program with these in place of the driver's files.",
      "Only the user that runs it may connect. Ctrl-C or SIGTERM ends it, with a line that says what it has done. "
      "What clients still had in flight then ends with an error. The limits keep clients from taking all descriptors "
      "and all memory of this process: a request beyond one is refused with EDQUOT."};
  c.options
      .add({.name = "action",
            .metavar = "serve",
            .choices = {"serve"},
            .help = "serve a card until a signal comes",
            .operand = true,
            .required = true})
      .group("Server")
      .add({.name = "listen",
            .kind = Kind::path,
            .metavar = "PATH",
            .help = "the socket that clients connect to; made with mode 0600, removed at the end"})
      .add(
          {.name = "slash-dir",
           .kind = Kind::path,
           .metavar = "DIR",
           .help =
               "the folder for the sockets of AMD's programs; made with mode 0700 if it is not there, and then "
               "removed at the end"});
  add_served_card_options(c.options);
  c.examples = {{.command = "doorbell card serve --listen /tmp/card.sock",
                 .text = "A card for other programs, until Ctrl-C.",
                 .needs = Needs::other_machine},
                {.command = "doorbell card serve --listen /tmp/card.sock --card model:preset=v80",
                 .text = "The same, as fast as the published figures of a V80.",
                 .needs = Needs::other_machine},
                {.command = "doorbell card serve --slash-dir /tmp/slash",
                 .text = "A V80 for programs of AMD's.",
                 .needs = Needs::other_machine}};
  c.check = check_card;
  c.run = run_card;
  c.group = "This machine";
  return c;
}

}  // namespace doorbell::cli
