// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// How many files a run may have open.
#pragma once

#include <doorbell/config.hpp>

#include <optional>
#include <string>

namespace doorbell {

/// Files that this process has open; none where the kernel does not say.
[[nodiscard]] std::optional<u64> open_file_count();
/// Those that it may have open.
[[nodiscard]] u64 open_file_limit();

/// Raises the soft limit of open files to the hard one. The usual soft limit, 1024, is there for programs
/// that use select().
void allow_all_open_files();

/// The hint for EMFILE and ENFILE.
[[nodiscard]] std::string more_open_files();

/// Throws doorbell::Error when this process may not open `files` more. `what` names the options that ask for
/// them, and `sum` says how they come about: "4 queues x 256 transfers".
void require_open_files(u64 files, const std::string& what, const std::string& sum);

}  // namespace doorbell
