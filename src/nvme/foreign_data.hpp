// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Whether a file holds data that doorbell did not write.
#pragma once

#include <doorbell/pattern.hpp>

#include <optional>
#include <string>

namespace doorbell::nvme {

/// True when the file is a hole from end to end, or empty: there is nothing in it.
[[nodiscard]] bool holds_nothing(int fd);

/// False when the file holds nothing, or only what doorbell wrote: whole 512-byte units of the test pattern,
/// of any version of it, with zeros between them. Zeros alone are foreign data, when they are more than a
/// hole. All data of the file is looked at, wherever a run will write: what is nothing to doorbell may be a
/// part of something to its owner. What cannot be read is foreign. Throws Error when a signal asks the
/// program to stop.
[[nodiscard]] bool holds_foreign_data(int fd);

/// Who wrote the unit at `byte` of the file, by its header; empty where there is no whole unit.
[[nodiscard]] std::optional<pattern::Identity> writer_of(const std::string& path, u64 byte);

}  // namespace doorbell::nvme
