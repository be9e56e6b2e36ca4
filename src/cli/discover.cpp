// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/discover.hpp"

#include <algorithm>
#include <system_error>

#include "system/sysfs.hpp"

namespace doorbell::cli {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

Json text_fact(const fs::path& file) {
  const auto line = read_line(file);
  return line && !line->empty() ? Json(*line) : Json();
}

Json number_fact(const fs::path& file) {
  const auto number = read_number(file);
  return number ? Json(*number) : Json();
}

Json link_fact(const fs::path& link) {
  const std::string name = link_name(link);
  return name.empty() ? Json() : Json(name);
}

Json pci_address_fact(const fs::path& device_link) {
  const Json name = link_fact(device_link);
  const bool pci = name.is_string() && std::count(name.get_ref<const std::string&>().begin(),
                                                  name.get_ref<const std::string&>().end(), ':') == 2;
  return pci ? name : Json();
}

Json numa_node_fact(const fs::path& device) {
  const auto node = read_number(device / "numa_node");
  return node && *node >= 0 ? Json(*node) : Json();
}

std::vector<FoundDevice> pci_functions(const std::string& class_prefix, const fs::path& root) {
  std::vector<FoundDevice> found;
  const fs::path folder = root / "sys/bus/pci/devices";
  for (const std::string& address : names_in(folder)) {
    const fs::path device = folder / address;
    const auto code = read_line(device / "class");
    if (!code || !code->starts_with(class_prefix)) continue;
    found.push_back({address,
                     {{"class", *code},
                      {"vendor_id", text_fact(device / "vendor")},
                      {"device_id", text_fact(device / "device")},
                      {"driver", link_fact(device / "driver")},
                      {"iommu_group", link_fact(device / "iommu_group")},
                      {"numa_node", numa_node_fact(device)}}});
  }
  return found;
}

std::vector<FoundDevice> network_interfaces(const fs::path& root) {
  std::vector<FoundDevice> found;
  const fs::path folder = root / "sys/class/net";
  for (const std::string& name : names_in(folder)) {
    const fs::path device = folder / name;
    std::error_code failed;
    if (!fs::is_directory(device, failed)) continue;  // "bonding_masters" is a file
    const auto mbits = read_number(device / "speed");
    found.push_back({name,
                     {{"pci_address", pci_address_fact(device / "device")},
                      {"driver", link_fact(device / "device/driver")},
                      {"state", text_fact(device / "operstate")},
                      {"speed_bits_per_s", mbits && *mbits > 0 ? Json(*mbits * 1'000'000) : Json()},
                      {"mtu_bytes", number_fact(device / "mtu")},
                      {"numa_node", numa_node_fact(device / "device")}}});
  }
  return found;
}

}  // namespace doorbell::cli
