// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "cxi/backends.hpp"
#include "cxi/cli/parts.hpp"
#include "system/sysfs.hpp"

namespace doorbell::cli {

namespace {

namespace fs = std::filesystem;

std::vector<FoundDevice> cxi_devices(const fs::path& root) {
  std::vector<FoundDevice> found;
  const fs::path folder = root / "sys/class/cxi";
  for (const std::string& name : names_in(folder)) {
    const fs::path device = folder / name / "device";
    found.push_back({name,
                     {{"pci_address", pci_address_fact(device)},
                      {"driver", link_fact(device / "driver")},
                      {"numa_node", numa_node_fact(device)}}});
  }
  return found;
}

}  // namespace

PathDescription cxi_path() {
  return {.title = "CXI",
          .work = "Cassini puts",
          .command = cxi_command(),
          .tools = {run_cxi_command()},
          .programs = {cxi_gpu_loopback_bw()},
          .backends = [] { return states_of(cxi::backends()); },
          .models = {{"cxi-model0", "software Cassini; puts and gets through its command queues"}},
          .devices_title = "HPE Cassini (CXI) devices",
          .devices = cxi_devices,
          .demo_steps = cxi_demo_steps,
          .check_fault = check_cxi_fault};
}

}  // namespace doorbell::cli
