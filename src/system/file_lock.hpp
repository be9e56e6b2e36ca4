// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Advisory locks on files that a run works on: two runs on one file would find each other's data.
#pragma once

#include <functional>
#include <string>

namespace doorbell {

/// Asks `taken` again and again for half a second: of a program that has just ended, the kernel may still be
/// closing files. False when it has said no for so long.
[[nodiscard]] bool taken_soon(const std::function<bool()>& taken);

/// A lock (flock) on an open file, for as long as this object lives; the descriptor must outlive it. Readers
/// share a file, a writer has it alone. A file system without locks locks nothing.
class FileLock {
 public:
  FileLock() = default;
  /// Throws Error, of `subject`, when another program holds the file: with its process and name.
  FileLock(int fd, bool write, const std::string& subject);
  ~FileLock() { release(); }
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&& other) noexcept;

 private:
  void release() noexcept;
  int fd_ = -1;
};

/// "process 123 (doorbell)".
[[nodiscard]] std::string process_name(int pid);
/// Who holds a lock on the file: "process 123 (doorbell)", or "another program".
[[nodiscard]] std::string lock_holder(int fd);

}  // namespace doorbell
