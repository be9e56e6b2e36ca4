// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "service/local_socket.hpp"

#include <doorbell/error.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <optional>
#include <thread>

#include "system/sysfs.hpp"

namespace doorbell::service {

namespace {

/// None for a path that is too long or empty.
std::optional<sockaddr_un> address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) return {};
  path.copy(address.sun_path, path.size());
  return address;
}

/// A socket that does not wait, connected; empty with an errno.
Descriptor try_to_connect(const sockaddr_un& address, int type, int& error) {
  Descriptor fd(::socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  error = 0;
  if (fd.get() >= 0 && ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
    return fd;
  error = errno;
  return {};
}

}  // namespace

sockaddr_un local_address(const std::string& path, const std::string& subject) {
  if (const auto address = address_of(path)) return *address;
  throw Error(subject, "a socket's path has 1 to 107 characters");
}

Descriptor connect_local(const sockaddr_un& address, const Patience& patience, int& error, int type) {
  Waiting waiting(patience, std::min(patience.limit_s, kConnectLimitS));
  for (;;) {
    Descriptor fd = try_to_connect(address, type, error);
    if (error == 0) {
      // Who sends and receives says itself whether it waits.
      fcntl(fd.get(), F_SETFL, fcntl(fd.get(), F_GETFL) & ~O_NONBLOCK);
      return fd;
    }
    if (error == EINTR) continue;
    if (error != EAGAIN) return {};
    if (const int over = waiting.over(); over != 0) {
      error = over;
      return {};
    }
    // Nothing reports when there is room in the queue again.
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

Descriptor lock_folder_of(const std::string& path, double limit_s) {
  std::string folder = std::filesystem::path(path).parent_path().string();
  if (folder.empty()) folder = ".";
  Descriptor fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  Waiting waiting({}, limit_s);
  while (fd.get() >= 0 && ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK &&
         waiting.over() == 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return fd;
}

SocketFile::SocketFile(std::string path) : path_(std::move(path)) {
  struct stat s {};
  if (::lstat(path_.c_str(), &s) == 0) device_ = s.st_dev, inode_ = s.st_ino;
}

void SocketFile::remove() noexcept {
  struct stat s {};
  if (!path_.empty() && ::lstat(path_.c_str(), &s) == 0 && s.st_dev == device_ && s.st_ino == inode_)
    ::unlink(path_.c_str());
  path_.clear();
}

bool is_abandoned(const std::string& path, int type) {
  struct stat s {};
  const auto address = address_of(path);
  if (!address || ::lstat(path.c_str(), &s) != 0 || !S_ISSOCK(s.st_mode)) return false;
  int error = 0;
  static_cast<void>(try_to_connect(*address, type, error));
  return error == ECONNREFUSED;
}

Descriptor listen_at(const std::string& path, const std::string& subject, const ListenOptions& options) {
  const auto fail = [&](const char* what) {
    throw Error(subject, fmt::format("{}: {}", what, reason(errno)));
  };
  const sockaddr_un address = local_address(path, subject);
  Descriptor fd(::socket(AF_UNIX, options.type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (fd.get() < 0) fail("no socket");
  // bind() gives the file the socket's own mode: nobody else's until its group and mode are set.
  if (options.mode && ::fchmod(fd.get(), 0600) != 0) fail("its mode cannot be set");
  const Descriptor lock = lock_folder_of(path);
  const auto bound = [&] {
    return ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  };
  if (!bound()) {
    if (errno != EADDRINUSE) fail("cannot be bound");
    struct stat existing {};
    if (::lstat(path.c_str(), &existing) != 0 || !S_ISSOCK(existing.st_mode))
      throw Error(subject, "is there and no socket", "name another path");
    if (!is_abandoned(path, options.type))
      throw Error(subject, "a process listens there already", "name another path, or end the other process");
    if (::unlink(path.c_str()) != 0 || !bound()) fail("cannot be bound");
  }
  const bool there = (!options.group || ::chown(path.c_str(), ~uid_t{0}, *options.group) == 0) &&
                     (!options.mode || ::chmod(path.c_str(), *options.mode) == 0) &&
                     ::listen(fd.get(), 128) == 0;
  if (there) return fd;
  const int error = errno;
  ::unlink(path.c_str());
  errno = error;
  fail("its group or mode cannot be set, or it cannot listen");
  return {};
}

}  // namespace doorbell::service
