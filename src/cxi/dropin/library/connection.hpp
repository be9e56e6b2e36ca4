// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The library's way to its Cassini: in this process, or in that of `doorbell run cxi`.
#pragma once

#include <doorbell/error.hpp>
#include <sys/types.h>

#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "cxi/dropin/client.hpp"
#include "cxi/dropin/library/sharing.hpp"

namespace doorbell::cxi::dropin {

/// Writes a line to standard error, once for each text.
void complain(const std::string& text);

/// Pages that the library makes for queues and registers. Move only.
class OwnPages {
 public:
  OwnPages() = default;
  ~OwnPages();
  OwnPages(OwnPages&& other) noexcept { swap(other); }
  OwnPages& operator=(OwnPages&& other) noexcept {
    swap(other);
    return *this;
  }
  /// Zeroed. 0 or a negative errno.
  [[nodiscard]] int make(u64 bytes, bool shared);
  [[nodiscard]] u8* data() const { return data_; }
  [[nodiscard]] u64 bytes() const { return bytes_; }
  [[nodiscard]] int file() const { return file_.get(); }

 private:
  void swap(OwnPages& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(file_, other.file_);
  }
  u8* data_ = nullptr;
  u64 bytes_ = 0;
  Descriptor file_;
};

class Connection;

/// A request that is being put together.
class Ask {
 public:
  Ask(Connection& connection, Call call, std::initializer_list<u64> arguments);
  /// Memory of the library itself.
  void memory(u32 which, const OwnPages& pages);
  /// Memory of the program, of whole pages. 0 or a negative errno; `call` is for the message.
  [[nodiscard]] int memory(u32 which, u64 address, u64 bytes, const char* call);
  void file(int fd) { files_.push_back(fd); }
  [[nodiscard]] Reply send();

 private:
  Connection& connection_;
  Request request_;
  std::vector<int> files_;
};

class Connection {
 public:
  /// The one of this process; a child after fork() gets its own. 0 or a negative errno.
  [[nodiscard]] static int of_this_process(std::shared_ptr<Connection>& out);
  ~Connection() = default;

  [[nodiscard]] bool remote() const { return socket_.get() >= 0; }
  [[nodiscard]] u32 nid() const { return nid_; }
  [[nodiscard]] u32 pid_bits() const { return pid_bits_; }
  [[nodiscard]] Reply ask(const Request& request, std::span<const int> files);
  [[nodiscard]] int share(u64 address, u64 bytes, std::vector<SharedPart>& parts, std::string& why);

 private:
  Connection() = default;
  [[nodiscard]] int open();
  [[nodiscard]] int exchange(const Request& request, std::span<const int> files, Reply& reply);

  const pid_t process_ = ::getpid();
  std::mutex mutex_;
  Descriptor socket_;
  Sharing sharing_;
  // In this process.
  std::unique_ptr<Nic> nic_;
  std::unique_ptr<Client> client_;
  u32 nid_ = 0, pid_bits_ = 9;
};

}  // namespace doorbell::cxi::dropin
