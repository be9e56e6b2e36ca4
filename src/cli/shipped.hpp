// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <filesystem>
#include <string>

namespace doorbell::cli {

/// A file or folder that comes with the program ("plans", "python"): where it is installed, else in the
/// source tree. Empty if it is in neither.
[[nodiscard]] std::filesystem::path shipped(const std::string& name);

/// The folder of libraries that stand in for another's ("verbs", "cxi"), which has `library`: of the build
/// tree, or where it is installed. Throws Error (ExitCode::absent), with `hint` before where it looked.
[[nodiscard]] std::filesystem::path shipped_libraries(const std::string& name, const std::string& library,
                                                      const std::string& hint = {});

}  // namespace doorbell::cli
