// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// doorbell serve nvme, serve status and serve fault.
#include <doorbell/error.hpp>
#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <thread>

#include "cli/run_options.hpp"
#include "cli/texts.hpp"
#include "nvme/cli/parts.hpp"
#include "nvme/model/spec.hpp"
#include "nvme/serve/nvme_server.hpp"
#include "nvme/settings.hpp"
#include "service/spare_memory.hpp"
#include "system/open_file.hpp"
#include "system/sysfs.hpp"

namespace doorbell::cli {

namespace {

/// Lines in a file, or on standard output.
class LineLog final : public service::Log {
 public:
  /// "": standard output. Throws Error.
  explicit LineLog(const std::string& path) {
    if (path.empty()) return;
    Opened file = open_file(path, O_WRONLY | O_CREAT | O_APPEND, FileKinds::regular);
    if (!file) throw Error(fmt::format("--log {}", path), file.why);
    file_ = std::move(file.fd);
  }
  void write(const service::LogEntry& entry) override {
    const std::time_t now = std::time(nullptr);
    const std::string line = fmt::format("{:%Y-%m-%d %H:%M:%S} {}\n", fmt::localtime(now), entry.text);
    const int fd = file_.get() >= 0 ? file_.get() : STDOUT_FILENO;
    for (std::size_t done = 0; done < line.size();) {
      const ssize_t n = ::write(fd, line.data() + done, line.size() - done);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) throw Error("log", reason(errno));
      done += static_cast<std::size_t>(n);
    }
  }

 private:
  Descriptor file_;
};

std::string spec_of(const Options& o) {
  std::string spec = o.text("controller");
  if (o.has("media"))
    spec += fmt::format("{}media={}", spec.find(':') == std::string::npos ? ":" : ",", o.text("media"));
  return spec;
}

nvme::NvmeServerOptions server_options(const Options& o) {
  nvme::NvmeServerOptions s = nvme::parse_served_spec(spec_of(o));
  model::Use use;
  o.read_into(use);
  s.model.faults = use.faults;
  s.model.seed = use.seed;
  o.read_into(s);
  // Mapped doorbells need no words in memory beside them; a driver that finds those uses them.
  if (s.share_doorbells && spec_of(o).find("shadow=") == std::string::npos) s.model.shadow_doorbells = false;
  return s;
}

int run_serve(const Options& o, Context& context) {
  const std::string& path = o.text("socket");
  service::QueuedLog log(std::make_unique<LineLog>(o.has("log") ? o.text("log") : ""),
                         service::Priority::info);
  nvme::NvmeServer server(server_options(o), log);
  server.listen(path);
  service::SpareMemory::provide();
  fmt::print("{} at {}; Ctrl-C ends it\n", spec_of(o), path);
  std::fflush(stdout);
  while (!context.stop.requested()) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const auto status = server.status();
  const auto& s = status["server"];
  log.flush();
  fmt::print("{} clients, {} messages, {} refused, {} malformed; {} faults logged, {} not\n",
             s["clients"].get<u64>(), s["messages"].get<u64>(), s["refused"].get<u64>(),
             s["malformed"].get<u64>(), status["faults_logged"].get<u64>(),
             status["faults_not_logged"].get<u64>());
  if (o.flag("details")) fmt::print("{}\n", status.dump(2));
  return 0;
}

service::Patience patience_of(const Options& o, const Context& context) {
  return {.limit_s = o.seconds("timeout"), .stop = &context.stop};
}

int run_status(const Options& o, Context& context) {
  const auto answer = service::ask_control(nvme::NvmeServer::control_path(o.text("socket")),
                                           {{"ask", "status"}}, patience_of(o, context));
  fmt::print("{}\n", answer.dump(2));
  return 0;
}

int run_fault(const Options& o, Context& context) {
  auto rates = nlohmann::ordered_json::object();
  for (const ListItem& item : o.list("fault")) rates[item.kind] = item.value;
  const auto answer = service::ask_control(nvme::NvmeServer::control_path(o.text("socket")),
                                           {{"ask", "fault"}, {"rates", rates}}, patience_of(o, context));
  fmt::print("{}\n", nlohmann::ordered_json{{"faults", answer.at("faults")}}.dump());
  return 0;
}

void add_asking_options(OptionTable& t) {
  t.add({.name = "socket",
         .kind = Kind::path,
         .metavar = "PATH",
         .help = "the socket that the server was started with",
         .operand = true,
         .required = true});
}

void add_timeout(OptionTable& t) {
  t.group("Options").add({.name = "timeout",
                          .kind = Kind::seconds,
                          .default_text = "10",
                          .min = 0.01,
                          .max = 3600,
                          .help = "how long the server may take to answer"});
}

}  // namespace

