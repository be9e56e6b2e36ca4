// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Uses of a disk controller on this machine: they would break if it were taken from its kernel driver.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace doorbell::pci {

/// One sentence for each use of the block devices of a PCI function, the most serious first: mounted file
/// systems and swap on the disks, on their partitions and on volumes made from them (dm, LVM, LUKS, md); such
/// volumes that are not mounted; and disks that a program has opened exclusively. Empty if nothing uses them.
[[nodiscard]] std::vector<std::string> uses_of(const std::string& address,
                                               const std::filesystem::path& root = "/");

/// Throws an Error that names every use, if there is one.
void require_unused(const std::string& address, const std::filesystem::path& root = "/");

}  // namespace doorbell::pci
