// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The memory that a client lets the device reach: files that he has sent, mapped here, and ranges that only
// messages reach.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "memory/software_address_space.hpp"
#include "vfio_user/wire.hpp"

namespace doorbell::vfio_user {

/// Which addresses are the device's own registers: a client that maps its whole bus maps them, too.
struct OwnRegisters {
  u64 begin = 0, bytes = 0;
  [[nodiscard]] bool overlap(u64 at, u64 n) const {
    return bytes != 0 && at < begin + bytes && begin < at + n;
  }
};

/// Of one client at a time. A file is mapped once, whatever parts of it are mapped for the device: a guest
/// with an IOMMU maps one page a time. One thread at a time.
class DmaMaps {
 public:
  /// Ranges at a time, and files.
  static constexpr u64 kMostMaps = 32768, kMostFiles = 512;

  DmaMaps(SoftwareAddressSpace& space, RemoteMemory& remote) : space_(space), remote_(remote) {}
  ~DmaMaps() { forget_all(); }
  DmaMaps(const DmaMaps&) = delete;
  DmaMaps& operator=(const DmaMaps&) = delete;

  /// 0, or an errno: EINVAL for what is no range or no usable file, EEXIST for one that overlaps another and
  /// is not the same, E2BIG beyond kMostMaps, EACCES, ENOMEM. `file` -1: none came with it.
  [[nodiscard]] int map(const DmaMap& what, int file, const OwnRegisters& own);
  /// Takes ranges away: that one, or all that lie in it. 0, ENOENT for none or for a part of one, EINVAL. The
  /// device accesses nothing meanwhile if is_here() says so.
  [[nodiscard]] int unmap(const DmaUnmap& what);
  /// Whether memory of this process is among what unmap() would take away.
  [[nodiscard]] bool is_here(const DmaUnmap& what) const;
  /// The same for all ranges. The device accesses nothing.
  void forget_all();

  [[nodiscard]] u64 ranges() const { return maps_.size(); }
  [[nodiscard]] u64 files() const { return files_.size(); }
  [[nodiscard]] u64 remote_ranges() const { return remote_ranges_; }
  /// Files that have been cut short while they were mapped, so far.
  [[nodiscard]] u64 files_lost() const;

 private:
  /// Which file, and how it is mapped.
  struct FileKey {
    u64 device = 0, inode = 0;
    bool writable = false;
    auto operator<=>(const FileKey&) const = default;
  };
  struct File;
  struct Map {
    u64 end = 0;
    u64 offset = 0;
    u32 flags = 0;
    FileKey key;
    std::shared_ptr<File> file;  ///< null: by messages, or nothing at all
    bool own = false;            ///< of the device's registers: never reached
  };
  using Maps = std::map<u64, Map>;
  /// 0, and the ranges; or an errno.
  [[nodiscard]] int find(const DmaUnmap& what, Maps::const_iterator& first, Maps::const_iterator& last) const;
  [[nodiscard]] int open_file(int fd, const DmaMap& what, FileKey& key, std::shared_ptr<File>& file);

  SoftwareAddressSpace& space_;
  RemoteMemory& remote_;
  Maps maps_;  ///< by begin
  std::map<FileKey, std::weak_ptr<File>> files_;
  u64 remote_ranges_ = 0;
  std::shared_ptr<u64> lost_ = std::make_shared<u64>(0);  ///< of files that are closed
};

}  // namespace doorbell::vfio_user
