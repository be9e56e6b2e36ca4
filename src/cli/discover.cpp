// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/discover.hpp"

#include <algorithm>
#include <system_error>

namespace doorbell::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

Json text_of(const fs::path& file) {
  const auto line = read_line(file);
  return line && !line->empty() ? Json(*line) : Json();
}

Json number_of(const fs::path& file) {
  const auto number = read_number(file);
  return number ? Json(*number) : Json();
}

/// link_name(), null without a link.
Json linked(const fs::path& link) {
  const std::string name = link_name(link);
  return name.empty() ? Json() : Json(name);
}

/// "0000:3b:00.0" of the PCI function behind a class device; null for a virtual one.
Json pci_address(const fs::path& device_link) {
  const Json name = linked(device_link);
  const bool pci = name.is_string() && std::count(name.get_ref<const std::string&>().begin(),
                                                  name.get_ref<const std::string&>().end(), ':') == 2;
  return pci ? name : Json();
}

Json numa_node(const fs::path& device) {
  const auto node = read_number(device / "numa_node");
  return node && *node >= 0 ? Json(*node) : Json();
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

}  // namespace

std::vector<Device> pci_functions(const std::string& class_prefix, const fs::path& root) {
  std::vector<Device> found;
  const fs::path folder = root / "sys/bus/pci/devices";
  for (const std::string& address : names_in(folder)) {
    const fs::path device = folder / address;
    const auto code = read_line(device / "class");
    if (!code || !code->starts_with(class_prefix)) continue;
    found.push_back({address,
                     {{"class", *code},
                      {"vendor_id", text_of(device / "vendor")},
                      {"device_id", text_of(device / "device")},
                      {"driver", linked(device / "driver")},
                      {"iommu_group", linked(device / "iommu_group")},
                      {"numa_node", numa_node(device)}}});
  }
  return found;
}

std::vector<Device> nvme_controllers(const fs::path& root) {
  std::vector<Device> found;
  std::vector<std::string> with_kernel_driver;
  const fs::path folder = root / "sys/class/nvme";
  for (const std::string& name : names_in(folder)) {
    const fs::path controller = folder / name;
    const Json address = pci_address(controller / "device");
    if (address.is_string()) with_kernel_driver.push_back(address);
    found.push_back({name,
                     {{"pci_address", address},
                      {"driver", linked(controller / "device/driver")},
                      {"model", text_of(controller / "model")},
                      {"serial", text_of(controller / "serial")},
                      {"firmware", text_of(controller / "firmware_rev")},
                      {"transport", text_of(controller / "transport")},
                      {"iommu_group", linked(controller / "device/iommu_group")},
                      {"numa_node", numa_node(controller / "device")},
                      {"namespaces", namespaces_of(controller, name)}}});
  }
  // Controllers that another driver (vfio-pci) holds, or none: the ones doorbell itself can drive.
  for (Device& function : pci_functions("0x0108", root)) {
    if (std::find(with_kernel_driver.begin(), with_kernel_driver.end(), function.name) !=
        with_kernel_driver.end()) {
      continue;
    }
    function.facts["pci_address"] = function.name;
    found.push_back(std::move(function));
  }
  return found;
}

std::vector<Device> rdma_devices(const fs::path& root) {
  std::vector<Device> found;
  const fs::path folder = root / "sys/class/infiniband";
  for (const std::string& name : names_in(folder)) {
    const fs::path device = folder / name;
    Json ports = Json::array();
    for (const std::string& port : names_in(device / "ports")) {
      const fs::path at = device / "ports" / port;
      ports.push_back({{"port", port},
                       {"link_layer", text_of(at / "link_layer")},
                       {"state", text_of(at / "state")},
                       {"rate", text_of(at / "rate")}});
    }
    found.push_back({name,
                     {{"pci_address", pci_address(device / "device")},
                      {"driver", linked(device / "device/driver")},
                      {"node_type", text_of(device / "node_type")},
                      {"firmware", text_of(device / "fw_ver")},
                      {"numa_node", numa_node(device / "device")},
                      {"ports", ports}}});
  }
  return found;
}

std::vector<Device> cxi_devices(const fs::path& root) {
  std::vector<Device> found;
  const fs::path folder = root / "sys/class/cxi";
  for (const std::string& name : names_in(folder)) {
    const fs::path device = folder / name / "device";
    found.push_back({name,
                     {{"pci_address", pci_address(device)},
                      {"driver", linked(device / "driver")},
                      {"numa_node", numa_node(device)}}});
  }
  return found;
}

std::vector<Device> network_interfaces(const fs::path& root) {
  std::vector<Device> found;
  const fs::path folder = root / "sys/class/net";
  for (const std::string& name : names_in(folder)) {
    const fs::path device = folder / name;
    std::error_code failed;
    if (!fs::is_directory(device, failed)) continue;  // "bonding_masters" is a file
    const auto mbits = read_number(device / "speed");
    found.push_back({name,
                     {{"pci_address", pci_address(device / "device")},
                      {"driver", linked(device / "device/driver")},
                      {"state", text_of(device / "operstate")},
                      {"speed_bits_per_s", mbits && *mbits > 0 ? Json(*mbits * 1'000'000) : Json()},
                      {"mtu_bytes", number_of(device / "mtu")},
                      {"numa_node", numa_node(device / "device")}}});
  }
  return found;
}

}  // namespace doorbell::cli
