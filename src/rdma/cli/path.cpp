// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>

#include "rdma/backends.hpp"
#include "rdma/cli/parts.hpp"
#include "system/sysfs.hpp"

namespace doorbell::cli {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// "software NIC; the queues of A, B or C": the providers whose queues the model has.
std::string model_summary() {
  std::vector<std::string> modelled;
  const std::vector<std::string>& names = rdma::provider_names();
  for (std::size_t i = 0; i < names.size(); ++i) {
    const rdma::DeviceRequest request = {.spec = "model", .provider = static_cast<rdma::Provider>(i)};
    if (std::ranges::any_of(rdma::backends(), [&](const rdma::Backend& b) { return b.accepts(request); }))
      modelled.push_back(names[i]);
  }
  const std::string last = modelled.back();
  modelled.pop_back();
  return fmt::format("software NIC; the queues of {} or {}", fmt::join(modelled, ", "), last);
}

std::vector<FoundDevice> rdma_devices(const fs::path& root) {
  std::vector<FoundDevice> found;
  const fs::path folder = root / "sys/class/infiniband";
  for (const std::string& name : names_in(folder)) {
    const fs::path device = folder / name;
    Json ports = Json::array();
    for (const std::string& port : names_in(device / "ports")) {
      const fs::path at = device / "ports" / port;
      ports.push_back({{"port", port},
                       {"link_layer", text_fact(at / "link_layer")},
                       {"state", text_fact(at / "state")},
                       {"rate", text_fact(at / "rate")}});
    }
    found.push_back({name,
                     {{"pci_address", pci_address_fact(device / "device")},
                      {"driver", link_fact(device / "device/driver")},
                      {"node_type", text_fact(device / "node_type")},
                      {"firmware", text_fact(device / "fw_ver")},
                      {"numa_node", numa_node_fact(device / "device")},
                      {"ports", ports}}});
  }
  return found;
}

}  // namespace

PathDescription rdma_path() {
  return {.title = "RDMA",
          .work = "RDMA operations",
          .command = rdma_command(),
          .backends = [] { return states_of(rdma::backends()); },
          .models = {{"model", model_summary()}},
          .devices_title = "RDMA devices",
          .devices = rdma_devices,
          .demo_steps = rdma_demo_steps,
          .check_fault = check_rdma_fault};
}

}  // namespace doorbell::cli