Command serve_command() {
  Command c;
  c.name = "serve-nvme";
  c.summary = "serve a software NVMe controller to drivers of other programs (vfio-user)";
  c.description = {
      "Listens at a path and is a PCI device there, as the vfio-user protocol has it: QEMU gives it to a guest, "
      "SPDK's driver and doorbell nvme --controller vfio-user:PATH drive it. One client at a time; what he left is "
      "taken down when he goes, and the next one finds a controller as after power-on, with the same blocks.",
      "Clients share their memory by descriptors, or are asked for it by messages where they do not. Doorbells are a "
      "page that the client maps, or messages. Interrupts (INTx, MSI-X) go to the client's eventfds.",
      "Only the user that runs it may connect. Each injected fault is a line of the log. Beside PATH there is "
      "PATH.control, for doorbell serve status and doorbell serve fault. Ctrl-C or SIGTERM ends it.",
      key_text("The model's keys:", nvme::model_keys()),
  };
  c.options.group("Server")
      .add({.name = "socket",
            .kind = Kind::path,
            .metavar = "PATH",
            .help =
                "the socket that clients connect to; made with mode 0600, removed at the end (SPDK's driver "
                "takes a folder, and appends /cntrl)",
            .required = true})
      .add({.name = nvme::setting::controller.option(),
            .metavar = "model[:KEY=VALUE,...]",
            .default_text = "model",
            .help = "the controller (keys above)"})
      .add({.name = "media", .metavar = "null|ram|file:PATH", .help = "the key media, without the others"})
      .add(
          {.name = "doorbells",
           .default_text = "mapped",
           .choices = {"mapped", "message"},
           .help =
               "clients may map the page of doorbells, or send each as a message; the model's key shadow is off "
               "with the first unless it is given",
           .into = {"mapped", &nvme::NvmeServerOptions::share_doorbells}})
      .add({.name = nvme::setting::allow_write.option(),
            .help =
                "let clients write to a media file that holds data of somebody else, such as a file system",
            .into = &nvme::NvmeServerOptions::allow_write})
      .add(fault_option(
          "make the controller go wrong: fault KIND happens to each I/O command with probability P",
          "Server"))
      .add({.name = "seed",
            .default_text = "1",
            .help = "seed of the faults; the same seed chooses the same commands of each queue",
            .into = &model::Use::seed})
      .group("Output")
      .add({.name = "log",
            .kind = Kind::path,
            .help = "where clients and faults are named, a line each (not given: standard output)"})
      .add({.name = "details",
            .kind = Kind::flag,
            .help = "at the end print the counts of the server and the controller as JSON"});
  c.examples = {
      {.command = "doorbell serve nvme --socket /tmp/nvme.sock",
       .text = "A controller for other programs, until Ctrl-C.",
       .needs = Needs::other_machine},
      {.command = "doorbell serve nvme --socket /tmp/nvme.sock --media file:/tmp/disk.img --allow-write",
       .text = "The same with blocks that stay.",
       .needs = Needs::other_machine}};
  c.check = [](const Options& o) { (void)server_options(o); };
  c.run = run_serve;
  c.group = "This machine";
  return c;
}

Command serve_status_command() {
  Command c;
  c.name = "serve-status";
  c.summary = "counts of a running 'doorbell serve nvme', as JSON";
  c.description = {"Asks the server at PATH.control what it has done and what it holds."};
  add_asking_options(c.options);
  add_timeout(c.options);
  c.examples = {{.command = "doorbell serve status /tmp/nvme.sock",
                 .text = "What the server has done.",
                 .needs = Needs::other_machine}};
  c.run = run_status;
  c.group = "This machine";
  return c;
}

Command serve_fault_command() {
  Command c;
  c.name = "serve-fault";
  c.summary = "change the faults of a running 'doorbell serve nvme'";
  c.description = {
      "The faults that are named replace those of before; without any the controller is right again. "
      "The seed stays."};
  add_asking_options(c.options);
  c.options.add(fault_option("fault KIND happens to each I/O command with probability P", "Options"));
  add_timeout(c.options);
  c.examples = {{.command = "doorbell serve fault /tmp/nvme.sock --fault corrupt=0.001",
                 .text = "One read in a thousand is damaged from now on.",
                 .needs = Needs::other_machine}};
  c.run = run_fault;
  c.group = "This machine";
  return c;
}

}  // namespace doorbell::cli
