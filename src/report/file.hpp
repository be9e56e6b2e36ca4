// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Writing a whole file so that a reader sees the old contents or the new ones, never half of them.
#pragma once

#include <string>
#include <string_view>

namespace doorbell::report {

/// Replaces `path` by `contents`: a temporary file in the same directory, fsync, rename. A symbolic link
/// stays one and its target is replaced; mode and owner stay as they were, and where this process may not
/// give a file that owner the old one is overwritten instead. "-" is stdout, and what is not a regular file
/// (a pipe, /dev/null) is written to, because renaming over it would destroy it; a pipe without a
/// reader for 10 s is an error. Throws doorbell::Error; a failure leaves the old file as it was and no
/// temporary file behind.
void write_file(const std::string& path, std::string_view contents);

}  // namespace doorbell::report
