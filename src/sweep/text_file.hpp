// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Reads whole files of moderate size.
#pragma once

#include <cstddef>
#include <string>

namespace doorbell::sweep {

inline constexpr std::size_t kMaxText = std::size_t{1} << 30;

/// Reads regular files only: a FIFO would wait for a writer, and /dev/zero has no end. Throws doorbell::Error
/// for other kinds of files, for a file that cannot be read, and for one larger than `max_bytes`.
[[nodiscard]] std::string read_text(const std::string& path, std::size_t max_bytes = kMaxText);

/// The first `bytes` of a regular file, or fewer if it is shorter; empty if it cannot be read.
[[nodiscard]] std::string read_start(const std::string& path, std::size_t bytes);

}  // namespace doorbell::sweep
