// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <filesystem>
#include <string>

namespace doorbell::cli {

/// A file or folder that comes with the program ("plans", "python"): where it is installed, else in the
/// source tree. Empty if it is in neither.
[[nodiscard]] std::filesystem::path shipped(const std::string& name);

}  // namespace doorbell::cli
