// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// `doorbell run cxi`: a program of others, with the drop-in libcxi.so.1 in place of HPE's.
#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/run_options.hpp"
#include "cli/run_program.hpp"
#include "cli/shipped.hpp"
#include "cli/texts.hpp"
#include "cxi/cli/parts.hpp"
#include "cxi/dropin/server.hpp"
#include "cxi/model/spec.hpp"
#include "cxi/settings.hpp"
#include "model/use.hpp"
#include "report/file.hpp"
#include "service/local_socket.hpp"
#include "system/clock.hpp"
#include "system/temporary_folder.hpp"

namespace doorbell::cli {

namespace {

namespace fs = std::filesystem;

constexpr const char* kLibrary = "libcxi.so.1";
constexpr u64 kLingerNs = 10'000'000'000;
constexpr int kLookMs = 50;

cxi::ModelConfig config_of(const Options& o) {
  const std::string& spec = o.text(cxi::setting::device.option());
  if (!cxi::is_model(spec))
    throw Error("--device", fmt::format("'{}' is no software Cassini", spec), "as cxi-model0:latency=2us");
  cxi::ModelConfig c = cxi::parse_model_spec(spec, "--device");
  if (c.engine != cxi::ModelConfig::Engine::cpu)
    throw Error("--device", "engine: a Cassini for other programs is served by a thread of the CPU",
                "engine=cpu");
  model::Use use;
  o.read_into(use);
  c.fit(use);
  c.rests = true;
  return c;
}

bool somebody_listens(const std::string& path) {
  int error = 0;
  return service::connect_local(service::local_address(path, "--socket"), {.limit_s = 5}, error).get() >= 0;
}

/// The server of this run; none where another run serves at the socket.
std::unique_ptr<cxi::dropin::Server> serve(const cxi::ModelConfig& config, const std::string& path) {
  try {
    return std::make_unique<cxi::dropin::Server>(config, path);
  } catch (const Error&) {
    if (!somebody_listens(path)) throw;
    return nullptr;
  }
}

/// The program's own: it finds the library, and the library the server.
void set_environment(const std::string& folder, const std::string& socket) {
  ::setenv("LD_LIBRARY_PATH", in_front_of("LD_LIBRARY_PATH", folder).c_str(), 1);
  ::setenv(cxi::dropin::kServerVariable, fs::absolute(socket).c_str(), 1);
}

void report(const Options& o, cxi::dropin::Server& server) {
  const std::string text = server.counts().dump();
  if (o.flag("report")) fmt::print(stderr, "doorbell run cxi: {}\n", text);
  if (o.has("report-file")) report::write_file(o.text("report-file"), text + "\n");
}

int run_on_cassini(const Options& o, Context& context) {
  const cxi::ModelConfig config = config_of(o);
  const std::vector<std::string>& words = program_words(context);
  const std::string library = shipped_libraries("cxi", kLibrary).string();
  std::optional<TemporaryFolder> folder;
  std::string socket = o.has("socket") ? o.text("socket") : "";
  if (socket.empty()) socket = folder.emplace("cxi").file("cassini");
  std::optional<ProgramRun> program(std::in_place, words, [&] { set_environment(library, socket); });
  const auto server = serve(config, socket);
  program->begin();
  const int code = program->wait();
  program.reset();
  if (!server) return code;
  // The other end of the program's traffic may still be at work.
  for (const u64 since = wall_ns();
       server->connected() > 0 && wall_ns() - since < kLingerNs && !context.stop.requested();)
    ::usleep(1000 * kLookMs / 5);
  report(o, *server);
  return code;
}

}  // namespace

Command run_cxi_command() {
  Command c = program_command("cxi", "run an unmodified program for HPE's Cassini on a software one");
  c.means = {"libcxi"};
  // Once the program has ended, for what others still do.
  c.stoppable = true;
  c.description = {
      "Runs PROGRAM with doorbell's libcxi.so.1 in place of HPE's: cxi_gpu_loopback_bw, cxi_write_bw and the others of "
      "its utilities, or your own. It finds the device cxi0, a software Cassini that this command serves; PROGRAM and "
      "all that it starts have the same one. No driver and no privilege is needed.",
      "Two runs with the same --socket share the Cassini of the one that began, as a server and a client of HPE's "
      "utilities do: it serves until its program has ended, and up to 10 s more for the other's.",
      "Memory that the program maps for the NIC becomes shared memory in place. It must be the program's own pages, "
      "which may be written: no files, no huge pages, no stack; and a child after fork() shares them.",
      "The exit code is the program's. HPE's utilities compare no data, so --report says what the Cassini did: bytes, "
      "operations, refusals, faults.",
      key_text("The model's keys:", cxi::model_keys()),
  };
  c.options.group("Cassini")
      .add({.name = cxi::setting::device.option(),
            .metavar = "cxi-modelN[:KEY=VALUE,...]",
            .default_text = "cxi-model0",
            .help = "the Cassini (keys above)"})
      .add(
          {.name = "socket",
           .kind = Kind::path,
           .metavar = "PATH",
           .help =
               "serve at this path, or use the Cassini that is served there (not given: a path of this run's own)"})
      .group("Faults")
      .add(fault_option("fault KIND happens to each operation with probability P", "Faults"))
      .add({.name = "seed",
            .default_text = "1",
            .help = "seed of the faults; the same seed chooses the same operations of each queue",
            .into = &model::Use::seed})
      .group("Output")
      .add({.name = "report",
            .kind = Kind::flag,
            .help = "at the end print the Cassini's counts to standard error, as JSON"})
      .add({.name = "report-file", .kind = Kind::path, .metavar = "FILE", .help = "write them to this file"});
  c.examples = {{.command = "doorbell run cxi -- cxi_gpu_loopback_bw -s 4096",
                 .text = "HPE's tool on the software Cassini.",
                 .needs = Needs::program},
                {.command = "doorbell run cxi --socket /tmp/cassini -- cxi_write_bw",
                 .text = "A server of HPE's utilities; the same with 'localhost' at the end is its client.",
                 .needs = Needs::program},
                {.command = "doorbell run cxi --report --fault corrupt=0.01 -- ./my_program",
                 .text = "Does it notice damage? The report counts what was done to it.",
                 .needs = Needs::program}};
  c.check = [](const Options& o) { (void)config_of(o); };
  c.run = run_on_cassini;
  return c;
}

}  // namespace doorbell::cli
