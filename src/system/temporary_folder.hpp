// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A folder that lives as long as its object.
#pragma once

#include <string>

namespace doorbell {

/// Below the folder for temporary files; only this user can enter it. Removed at the end with all that is in
/// it.
class TemporaryFolder {
 public:
  /// Its name begins with doorbell-PURPOSE. Throws Error.
  explicit TemporaryFolder(const std::string& purpose);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  /// Where a file of that name would lie in it.
  [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace doorbell
