// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "nvme/kernel/file.hpp"

#include <doorbell/error.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <bit>
#include <cerrno>
#include <cstring>

#include "nvme/foreign_data.hpp"

namespace doorbell::nvme {

namespace {

std::string subject(const std::string& path) {
  return fmt::format("--controller file:{}", path);
}

pci::Descriptor open_or_throw(const std::string& path, const FileOptions& o, bool write, bool block) {
  const int flags = (write ? O_RDWR : O_RDONLY) | O_CLOEXEC | (o.direct ? O_DIRECT : 0) |
                    (block && write ? O_EXCL : 0) | (o.create_bytes > 0 && !block ? O_CREAT : 0);
  const int fd = open(path.c_str(), flags, 0644);
  if (fd >= 0) return pci::Descriptor(fd);
  const int why = errno;
  std::string hint;
  if (why == ENOENT) hint = "give --file-size SIZE to make it";
  if (why == EINVAL && o.direct) hint = "its file system has no direct I/O (O_DIRECT): use --direct off";
  if (why == EBUSY) hint = "it is mounted or in use: it cannot be written";
  if (why == EACCES || why == EPERM)
    hint = write ? "run as a user who may write it, or read only: --write-io 0"
                 : "run as a user who may read it";
  throw Error(subject(path), std::strerror(why), hint);
}

}  // namespace

DataFile::DataFile(const std::string& path, const FileOptions& o, bool write) {
  struct stat st {};
  const bool there = stat(path.c_str(), &st) == 0;
  const bool block = there && S_ISBLK(st.st_mode);
  if (there && !block && !S_ISREG(st.st_mode))
    throw Error(subject(path), "it is neither a file nor a block device");
  fd_ = open_or_throw(path, o, write, block);
  if (block) {
    what_ = "block device";
    int logical = 0;
    if (ioctl(fd_.get(), BLKGETSIZE64, &bytes_) != 0 || ioctl(fd_.get(), BLKSSZGET, &logical) != 0)
      throw Error(subject(path), std::strerror(errno));
    block_bytes_ = static_cast<u32>(logical);
  } else {
    if (!there && ftruncate(fd_.get(), static_cast<off_t>(o.create_bytes)) != 0)
      throw Error(subject(path),
                  fmt::format("cannot grow it to {} bytes: {}", o.create_bytes, std::strerror(errno)));
    if (fstat(fd_.get(), &st) != 0) throw Error(subject(path), std::strerror(errno));
    bytes_ = static_cast<u64>(st.st_size);
#ifdef STATX_DIOALIGN
    struct statx sx {};
    if (statx(fd_.get(), "", AT_EMPTY_PATH, STATX_DIOALIGN, &sx) == 0 &&
        (sx.stx_mask & STATX_DIOALIGN) != 0 && sx.stx_dio_offset_align > block_bytes_ && o.direct)
      block_bytes_ = sx.stx_dio_offset_align;
#endif
  }
  if (bytes_ == 0)
    throw Error(subject(path), "it is empty", "give --file-size SIZE and another name, to make one");
  scratch_ = !holds_foreign_data(fd_.get(), bytes_);
}

}  // namespace doorbell::nvme
