// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// What of this machine would break if a disk controller were taken from its kernel driver.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace doorbell::pci {

/// One sentence for each use of the block devices behind a PCI function, the gravest first: mounted file
/// systems and swap, on the disks, their partitions and whatever is built upon them (dm, LVM, LUKS, md);
/// volumes built upon them that are not mounted; and disks that somebody has open exclusively. Empty when
/// nothing uses them.
[[nodiscard]] std::vector<std::string> uses_of(const std::string& address,
                                               const std::filesystem::path& root = "/");

/// Throws, naming every use, unless there is none.
void require_unused(const std::string& address, const std::filesystem::path& root = "/");

}  // namespace doorbell::pci
