// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "sweep/text_file.hpp"

#include <doorbell/error.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "system/open_file.hpp"
#include "system/sysfs.hpp"

namespace doorbell::sweep {

namespace {

/// Reads to the end of the file, or until `text` has `enough` bytes; returns 0 or an errno.
int read_into(int fd, std::size_t enough, std::string* text) {
  std::array<char, 65536> part;
  while (text->size() < enough) {
    const ssize_t n = ::read(fd, part.data(), std::min(part.size(), enough - text->size()));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    if (n == 0) return 0;
    text->append(part.data(), static_cast<std::size_t>(n));
  }
  return 0;
}

}  // namespace

std::string read_text(const std::string& path, std::size_t max_bytes) {
  const Opened file = open_file(path, O_RDONLY, FileKinds::regular);
  if (!file) throw Error(path, file.why);
  std::string text;
  // Reads one byte more than allowed: a file may grow while it is read, and files of /proc have no size.
  if (const int error = read_into(file.fd.get(), max_bytes + 1, &text)) throw Error(path, reason(error));
  if (text.size() > max_bytes) throw Error(path, fmt::format("it is larger than {} bytes", max_bytes));
  return text;
}

std::string read_start(const std::string& path, std::size_t bytes) {
  const Opened file = open_file(path, O_RDONLY, FileKinds::regular);
  std::string text;
  if (file) (void)read_into(file.fd.get(), bytes, &text);
  return text;
}

}  // namespace doorbell::sweep
