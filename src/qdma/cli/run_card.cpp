// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// doorbell run card: a program of AMD's on a software card.
#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <vector>

#include "cli/run_program.hpp"
#include "qdma/cli/parts.hpp"
#include "qdma/model/card.hpp"
#include "qdma/slash/wire.hpp"
#include "service/local_socket.hpp"
#include "service/spare_memory.hpp"
#include "system/private_view.hpp"
#include "system/sysfs.hpp"
#include "system/temporary_folder.hpp"

namespace doorbell::cli {

namespace {

namespace fs = std::filesystem;

/// Where AMD's programs look for the emulation, and the driver's files.
constexpr const char* kEmulation = "slash_sysemu";
constexpr std::array kFiles = {qdma::slash::kQdmaFile, qdma::slash::kControlFile, qdma::slash::kHotplugFile};

void check_run_card(const Options& options) {
  check_served_card(options);
  if (!options.has("slash-dir")) return;
  for (const Option& o : options.table().all())
    if (o.name != "slash-dir" && options.given(o.name))
      throw Error("--" + o.name,
                  "it belongs to a card of this run's own, and --slash-dir names one that is there");
}

/// The folder of a server that runs.
std::string served_folder(const std::string& name) {
  const std::string socket = (fs::absolute(name) / qdma::slash::kQdmaFile).string();
  int error = 0;
  const Descriptor connection =
      service::connect_local(service::local_address(socket, socket), {.limit_s = 5}, error);
  if (error != 0)
    throw Error(socket, reason(error), fmt::format("start 'doorbell card serve --slash-dir {}'", name),
                ExitCode::absent);
  return fs::absolute(name).string();
}

/// The names that programs have in them lead to the sockets in the folder. A card of this machine is not
/// seen.
std::vector<FolderView> views_of(const std::string& folder) {
  FolderView run{.folder = "/run", .folders = {{kEmulation, folder}}};
  FolderView dev{.folder = "/dev", .hide = "slash_"};
  for (const char* const file : kFiles)
    dev.links.emplace_back(file, fmt::format("/run/{}/{}", kEmulation, file));
  return {std::move(run), std::move(dev)};
}

int run_on_card(const Options& options, Context& context) {
  check_run_card(options);
  const std::vector<std::string>& words = program_words(context);
  std::optional<TemporaryFolder> own;
  std::string folder;
  if (options.has("slash-dir")) folder = served_folder(options.text("slash-dir"));
  else folder = own.emplace("slash").path();
  std::unique_ptr<qdma::CardServer> server;
  const std::vector<FolderView> views = views_of(folder);
  ProgramRun program(words, [&] { enter_private_view(views); });
  if (own) {
    server = make_card_server(options);
    server->listen_slash(folder, slash_notice());
    service::SpareMemory::provide();
  }
  program.begin();
  const int code = program.wait();
  if (server && options.flag("counters"))
    fmt::print(stderr, "{}\n", qdma::counters_of(server->card()).dump(2));
  return code;
}

}  // namespace

Command run_card_command() {
  Command c = program_command("card", "run a program of AMD's on a software V80");
  c.description = {
      "Starts a program that expects a V80, unmodified, with a software card in place of one: in its mount namespace "
      "/dev/slash_qdma_ctl0, /dev/slash_ctl0, /dev/slash_hotplug and /run/slash_sysemu lead to the sockets of a card "
      "server, which ends with the program. It takes a libslash that speaks to sockets (pull request 152 of "
      "Xilinx/SLASH). Cards of this machine are not seen.",
      "The program has this terminal, and what it exits with is what this exits with. Ctrl-C is the program's. Who is "
      "not root needs a machine that allows user namespaces.",
      "A call that the card does not have is refused as AMD's emulation refuses it (ENOSYS), and named on standard "
      "error."};
  c.options.group("Server").add(
      {.name = "slash-dir",
       .kind = Kind::path,
       .metavar = "DIR",
       .help = "of a running 'doorbell card serve': its card, in place of a new one"});
  add_served_card_options(c.options);
  c.examples = {
      {.command = "doorbell run card -- v80-smi validate -d 0000:00:00 --raw-transfer-test",
       .text = "AMD's own test of a card's memory.",
       .needs = Needs::program},
      {.command =
           "doorbell run card --fault corrupt=0.01 -- v80-smi validate -d 0000:00:00 --raw-transfer-test",
       .text = "The same, on a card that damages data.",
       .needs = Needs::program},
      {.command = "doorbell run card -- ls /run/slash_sysemu",
       .text = "What a program sees there.",
       .needs = Needs::program}};
  c.check = check_run_card;
  c.run = run_on_card;
  return c;
}

}  // namespace doorbell::cli
