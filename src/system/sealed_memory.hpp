// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Memory that is given to another process, which must not end this one by cutting the file short.
#pragma once

#include <doorbell/config.hpp>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "system/descriptor.hpp"

namespace doorbell {

/// A file without a name, `bytes` zeros long, that nobody can make shorter or longer. None where the system
/// gives none: errno says why. `name` is what /proc shows.
[[nodiscard]] inline Descriptor sealed_memory(const char* name, u64 bytes) {
  Descriptor file(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (file.get() >= 0 && (ftruncate(file.get(), static_cast<off_t>(bytes)) != 0 ||
                          fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)) {
    const int error = errno;
    file.reset();
    errno = error;
  }
  return file;
}

}  // namespace doorbell
