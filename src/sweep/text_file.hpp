// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Whole files of moderate size.
#pragma once

#include <string>

namespace doorbell::sweep {

/// Throws doorbell::Error for a file that cannot be read, a folder, or one beyond 1 GiB.
[[nodiscard]] std::string read_text(const std::string& path);

}  // namespace doorbell::sweep
