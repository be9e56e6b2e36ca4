// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include "nvme/cli/parts.hpp"
#include "pci/binding.hpp"

namespace doorbell::cli {
namespace {

std::string address_of(const Options& options) {
  const std::string& given = options.text("address");
  if (const auto address = pci::parse_address(given)) return *address;
  if (const auto address = pci::address_of_nvme(given)) return *address;
  throw Error(fmt::format("'{}'", given), "it is no PCI address and no NVMe controller of the kernel",
              "give one such as 0000:01:00.0 or nvme0; doorbell list shows them");
}

std::string node_of(const pci::Function& f) {
  return f.iommu_group.empty() ? ""
                               : fmt::format("; IOMMU group {}, /dev/vfio/{}", f.iommu_group, f.iommu_group);
}

int run_bind(const Options& options, Context&) {
  const std::string address = address_of(options);
  for (const pci::Rebound& r : pci::bind(address, options.flag("group"), pci::this_machine())) {
    const pci::Function& f = r.function;
    fmt::print(
        "{} ({}): {}{}\n", f.address, f.id(),
        r.changed ? fmt::format("bound to vfio-pci, was {}", r.before.empty() ? "without a driver" : r.before)
                  : "is bound to vfio-pci already",
        node_of(f));
  }
  fmt::print("now: doorbell nvme --controller {} --read-io 10000\n", address);
  return 0;
}

int run_unbind(const Options& options, Context&) {
  for (const pci::Rebound& r : pci::unbind(address_of(options), options.flag("group"), pci::this_machine())) {
    const pci::Function& f = r.function;
    fmt::print(
        "{} ({}): {}\n", f.address, f.id(),
        r.changed ? fmt::format("given back to {}", f.driver) : fmt::format("{} holds it already", f.driver));
  }
  return 0;
}

Command command_of(std::string name, std::string summary) {
  Command c;
  c.name = std::move(name);
  c.summary = std::move(summary);
  c.options.add({.name = "address",
                 .metavar = "ADDRESS",
                 .offers = controller_addresses,
                 .help = "the controller: 0000:01:00.0, 01:00.0, nvme0 or /dev/nvme0n1",
                 .operand = true,
                 .required = true});
  c.options.group("Options").add({.name = "group",
                                  .kind = Kind::flag,
                                  .help = "with it every other NVMe controller of its IOMMU group"});
  c.group = "This machine";
  c.stoppable = false;
  return c;
}

}  // namespace

Command bind_command() {
  Command c = command_of("bind", "lend an NVMe controller to doorbell (vfio-pci)");
  c.description = {
      "Takes the controller from the kernel's driver and gives it to vfio-pci, so that doorbell nvme can drive "
      "it. Its /dev/nvme* files go away until doorbell unbind, or the next boot. Needs root and an IOMMU; loads "
      "the module vfio-pci when it is missing.",
      "Refused while anything uses its disks: mounted file systems, swap, LVM, RAID or encrypted volumes on "
      "them, and programs that opened them for themselves. No option overrides that.",
      "Nothing is written to the disks, and none of their data is lost by binding."};
  c.examples = {{.command = "sudo doorbell bind 0000:01:00.0",
                 .text = "Lend the controller at this PCI address.",
                 .needs = Needs::device},
                {.command = "sudo doorbell bind nvme1",
                 .text = "The same by the kernel's name for it.",
                 .needs = Needs::device},
                {.command = "sudo doorbell bind 01:00.0 && sudo chown $USER /dev/vfio/12",
                 .text = "Then use it without root; bind prints the group's number.",
                 .needs = Needs::device}};
  c.run = run_bind;
  return c;
}

Command unbind_command() {
  Command c = command_of("unbind", "give an NVMe controller back to the kernel's driver");
  c.description = {
      "Undoes doorbell bind: the kernel's own driver takes the controller, and its /dev/nvme* files come back, "
      "perhaps under another number. Refused while a program has the controller open."};
  c.examples = {
      {.command = "sudo doorbell unbind 0000:01:00.0", .text = "Give it back.", .needs = Needs::device}};
  c.run = run_unbind;
  return c;
}

}  // namespace doorbell::cli
