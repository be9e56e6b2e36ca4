// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Reading the kernel's small files. None of these throws; what cannot be read is empty.
#pragma once

#include <doorbell/config.hpp>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace doorbell {

/// First line of a file without trailing blanks.
[[nodiscard]] std::optional<std::string> read_line(const std::filesystem::path& file);
/// The whole number, decimal or "0x...", that a file's first line is.
[[nodiscard]] std::optional<i64> read_number(const std::filesystem::path& file);
/// The last component of a link's target: a driver's name, an IOMMU group; "" without a link.
[[nodiscard]] std::string link_name(const std::filesystem::path& link);
/// Names in a folder, sorted.
[[nodiscard]] std::vector<std::string> names_in(const std::filesystem::path& folder);
[[nodiscard]] bool present(const std::filesystem::path& path);

/// The meaning of an errno.
[[nodiscard]] std::string reason(int error);
/// "ETIMEDOUT"; "errno 4711" for one that has no name.
[[nodiscard]] std::string errno_name(int error);

}  // namespace doorbell
