// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "system/temporary_folder.hpp"

#include <doorbell/error.hpp>
#include <stdlib.h>

#include <cerrno>
#include <filesystem>

#include "system/sysfs.hpp"

namespace doorbell {

TemporaryFolder::TemporaryFolder(const std::string& purpose) {
  std::error_code error;
  const std::filesystem::path place = std::filesystem::temp_directory_path(error);
  if (error) throw Error("the folder for temporary files", error.message(), "TMPDIR names another folder");
  path_ = (place / ("doorbell-" + purpose + "-XXXXXX")).string();
  if (::mkdtemp(path_.data()) == nullptr) throw Error(path_, reason(errno), "TMPDIR names another folder");
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace doorbell
