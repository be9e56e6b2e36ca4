// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "system/open_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "system/sysfs.hpp"

namespace doorbell {

namespace {

bool is_of(const struct stat& st, FileKinds kinds) {
  return S_ISREG(st.st_mode) || (kinds == FileKinds::regular_or_block && S_ISBLK(st.st_mode));
}

Opened refused(const struct stat& st, FileKinds kinds) {
  if (S_ISDIR(st.st_mode)) return {{}, EISDIR, "it is a folder"};
  return {
      {},
      EINVAL,
      kinds == FileKinds::regular ? "it is not a regular file" : "it is neither a file nor a block device"};
}

}  // namespace

Opened open_file(const std::string& path, int flags, FileKinds kinds, unsigned mode) {
  struct stat st {};
  // Asked first: opening a device node may already do something to the device.
  if (::stat(path.c_str(), &st) == 0 && !is_of(st, kinds)) return refused(st, kinds);
  // O_NONBLOCK is for a FIFO that has come in between; regular files and block devices do not know it.
  Descriptor fd(::open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK, mode));
  if (fd.get() < 0) {
    const int error = errno;
    return {{}, error, reason(error)};
  }
  if (::fstat(fd.get(), &st) != 0) {
    const int error = errno;
    return {{}, error, reason(error)};
  }
  if (!is_of(st, kinds)) return refused(st, kinds);
  return {std::move(fd), 0, {}};
}

bool same_file(const std::string& a, const std::string& b) {
  namespace fs = std::filesystem;
  if (a.empty() || b.empty() || a == "-" || b == "-") return false;
  struct stat one {
  }, other{};
  const bool there = ::stat(a.c_str(), &one) == 0;
  const bool also = ::stat(b.c_str(), &other) == 0;
  if (there && also) return one.st_dev == other.st_dev && one.st_ino == other.st_ino;
  if (there != also) return false;
  std::error_code error, error2;
  const fs::path first = fs::weakly_canonical(fs::absolute(a, error), error);
  const fs::path second = fs::weakly_canonical(fs::absolute(b, error2), error2);
  return !error && !error2 && first == second;
}

}  // namespace doorbell
