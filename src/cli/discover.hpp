// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// What the kernel shows of this machine's devices. Reads sysfs only; opens no device.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "system/sysfs.hpp"

namespace doorbell::cli {

/// A device and what is known of it, by unit-bearing keys; what cannot be read is null.
struct Device {
  std::string name;
  nlohmann::ordered_json facts = nlohmann::ordered_json::object();
};

/// Every call takes the root of the file system, so that tests show it a made-up machine. None throws;
/// what is not there is not listed. Sorted by name.
[[nodiscard]] std::vector<Device> nvme_controllers(const std::filesystem::path& root = "/");
[[nodiscard]] std::vector<Device> rdma_devices(const std::filesystem::path& root = "/");
[[nodiscard]] std::vector<Device> cxi_devices(const std::filesystem::path& root = "/");
[[nodiscard]] std::vector<Device> network_interfaces(const std::filesystem::path& root = "/");
/// PCI functions whose class begins with `class_prefix` ("0x0108").
[[nodiscard]] std::vector<Device> pci_functions(const std::string& class_prefix,
                                                const std::filesystem::path& root = "/");

}  // namespace doorbell::cli
