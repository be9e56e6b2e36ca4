// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Whole files of moderate size.
#pragma once

#include <cstddef>
#include <string>

namespace doorbell::sweep {

inline constexpr std::size_t kMaxText = std::size_t{1} << 30;

/// Only regular files: a FIFO would wait for its other end, /dev/zero has none. Throws doorbell::Error for
/// any other kind, for a file that cannot be read and for one beyond `max_bytes`.
[[nodiscard]] std::string read_text(const std::string& path, std::size_t max_bytes = kMaxText);

/// The first `bytes` of a regular file, or what there is of it; empty when it cannot be read.
[[nodiscard]] std::string read_start(const std::string& path, std::size_t bytes);

}  // namespace doorbell::sweep
