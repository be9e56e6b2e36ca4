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

/// "0000:01:00.0" from "01:00.0", "0000:01:00.0" or "0000:01:00.A" in either case; empty for other texts.
[[nodiscard]] std::optional<std::string> parse_address(std::string_view text);

/// The address of the function behind "/dev/nvme0", "/dev/nvme0n1" or "nvme0", as its kernel driver shows it.
/// Empty for other names, and for controllers that are not on a PCI bus.
[[nodiscard]] std::optional<std::string> address_of_nvme(std::string_view name,
                                                         const std::filesystem::path& root = "/");

struct Function {
  std::string address;
  u32 vendor = 0;
  u32 device = 0;
  u32 class_code = 0;                      ///< 0x010802
  std::string driver;                      ///< empty: no driver holds the function
  std::string iommu_group;                 ///< its number; empty: no IOMMU
  std::vector<std::string> group_members;  ///< the other members, without bridges
  int numa_node = -1;                      ///< -1: unknown

  [[nodiscard]] bool is_nvme() const { return class_code >> 8 == 0x0108; }
  /// "1b36:0010"
  [[nodiscard]] std::string id() const;
};

/// Throws with ExitCode::absent if there is no such function. `address` as parse_address() returns it.
[[nodiscard]] Function read_function(const std::string& address, const std::filesystem::path& root = "/");

/// The other members of a function's group whose drivers do not allow the group to be used from user space:
/// "0000:02:00.1 (nvme)".
[[nodiscard]] std::vector<std::string> foreign_members(const Function& f,
                                                       const std::filesystem::path& root = "/");

/// Throws if the function has no IOMMU group, and says what to switch on.
void require_iommu(const Function& f);

/// The folder of a function in sysfs: ROOT/sys/bus/pci/devices/ADDRESS.
[[nodiscard]] std::filesystem::path sysfs_folder(const std::string& address,
                                                 const std::filesystem::path& root = "/");

}  // namespace doorbell::pci
