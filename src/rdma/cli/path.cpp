// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/backends.hpp"
#include "rdma/cli/parts.hpp"
#include "system/sysfs.hpp"

namespace doorbell::cli {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

FoundDevice found_device(const fs::path& folder, const std::string& name) {
  const fs::path device = folder / name;
  Json ports = Json::array();
  for (const std::string& port : names_in(device / "ports")) {
    const fs::path at = device / "ports" / port;
    ports.push_back({{"port", port},
                     {"link_layer", text_fact(at / "link_layer")},
                     {"state", text_fact(at / "state")},
                     {"rate", text_fact(at / "rate")}});
  }
  return {name,
          {{"pci_address", pci_address_fact(device / "device")},
           {"driver", link_fact(device / "device/driver")},
           {"node_type", text_fact(device / "node_type")},
           {"firmware", text_fact(device / "fw_ver")},
           {"numa_node", numa_node_fact(device / "device")},
           {"ports", ports}}};
}

std::vector<FoundDevice> rdma_devices(const fs::path& root) {
  const fs::path folder = root / "sys/class/infiniband";
  std::vector<FoundDevice> found;
  for (const std::string& name : names_in(folder)) found.push_back(found_device(folder, name));
  if (root != "/") return found;
  for (const std::string& name : rdma::drop_in_devices()) {
    // Sysfs shows them to programs of 'doorbell run rdma --sysfs' alone.
    auto at = std::ranges::find(found, name, &FoundDevice::name);
    if (at == found.end()) at = found.insert(at, found_device(folder, name));
    at->facts["driver"] = "doorbell's libibverbs";
  }
  return found;
}

}  // namespace

PathDescription rdma_path() {
  return {.title = "RDMA",
          .work = "RDMA operations",
          .command = rdma_command(),
          .tools = {run_command()},
          .backends = [] { return states_of(rdma::backends()); },
          .models = {{"model", "software NIC; the queues of " + rdma::vendors_text("or")}},
          .devices_title = "RDMA devices",
          .devices = rdma_devices,
          .demo_steps = rdma_demo_steps,
          .check_fault = check_rdma_fault};
}

}  // namespace doorbell::cli
