// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Whether a file's contents are somebody else's.
#pragma once

#include <doorbell/config.hpp>

namespace doorbell::nvme {

/// False when the file (of `bytes`) is empty, or begins with zeros or with a block of the test pattern.
[[nodiscard]] bool holds_foreign_data(int fd, u64 bytes);

}  // namespace doorbell::nvme
