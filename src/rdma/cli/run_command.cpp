// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// `doorbell run rdma`: a program of others, with the drop-in libibverbs in place of the system's.
#include <arpa/inet.h>
#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "cli/completion/words.hpp"
#include "cli/run_program.hpp"
#include "cli/shipped.hpp"
#include "rdma/cli/parts.hpp"
#include "rdma/cli/sysfs_view.hpp"
#include "rdma/dropin/settings.hpp"

namespace doorbell::cli {

namespace {

namespace fs = std::filesystem;

constexpr const char* kLibrary = "libibverbs.so.1";
constexpr const char* kPreload = "libdoorbell-verbs-preload.so";

/// The program may change its folder.
std::string absolute(const std::string& file) {
  return fs::absolute(file).lexically_normal().string();
}

/// The first device's address in the host's order; 0: auto.
u32 address_of(const Options& o) {
  in_addr first{};
  const std::string& address = o.text("address");
  if (address != "auto" && ::inet_pton(AF_INET, address.c_str(), &first) != 1)
    throw Error("--address", fmt::format("'{}' is no IPv4 address", address), "as 127.77.0.1, or auto");
  return ntohl(first.s_addr);
}

void check_run_rdma(const Options& o) {
  (void)address_of(o);
  if (o.flag("sysfs") && o.flag("print-environment"))
    throw Error("--sysfs", "it is a mount namespace of the program's, which no variable makes");
  if (o.flag("report") && o.has("report-file")) throw Error("--report", "the report goes to --report-file");
  o.check_conditions();
}

std::vector<Assignment> environment(const Options& o) {
  std::vector<Assignment> all;
  const fs::path folder = shipped_libraries("verbs", kLibrary, "it is built for x86-64; ");
  const bool mlx5 = o.text("rings") == "mlx5";
  const auto prepend = [&all](const char* variable, const std::string& text) {
    all.push_back({variable, in_front_of(variable, text)});
  };
  prepend("LD_LIBRARY_PATH", (mlx5 ? (folder / "mlx5").string() + ':' : "") + folder.string());
  prepend("LD_PRELOAD", (folder / kPreload).string());
  all.push_back({dropin::kDevicesVariable, std::to_string(o.integer("devices"))});
  all.push_back({dropin::kAddressVariable, o.text("address")});
  all.push_back({dropin::kPortVariable, std::to_string(o.integer("port"))});
  all.push_back({dropin::kCarrierVariable, o.text("carrier")});
  all.push_back({dropin::kMtuVariable, o.text("mtu")});
  std::string faults;
  for (const ListItem& item : o.list("fault"))
    faults += fmt::format("{}{}={}", faults.empty() ? "" : ",", item.kind, item.value);
  all.push_back({dropin::kFaultsVariable, faults});
  all.push_back({dropin::kSeedVariable, std::to_string(o.integer("seed"))});
  all.push_back({dropin::kFaultLogVariable, o.has("fault-log") ? absolute(o.text("fault-log")) : ""});
  all.push_back({dropin::kTraceVariable, o.has("trace") ? absolute(o.text("trace")) : ""});
  all.push_back({dropin::kReportVariable, o.has("report-file") ? absolute(o.text("report-file"))
                                          : o.flag("report")   ? dropin::kReportToStderr
                                                               : ""});
  return all;
}

int run_on_nics(const Options& o, Context& context) {
  check_run_rdma(o);
  const std::vector<Assignment> variables = environment(o);
  if (o.flag("print-environment")) {
    for (const Assignment& one : variables) fmt::print("export {}={}\n", one.option, shell_quoted(one.value));
    return 0;
  }
  const std::vector<std::string>& words = program_words(context);
  if (o.flag("sysfs")) {
    const FolderView view = sysfs_view(static_cast<u32>(o.integer("devices")), address_of(o));
    enter_private_view({&view, 1});
  }
  for (const Assignment& one : variables) ::setenv(one.option.c_str(), one.value.c_str(), 1);
  become_program(words);
}

}  // namespace

Command run_command() {
  Command c = program_command("rdma", "run an unmodified RDMA program on software NICs");
  c.means = {"verbs"};
  c.description = {
      "Runs PROGRAM with doorbell's libibverbs.so.1 in place of the system's: perftest, UCX, libfabric, pyverbs or "
      "your own. It finds devices doorbell0, doorbell1 and so on, each a RoCEv2 NIC in the program's own process. "
      "Two programs that are run so reach each other, as do two network namespaces or containers with an --address of "
      "their interface; soft-RoCE (rdma_rxe) and hardware speak the same packets. No driver and no privilege is "
      "needed.",
      "Packets go through memory that two processes of a user share (a ring), else by UDP; the bytes are the same. "
      "With --fault they are lost, repeated or damaged on their way, with --trace they are a file that Wireshark "
      "reads, with --report each queue pair's counts are printed when the program ends.",
      "The program takes this one's place: its exit code is passed on, and Ctrl-C reaches it. Programs that it starts "
      "have the NICs, too, unless they are setuid. --print-environment prints what it would set, for launchers "
      "that start programs elsewhere. In a file's name %p is the process.",
  };
  c.options.group("NICs")
      .add({.name = "devices",
            .kind = Kind::integer,
            .default_text = "1",
            .min = 1,
            .max = u64{dropin::kMostDevices},
            .help = "how many, from doorbell0 on"})
      .add({.name = "address",
            .metavar = "A.B.C.D|auto",
            .default_text = "auto",
            .help =
                "the first device's IPv4 address, which this machine must have; each other's is one more; "
                "auto: free ones in 127.77.0.0/16"})
      .add({.name = "port",
            .kind = Kind::integer,
            .default_text = "4791",
            .min = 1,
            .max = 65535,
            .help = "the UDP port at both ends; another where the kernel's own soft-RoCE has this one"})
      .add({.name = "carrier",
            .default_text = "auto",
            .choices = {"auto", "ring", "udp"},
            .help =
                "how packets travel: ring (shared memory, which loses none), udp, or auto: a ring where the "
                "peer is on this machine"})
      .add(
          {.name = "mtu",
           .default_text = "auto",
           .choices = {"auto", "256", "512", "1024", "2048", "4096"},
           .help =
               "the port's active MTU in bytes; auto: the largest that the address's interface has room for"})
      .add(
          {.name = "rings",
           .default_text = "none",
           .choices = {"none", "mlx5"},
           .help =
               "for programs that write WQEs and ring doorbells themselves: mlx5dv_init_obj hands out rings in "
               "ConnectX's format, which a thread of the NIC polls"})
      .add(
          {.name = "sysfs",
           .kind = Kind::flag,
           .help =
               "the program sees the NICs in /sys/class/infiniband, too, in a mount namespace of its own; for those "
               "that look there for a NIC's interface or port"})
      .group("Faults")
      .add(
          {.name = "fault",
           .aliases = {"faults"},
           .kind = Kind::list,
           .min = 0.0,
           .max = 1.0,
           .choices = {"drop", "duplicate", "reorder", "delay", "corrupt", "error", "early"},
           .help =
               "with this probability, of each packet on its way out: drop, duplicate, reorder, delay, corrupt; of "
               "each send request: error (done, but completed with an error), early (completed before it is done)"})
      .add({.name = "seed",
            .kind = Kind::integer,
            .default_text = "1",
            .help = "of the faults",
            .only_if = {"fault"}})
      .add({.name = "fault-log",
            .kind = Kind::path,
            .help = "a file for a line about each fault that was injected",
            .only_if = {"fault"}})
      .group("Output")
      .add({.name = "trace",
            .kind = Kind::path,
            .metavar = "FILE.pcapng",
            .help = "write each packet to this file, with the headers that it has on a wire"})
      .add({.name = "report",
            .kind = Kind::flag,
            .help = "at the program's end print to standard error what each queue pair did: packets, "
                    "retransmissions, NAKs, bytes by operation"})
      .add({.name = "report-file",
            .kind = Kind::path,
            .help = "the same as JSON: each process adds a line to this file"})
      .add({.name = "print-environment",
            .kind = Kind::flag,
            .help = "print the variables as commands of a shell, and run nothing"});
  c.examples = {
      {.command = "doorbell run rdma -- ibv_devinfo",
       .text = "Show the software NIC as programs see it.",
       .needs = Needs::program},
      {.command = "doorbell run rdma --report -- ib_write_bw -d doorbell0",
       .text = "A server of perftest; the same with 'localhost' at the end is its client.",
       .needs = Needs::program},
      {.command =
           "doorbell run rdma --fault drop=0.01,reorder=0.01 --seed 7 -- ibv_rc_pingpong -d doorbell0 -g 0 -c",
       .text = "Does it hang on loss? pingpong -c checks its data.",
       .needs = Needs::program},
      {.command = "doorbell run rdma --rings mlx5 -- doorbell rdma --provider mlx5 --device doorbell0",
       .text = "Drive the NIC through rings in ConnectX's format.",
       .needs = Needs::program},
      {.command = "eval \"$(doorbell run rdma --print-environment)\"",
       .text = "For all programs that this shell starts.",
       .needs = Needs::program}};
  c.check = check_run_rdma;
  c.run = run_on_nics;
  return c;
}

}  // namespace doorbell::cli
