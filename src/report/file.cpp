// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "report/file.hpp"

#include <doorbell/error.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <thread>
#include <utility>

#include "system/descriptor.hpp"
#include "system/sysfs.hpp"

namespace doorbell::report {

namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kReaderLimit{
    10'000};  ///< for the reader of a pipe to come, or to read on

[[noreturn]] void fail(const std::string& path, const std::string& what, int error, std::string hint = {}) {
  throw Error("writing " + path, what + ": " + reason(error), std::move(hint));
}

// 0 or an errno.
int write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return 0;
}

/// A FIFO can be opened for writing only while it has a reader. The wait for one ends after kReaderLimit.
Descriptor open_stream(const std::string& path) {
  const auto deadline = std::chrono::steady_clock::now() + kReaderLimit;
  for (;;) {
    Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK));
    if (file.get() >= 0) return file;
    if (errno != ENXIO) fail(path, "open", errno);
    if (std::chrono::steady_clock::now() > deadline)
      throw Error("writing " + path, "no process reads this pipe", "start its reader first, or name a file");
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

/// Writes to a pipe, a terminal or /dev/null, which must not be replaced. The reader may stop reading.
void write_stream(const std::string& path, std::string_view contents) {
  Descriptor file = open_stream(path);
  while (!contents.empty()) {
    const ssize_t n = ::write(file.get(), contents.data(), contents.size());
    if (n >= 0) {
      contents.remove_prefix(static_cast<std::size_t>(n));
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) fail(path, "write", errno);
    pollfd ready = {file.get(), POLLOUT, 0};
    if (::poll(&ready, 1, static_cast<int>(kReaderLimit.count())) == 0)
      throw Error("writing " + path,
                  fmt::format("its reader took nothing for {} s", kReaderLimit.count() / 1000));
  }
  if (const int error = file.close()) fail(path, "close", error);
}

/// Writes into the file itself, where a new file could not have its owner.
void overwrite(const std::string& path, std::string_view contents) {
  Descriptor file(::open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC));
  if (file.get() < 0) fail(path, "open", errno);
  if (const int error = write_all(file.get(), contents)) fail(path, "write", error);
  if (const int error = file.close()) fail(path, "close", error);
}

/// Gives a new file the owner and the mode of the one that it replaces. False when that is not allowed.
bool take_over(int fd, const struct stat& old) {
  struct stat fresh {};
  if (::fstat(fd, &fresh) != 0) return false;
  if ((fresh.st_uid != old.st_uid || fresh.st_gid != old.st_gid) && ::fchown(fd, old.st_uid, old.st_gid) != 0)
    return false;
  return ::fchmod(fd, old.st_mode & 07777) == 0;
}

/// `old`: what is there already, or null.
void replace(const std::string& path, const fs::path& target, std::string_view contents,
             const struct stat* old) {
  static std::atomic<unsigned> sequence{0};
  const fs::path directory = target.has_parent_path() ? target.parent_path() : fs::path(".");
  const std::string temporary = (directory / fmt::format(".{}.{}.{}.tmp", target.filename().string(),
                                                         ::getpid(), sequence.fetch_add(1)))
                                    .string();
  Descriptor file(
      ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, old != nullptr ? 0600 : 0666));
  if (file.get() < 0) {
    const int error = errno;
    fail(path, "create a file in " + directory.string(), error,
         error == ENOENT ? "create the directory first" : "");
  }
  if (old != nullptr && !take_over(file.get(), *old)) {
    static_cast<void>(::unlink(temporary.c_str()));
    return overwrite(path, contents);
  }
  const char* step = "write";
  int error = write_all(file.get(), contents);
  if (error == 0) {
    // The data must be on the disk before the name points at it, or a crash leaves an empty file.
    step = "fsync";
    if (::fsync(file.get()) != 0) error = errno;
  }
  if (error == 0) {
    step = "close";
    error = file.close();
  }
  if (error == 0) {
    step = "rename";
    if (::rename(temporary.c_str(), target.c_str()) != 0) error = errno;
  }
  if (error != 0) {
    static_cast<void>(::unlink(temporary.c_str()));
    fail(path, step, error);
  }
  // The new name survives a crash once the directory is on the disk. Some file systems cannot sync one.
  const Descriptor parent(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (parent.get() >= 0) static_cast<void>(::fsync(parent.get()));
}

}  // namespace

void write_file(const std::string& path, std::string_view contents) {
  if (path.empty()) throw Error("writing a file", "its name is empty");
  if (path == "-") {
    // Earlier text still lies in the stream's buffer and comes first.
    static_cast<void>(std::fflush(stdout));
    if (const int error = write_all(STDOUT_FILENO, contents)) fail("standard output", "write", error);
    return;
  }
  struct stat status {};
  const bool exists = ::stat(path.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode)) fail(path, "open", EISDIR, "give the name of a file");
  if (exists && S_ISBLK(status.st_mode))
    fail(path, "open", EINVAL, "it is a block device: give the name of a file");
  if (exists && !S_ISREG(status.st_mode)) return write_stream(path, contents);
  std::error_code ignored;
  const fs::path resolved = exists ? fs::canonical(path, ignored) : fs::path(path);
  replace(path, resolved.empty() ? fs::path(path) : resolved, contents, exists ? &status : nullptr);
}

}  // namespace doorbell::report
