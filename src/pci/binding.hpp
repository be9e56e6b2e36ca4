// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Hands an NVMe controller from the kernel's driver to vfio-pci, and back.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "pci/function.hpp"

namespace doorbell::pci {

/// The machine that binding reads and changes; tests use a simulated one.
struct Machine {
  std::filesystem::path root = "/";
  /// Writes a sysfs file; returns 0 or an errno.
  std::function<int(const std::filesystem::path& file, const std::string& text)> write;
  /// Loads a kernel module by name or alias; returns an empty text, or why it failed.
  std::function<std::string(const std::string& module)> modprobe;
  /// Opens this file for reading and writing; returns 0 or the errno.
  std::function<int(const std::filesystem::path& file)> try_open;
};
[[nodiscard]] Machine this_machine();

struct Rebound {
  Function function;   ///< after the change
  std::string before;  ///< the driver before the change; empty: none
  bool changed = false;
};

/// Binds the function to vfio-pci; with `whole_group` every other member of its IOMMU group too. Refuses
/// without any change: functions that are not NVMe controllers, functions in use by this machine, functions
/// without an IOMMU, and groups with members that other drivers hold. If a step fails, the earlier ones are
/// undone.
[[nodiscard]] std::vector<Rebound> bind(const std::string& address, bool whole_group, const Machine& machine);

/// Gives the function back to the kernel's own driver. Refuses while a program has it open.
[[nodiscard]] std::vector<Rebound> unbind(const std::string& address, bool whole_group,
                                          const Machine& machine);

}  // namespace doorbell::pci
