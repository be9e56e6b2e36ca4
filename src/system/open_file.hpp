// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Opening files that a user named: never one that makes the process wait, never one twice in two roles.
#pragma once

#include <string>

#include "system/descriptor.hpp"

namespace doorbell {

enum class FileKinds { regular, regular_or_block };

struct Opened {
  Descriptor fd;
  int error = 0;    ///< an errno; EINVAL for what is there and of no such kind
  std::string why;  ///< empty when it is open
  [[nodiscard]] explicit operator bool() const { return fd.get() >= 0; }
};

/// Opens `path` with `flags` (and O_CLOEXEC); `mode` is for O_CREAT. Only what is of `kinds` is opened: a
/// FIFO waits for its other end, a terminal or /dev/zero has none. A file that is replaced by something else
/// while it is being opened is refused as well. Never throws.
[[nodiscard]] Opened open_file(const std::string& path, int flags, FileKinds kinds, unsigned mode = 0644);

/// True when both names lead to the same file: by device and inode where both exist (links included), else by
/// what the names resolve to. "" and "-" are no files.
[[nodiscard]] bool same_file(const std::string& a, const std::string& b);

}  // namespace doorbell
