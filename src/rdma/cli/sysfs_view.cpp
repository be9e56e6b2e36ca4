// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/cli/sysfs_view.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include "rdma/roce/names.hpp"
#include "system/interface_of.hpp"

namespace doorbell::cli {

namespace {

/// lo's, as all of 127.0.0.0/8.
constexpr u32 kLoopback = 0x7f000001;

void add_device(FolderView& view, u32 index, u32 address) {
  const std::string interface = interface_of(address != 0 ? address : kLoopback);
  if (interface.empty())
    throw Error("--address", fmt::format("no interface of this machine has {}", roce::dotted(address)));
  const std::string name = fmt::format("doorbell{}", index);
  const std::string folder = "infiniband/" + name + "/", port = folder + "ports/1/";
  // The values are those that the library's queries answer. GUIDs are each process's own.
  const auto add = [&](const std::string& path, const std::string& text) {
    view.files.emplace_back(path, text + "\n");
  };
  add(folder + "node_type", "1: CA");
  add(folder + "fw_ver", "1.0");
  add(folder + "hw_rev", "0x1");
  add(folder + "device/numa_node", "-1");
  view.links.emplace_back(folder + "device/net/" + interface, "/sys/class/net/" + interface);
  add(port + "state", "4: ACTIVE");
  add(port + "phys_state", "5: LinkUp");
  add(port + "link_layer", "Ethernet");
  add(port + "rate", "100 Gb/sec (4X EDR)");
  add(port + "pkeys/0", "0xffff");
  add(port + "gid_attrs/ndevs/0", interface);
  add(port + "gid_attrs/types/0", "RoCE v2");
  if (address != 0)
    add(port + "gids/0",
        fmt::format("0000:0000:0000:0000:0000:ffff:{:04x}:{:04x}", address >> 16, address & 0xffff));
  const std::string verbs = "infiniband_verbs/uverbs_" + name + "/";
  add(verbs + "ibdev", name);
  add(verbs + "abi_version", "1");
}

}  // namespace

FolderView sysfs_view(u32 devices, u32 address) {
  FolderView view{.folder = "/sys/class"};
  view.files.emplace_back("infiniband_verbs/abi_version", "6\n");
  for (u32 i = 0; i < devices; ++i) add_device(view, i, address == 0 ? 0 : address + i);
  return view;
}

}  // namespace doorbell::cli
