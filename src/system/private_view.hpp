// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Folders that look different to this process, and to what it starts, than to others.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

namespace doorbell {

/// A folder as it is seen: what it has, and entries of its own in place of those of the same names.
struct FolderView {
  std::string folder;                                           ///< is there
  std::vector<std::pair<std::string, std::string>> links = {};  ///< path in it, and where that leads
  /// Name, and the folder that is seen there, as it is found before anything is changed.
  std::vector<std::pair<std::string, std::string>> folders = {};
  /// Files of its own that cannot be written, by their paths in the folder, and what is in them.
  std::vector<std::pair<std::string, std::string>> files = {};
  std::string hide = {};  ///< entries whose names begin so are not seen; empty: all are
};

/// Enters a mount namespace, and where that takes rights that this process has not, a user namespace with it:
/// user and group stay what they are. Entries that come into being later in such a folder itself are not
/// seen. The process has one thread. Throws Error, ExitCode::absent where namespaces are refused.
void enter_private_view(std::span<const FolderView> views);

}  // namespace doorbell
