// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>

#include "nvme/backends.hpp"
#include "nvme/cli/parts.hpp"
#include "system/sysfs.hpp"

namespace doorbell::cli {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

std::vector<BackendState> nvme_backends() {
  std::vector<BackendState> states = states_of(nvme::backends());
  states.push_back({"file", {true, "file:PATH through the kernel: io_uring, or pread and pwrite"}});
  return states;
}

/// Namespaces of an NVMe controller with their sizes; sysfs counts sectors of 512 bytes for every LBA size.
Json namespaces_of(const fs::path& controller, const std::string& name) {
  Json list = Json::array();
  for (const std::string& entry : names_in(controller)) {
    if (!entry.starts_with(name + "n")) continue;
    const auto sectors = read_number(controller / entry / "size");
    list.push_back({{"name", entry}, {"capacity_bytes", sectors ? Json(*sectors * 512) : Json()}});
  }
  return list;
}

std::vector<FoundDevice> nvme_controllers(const fs::path& root) {
  std::vector<FoundDevice> found;
  std::vector<std::string> with_kernel_driver;
  const fs::path folder = root / "sys/class/nvme";
  for (const std::string& name : names_in(folder)) {
    const fs::path controller = folder / name;
    const Json address = pci_address_fact(controller / "device");
    if (address.is_string()) with_kernel_driver.push_back(address);
    found.push_back({name,
                     {{"pci_address", address},
                      {"driver", link_fact(controller / "device/driver")},
                      {"model", text_fact(controller / "model")},
                      {"serial", text_fact(controller / "serial")},
                      {"firmware", text_fact(controller / "firmware_rev")},
                      {"transport", text_fact(controller / "transport")},
                      {"iommu_group", link_fact(controller / "device/iommu_group")},
                      {"numa_node", numa_node_fact(controller / "device")},
                      {"namespaces", namespaces_of(controller, name)}}});
  }
  // Controllers that another driver (vfio-pci) holds, or none: the ones doorbell itself can drive.
  for (FoundDevice& function : pci_functions("0x0108", root)) {
    if (std::find(with_kernel_driver.begin(), with_kernel_driver.end(), function.name) !=
        with_kernel_driver.end()) {
      continue;
    }
    function.facts["pci_address"] = function.name;
    found.push_back(std::move(function));
  }
  return found;
}

}  // namespace

PathDescription nvme_path() {
  return {.title = "NVMe",
          .work = "NVMe commands",
          .command = nvme_command(),
          .tools = {bind_command(), unbind_command(), serve_command(), serve_status_command(),
                    serve_fault_command()},
          .backends = nvme_backends,
          .models = {{"model", "software NVMe controller; media null, ram or file:PATH"}},
          .devices_title = "NVMe controllers",
          .devices = nvme_controllers,
          .checks = {check_iommu, check_vfio},
          .demo_steps = nvme_demo_steps,
          .check_fault = check_nvme_fault};
}

}  // namespace doorbell::cli
