// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The devices of this machine as the kernel shows them. Only reads sysfs; opens no device.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace doorbell::cli {

/// A device of this machine and its facts. Keys have units in their names; what cannot be read is null.
struct FoundDevice {
  std::string name;
  nlohmann::ordered_json facts = nlohmann::ordered_json::object();
};

/// Both functions take the root of the file system, so that tests can use a simulated machine. They never
/// throw; devices that do not exist are not listed. Sorted by name.
[[nodiscard]] std::vector<FoundDevice> network_interfaces(const std::filesystem::path& root = "/");
/// PCI functions whose class begins with `class_prefix` ("0x0108").
[[nodiscard]] std::vector<FoundDevice> pci_functions(const std::string& class_prefix,
                                                     const std::filesystem::path& root = "/");

/// Facts of a device; null if there is nothing to read. The following is a file's first line, or the number
/// in it.
[[nodiscard]] nlohmann::ordered_json text_fact(const std::filesystem::path& file);
[[nodiscard]] nlohmann::ordered_json number_fact(const std::filesystem::path& file);
/// The last component of a link's target.
[[nodiscard]] nlohmann::ordered_json link_fact(const std::filesystem::path& link);
/// "0000:3b:00.0": the PCI function to which a class device's link leads; null for a virtual device.
[[nodiscard]] nlohmann::ordered_json pci_address_fact(const std::filesystem::path& device_link);
[[nodiscard]] nlohmann::ordered_json numa_node_fact(const std::filesystem::path& device);

}  // namespace doorbell::cli
