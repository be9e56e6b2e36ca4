// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "sweep/text_file.hpp"

#include <doorbell/config.hpp>
#include <doorbell/error.hpp>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "system/descriptor.hpp"
#include "system/sysfs.hpp"

namespace doorbell::sweep {

namespace {
constexpr std::size_t kMaxBytes = std::size_t{1} << 30;
}

std::string read_text(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) throw Error(path, reason(errno));
  struct stat status {};
  if (::fstat(file.get(), &status) == 0 && S_ISDIR(status.st_mode)) throw Error(path, "it is a folder");
  std::string text;
  std::array<char, 65536> part;
  for (;;) {
    const ssize_t n = ::read(file.get(), part.data(), part.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw Error(path, reason(errno));
    if (n == 0) return text;
    text.append(part.data(), static_cast<std::size_t>(n));
    if (text.size() > kMaxBytes) throw Error(path, "it is larger than 1 GiB");
  }
}

}  // namespace doorbell::sweep
