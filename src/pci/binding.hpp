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

/// What binding reads and does; tests put a made-up machine here.
struct Machine {
  std::filesystem::path root = "/";
  /// Writes a sysfs file; 0 or an errno.
  std::function<int(const std::filesystem::path& file, const std::string& text)> write;
  /// Loads a kernel module by name or alias; empty, or why it cannot.
  std::function<std::string(const std::string& module)> modprobe;
  /// 0, or the errno of opening this file for reading and writing.
  std::function<int(const std::filesystem::path& file)> try_open;
};
[[nodiscard]] Machine this_machine();

struct Rebound {
  Function function;   ///< as it is now
  std::string before;  ///< the driver it had; empty: none
  bool changed = false;
};

/// Binds the function to vfio-pci; with `whole_group` every other member of its IOMMU group too. Refuses, and
/// has then changed nothing: what is no NVMe controller, what the machine uses, what is behind no IOMMU, and
/// a group with members that other drivers hold. A step that fails is undone.
[[nodiscard]] std::vector<Rebound> bind(const std::string& address, bool whole_group, const Machine& machine);

/// Gives it back to the kernel's own driver. Refuses while a program has it open.
[[nodiscard]] std::vector<Rebound> unbind(const std::string& address, bool whole_group,
                                          const Machine& machine);

}  // namespace doorbell::pci
