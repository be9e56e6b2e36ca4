// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// What the kernel shows of this machine's devices. Reads sysfs only; opens no device.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace doorbell::cli {

/// A device of this machine and what is known of it, by unit-bearing keys; what cannot be read is null.
struct FoundDevice {
  std::string name;
  nlohmann::ordered_json facts = nlohmann::ordered_json::object();
};

/// Both take the root of the file system, so that tests show them a made-up machine. None throws; what is not
/// there is not listed. Sorted by name.
[[nodiscard]] std::vector<FoundDevice> network_interfaces(const std::filesystem::path& root = "/");
/// PCI functions whose class begins with `class_prefix` ("0x0108").
[[nodiscard]] std::vector<FoundDevice> pci_functions(const std::string& class_prefix,
                                                     const std::filesystem::path& root = "/");

/// Facts of a device; null where there is nothing to read. A file's first line, or the number on it:
[[nodiscard]] nlohmann::ordered_json text_fact(const std::filesystem::path& file);
[[nodiscard]] nlohmann::ordered_json number_fact(const std::filesystem::path& file);
/// The last component of a link's target.
[[nodiscard]] nlohmann::ordered_json link_fact(const std::filesystem::path& link);
/// "0000:3b:00.0" of the PCI function that a class device's link leads to; null for a virtual device.
[[nodiscard]] nlohmann::ordered_json pci_address_fact(const std::filesystem::path& device_link);
[[nodiscard]] nlohmann::ordered_json numa_node_fact(const std::filesystem::path& device);

}  // namespace doorbell::cli
