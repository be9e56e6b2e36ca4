// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The facts about the machine: the Result's `environment`.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace doorbell::report {

/// Everything that is cheap to read (a few milliseconds and no privilege). What cannot be read is null,
/// never guessed. Neither host name nor user name is recorded. Never throws.
[[nodiscard]] nlohmann::ordered_json collect_environment();

/// The part that comes from files, read below `root` in place of "/": /proc, /sys, /etc. `pci_address` is
/// one of a device whose link is wanted.
[[nodiscard]] nlohmann::ordered_json read_machine(const std::filesystem::path& root);
[[nodiscard]] nlohmann::ordered_json read_pci_link(const std::filesystem::path& root,
                                                   const std::string& pci_address);

/// One line for each thing about the machine or the build that makes figures doubtful.
[[nodiscard]] std::vector<std::string> environment_warnings(const nlohmann::ordered_json& environment);

}  // namespace doorbell::report
