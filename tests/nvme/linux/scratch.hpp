// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Files for tests of the kernel path, on a disk: tmpfs has no direct I/O on many kernels.
#pragma once

#include <fcntl.h>
#include <liburing.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

namespace doorbell::test {

/// A folder in the working directory (a build folder) that goes away with its contents.
class Scratch {
 public:
  Scratch() {
    std::string pattern = (std::filesystem::current_path() / "doorbell-test-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp " + pattern);
    folder_ = pattern;
  }
  ~Scratch() { std::filesystem::remove_all(folder_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  [[nodiscard]] std::string path(const std::string& name) const { return folder_ + "/" + name; }
  /// A file of `bytes` zeros, none of them on the disk.
  [[nodiscard]] std::string file(const std::string& name, std::size_t bytes) const {
    std::ofstream(path(name)).close();
    std::filesystem::resize_file(path(name), bytes);
    return path(name);
  }
  /// Whether files here can be opened for direct I/O.
  [[nodiscard]] bool direct() const {
    const int fd = open(file("probe", 4096).c_str(), O_RDWR | O_DIRECT | O_CLOEXEC);
    if (fd >= 0) close(fd);
    std::filesystem::remove(path("probe"));
    return fd >= 0;
  }

 private:
  std::string folder_;
};

/// False where the kernel or a container forbids io_uring.
inline bool has_uring() {
  io_uring ring{};
  if (io_uring_queue_init(2, &ring, 0) != 0) return false;
  io_uring_queue_exit(&ring);
  return true;
}

}  // namespace doorbell::test
