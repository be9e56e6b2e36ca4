// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "system/file_lock.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <sstream>
#include <utility>

#include "system/sysfs.hpp"

namespace doorbell {

namespace {

bool locked(int fd, int how) {
  int result = 0;
  do result = flock(fd, how | LOCK_NB);
  while (result != 0 && errno == EINTR);
  return result == 0 || errno != EWOULDBLOCK;
}

}  // namespace

bool taken_soon(const std::function<bool()>& taken) {
  constexpr int kTries = 50;
  constexpr useconds_t kPauseUs = 10'000;
  for (int tries = 0; !taken(); ++tries) {
    if (tries == kTries) return false;
    usleep(kPauseUs);
  }
  return true;
}

FileLock::FileLock(int fd, bool write, const std::string& subject) {
  const int how = write ? LOCK_EX : LOCK_SH;
  if (!taken_soon([&] { return locked(fd, how); }))
    throw Error(subject, fmt::format("it is in use by {}", lock_holder(fd)),
                write ? "a run that writes needs a file alone: wait for the other one, or use another file"
                      : "what is read changes: wait for the other run, or use another file");
  fd_ = fd;
}

FileLock::FileLock(FileLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

FileLock& FileLock::operator=(FileLock&& other) noexcept {
  if (this != &other) {
    release();
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

/// At once: a ring of the kernel's may keep the file open a moment longer.
void FileLock::release() noexcept {
  if (fd_ >= 0) (void)flock(fd_, LOCK_UN);
  fd_ = -1;
}

std::string process_name(int pid) {
  const auto name = read_line(fmt::format("/proc/{}/comm", pid));
  return name ? fmt::format("process {} ({})", pid, *name) : fmt::format("process {}", pid);
}

std::string lock_holder(int fd) {
  struct stat st {};
  if (fstat(fd, &st) == 0) {
    const std::string inode = fmt::format(":{}", st.st_ino);
    std::ifstream locks("/proc/locks");
    // "1: FLOCK  ADVISORY  WRITE 1234 08:01:5678 0 EOF"
    for (std::string line; std::getline(locks, line);) {
      std::istringstream words(line);
      std::string number, kind, mode, access, file;
      int pid = 0;
      words >> number >> kind >> mode >> access >> pid >> file;
      if (kind != "FLOCK" || !file.ends_with(inode)) continue;
      return process_name(pid);
    }
  }
  return "another program";
}

}  // namespace doorbell
