// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// One PCI function as sysfs shows it. Reads only; opens no device.
#pragma once

#include <doorbell/config.hpp>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace doorbell::pci {

inline constexpr std::string_view kVfioDriver = "vfio-pci";

/// "0000:01:00.0" of "01:00.0", "0000:01:00.0" or "0000:01:00.A" in either case; empty when it is no address.
[[nodiscard]] std::optional<std::string> parse_address(std::string_view text);

/// The function behind "/dev/nvme0", "/dev/nvme0n1", "nvme0": where its kernel driver says it is. Empty for
/// another kind of name or a controller that is on no PCI bus.
[[nodiscard]] std::optional<std::string> address_of_nvme(std::string_view name,
                                                         const std::filesystem::path& root = "/");

struct Function {
  std::string address;
  u32 vendor = 0;
  u32 device = 0;
  u32 class_code = 0;                      ///< 0x010802
  std::string driver;                      ///< empty: none holds it
  std::string iommu_group;                 ///< its number; empty: no IOMMU
  std::vector<std::string> group_members;  ///< the others of the group, bridges left out
  int numa_node = -1;                      ///< -1: the machine does not say

  [[nodiscard]] bool is_nvme() const { return class_code >> 8 == 0x0108; }
  /// "1b36:0010"
  [[nodiscard]] std::string id() const;
};

/// Throws with ExitCode::absent when there is no such function. `address` as parse_address() returns it.
[[nodiscard]] Function read_function(const std::string& address, const std::filesystem::path& root = "/");

/// Of the other members of a function's group, those that a driver holds which the kernel will not let share
/// a group with user space: "0000:02:00.1 (nvme)".
[[nodiscard]] std::vector<std::string> foreign_members(const Function& f,
                                                       const std::filesystem::path& root = "/");

/// Throws when the function has no IOMMU group, saying what to switch on.
void require_iommu(const Function& f);

/// Where sysfs keeps a function: ROOT/sys/bus/pci/devices/ADDRESS.
[[nodiscard]] std::filesystem::path sysfs_folder(const std::string& address,
                                                 const std::filesystem::path& root = "/");

}  // namespace doorbell::pci
