// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Unix sockets by their path.
#pragma once

#include <doorbell/config.hpp>
#include <sys/socket.h>
#include <sys/un.h>

#include <optional>
#include <string>
#include <utility>

#include "service/patience.hpp"
#include "system/descriptor.hpp"

namespace doorbell::service {

/// How long a client tries to reach a server that takes no connection, or less where its patience is less.
inline constexpr double kConnectLimitS = 5;

/// The address of a path. Throws Error that begins with `subject` unless the path has 1 to 107 characters.
[[nodiscard]] sockaddr_un local_address(const std::string& path, const std::string& subject);

/// Connects to a listening socket of that type. Empty with an errno: ETIMEDOUT if as many clients as fit
/// waited there all the time, EINTR if a stop has ended the wait.
[[nodiscard]] Descriptor connect_local(const sockaddr_un& address, const Patience& patience, int& error,
                                       int type = SOCK_SEQPACKET);

/// The lock on a path's folder: whoever looks at a socket file and takes its place holds it until he listens
/// there. Without it two processes that start together both find an old file abandoned, and so is a file
/// whose process has not come as far as to listen. Empty where the folder cannot be opened; not locked where
/// a stranger keeps the lock for longer than `limit_s`.
[[nodiscard]] Descriptor lock_folder_of(const std::string& path, double limit_s = 5);

/// The file of a socket that this process listens at. It is removed at the end, unless another one has its
/// place by then.
class SocketFile {
 public:
  SocketFile() = default;
  /// Of a path that has just been bound.
  explicit SocketFile(std::string path);
  ~SocketFile() { remove(); }
  SocketFile(SocketFile&& other) noexcept { swap(other); }
  SocketFile& operator=(SocketFile&& other) noexcept {
    swap(other);
    return *this;
  }
  [[nodiscard]] const std::string& path() const { return path_; }  ///< empty: none
  void remove() noexcept;

 private:
  void swap(SocketFile& other) noexcept {
    std::swap(path_, other.path_);
    std::swap(device_, other.device_);
    std::swap(inode_, other.inode_);
  }
  std::string path_;
  u64 device_ = 0, inode_ = 0;
};

/// Whether the path is a socket file at which no process listens. `type`: SOCK_SEQPACKET or SOCK_STREAM.
[[nodiscard]] bool is_abandoned(const std::string& path, int type);

struct ListenOptions {
  std::optional<unsigned> mode = {};  ///< of the socket file; none: what the umask leaves
  std::optional<gid_t> group = {};    ///< of the socket file; none: this process's
  int type = SOCK_SEQPACKET;          ///< or SOCK_STREAM
};

/// A listening socket at `path`. A socket file at which no process listens is replaced. Throws Error that
/// begins with `subject`.
[[nodiscard]] Descriptor listen_at(const std::string& path, const std::string& subject,
                                   const ListenOptions& options = {});

}  // namespace doorbell::service
