// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Finds doorbell_dpdk.so and makes sure that it belongs to this program.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "net/dpdk/plugin.hpp"

namespace doorbell::net::dpdk {

/// Folders in the order in which they are searched: those of the environment variable DOORBELL_PLUGINS
/// (separated by ':') and no others if it is set; else the program's own folder, ../lib/doorbell from there,
/// and where `cmake --install` puts plugins.
[[nodiscard]] std::vector<std::filesystem::path> plugin_folders();

/// The plugin in the first of `folders` that has one. Once loaded it stays so. Throws Error
/// (ExitCode::absent): there is none, a library that it needs is missing, or it was built with another
/// doorbell.
[[nodiscard]] const PluginTable& load_plugin(const std::vector<std::filesystem::path>& folders);
[[nodiscard]] const PluginTable& load_plugin();

}  // namespace doorbell::net::dpdk
