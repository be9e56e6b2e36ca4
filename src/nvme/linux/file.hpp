// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A file or block device as a namespace: size, block size, and whether it may be written.
#pragma once

#include <string>

#include "nvme/bench.hpp"
#include "system/descriptor.hpp"
#include "system/file_lock.hpp"

namespace doorbell::nvme {

class DataFile {
 public:
  /// Opens it, for writing only when `write` says so: a block device then exclusively, which the kernel
  /// refuses while it is mounted or otherwise in use. A file that it had to make goes away with it, unless
  /// keep() is called: a run that is refused leaves nothing behind.
  DataFile(const std::string& path, const FileOptions& options, bool write);
  ~DataFile();
  DataFile(const DataFile&) = delete;
  DataFile& operator=(const DataFile&) = delete;
  void keep() { made_.clear(); }

  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] u64 bytes() const { return bytes_; }
  /// The block size, of which direct I/O has to be a multiple.
  [[nodiscard]] u32 block_bytes() const { return block_bytes_; }
  /// True for a file that holds nothing, or what doorbell wrote; all of it is looked at. Never for a device:
  /// what is on it may be anywhere.
  [[nodiscard]] bool scratch() const;
  [[nodiscard]] bool regular() const { return regular_; }
  /// "file" or "block device".
  [[nodiscard]] const char* what() const { return what_; }

 private:
  DataFile() = default;  // completed first, so that the destructor also runs for a constructor that throws

  Descriptor fd_;
  FileLock lock_;     ///< of a regular file: a run that writes has it alone
  std::string made_;  ///< path of a file that was not there before
  u64 bytes_ = 0;
  u32 block_bytes_ = 512;
  bool regular_ = true;
  const char* what_ = "file";
};

}  // namespace doorbell::nvme
