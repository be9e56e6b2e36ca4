// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "nvme/linux/file.hpp"

#include <doorbell/error.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <filesystem>

#include "nvme/foreign_data.hpp"
#include "nvme/settings.hpp"
#include "system/sysfs.hpp"

namespace doorbell::nvme {

namespace {

std::string subject(const std::string& path) {
  return setting::file + path;
}

Descriptor open_or_throw(const std::string& path, const FileOptions& o, bool write, bool block) {
  const int flags =
      (write ? O_RDWR : O_RDONLY) | O_CLOEXEC | (o.direct ? O_DIRECT : 0) | (block && write ? O_EXCL : 0);
  int fd = open(path.c_str(), flags);
  // A ring that is being taken down may hold the device a moment longer than its owner.
  for (int tries = 0; fd < 0 && errno == EBUSY && tries < 50; ++tries) {
    usleep(10'000);
    fd = open(path.c_str(), flags);
  }
  if (fd >= 0) return Descriptor(fd);
  const int why = errno;
  std::string hint;
  if (why == ENOENT && o.create_bytes == 0)
    hint = fmt::format("give {} SIZE to make it", setting::create_bytes);
  if (why == EINVAL && o.direct)
    hint = fmt::format("its file system has no direct I/O (O_DIRECT): use {} off", setting::direct);
  if (why == EBUSY) hint = "it is mounted or in use: it cannot be written";
  if (why == EACCES || why == EPERM)
    hint =
        write ? fmt::format("run as a user who may write it, or read only: give {} N alone", setting::read_io)
              : "run as a user who may read it";
  throw Error(subject(path), reason(why), hint);
}

void make_file(const std::string& path, const FileOptions& o) {
  const u64 bytes = o.create_bytes;
  const Descriptor fd(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (fd.get() < 0) throw Error(subject(path), fmt::format("cannot make it: {}", reason(errno)));
  if (ftruncate(fd.get(), static_cast<off_t>(bytes)) == 0) return;
  const int why = errno;
  unlink(path.c_str());
  throw Error(subject(path), fmt::format("cannot make it {} bytes large: {}", bytes, reason(why)));
}

/// False when the device is known to have no poll queues. A trial would not tell: the read of a hole never
/// comes to the device.
bool may_poll(dev_t device) {
  const auto folder =
      std::filesystem::path("/sys/dev/block") / fmt::format("{}:{}", major(device), minor(device));
  for (const char* queue : {"queue", "../queue"})  // the latter for a partition
    if (const auto poll = read_number(folder / queue / "io_poll")) return *poll != 0;
  return true;
}

}  // namespace

DataFile::DataFile(const std::string& path, const FileOptions& o, bool write) : DataFile() {
  struct stat st {};
  bool there = stat(path.c_str(), &st) == 0;
  if (!there && errno == ENOENT && o.create_bytes > 0) {
    make_file(path, o);
    made_ = path;
    there = stat(path.c_str(), &st) == 0;
  }
  const bool block = there && S_ISBLK(st.st_mode);
  if (there && !block && !S_ISREG(st.st_mode))
    throw Error(subject(path), "it is neither a file nor a block device");
  fd_ = open_or_throw(path, o, write, block);
  if (!block) lock_ = FileLock(fd_.get(), write, subject(path));
  regular_ = !block;
  if (block) {
    what_ = "block device";
    int logical = 0;
    if (ioctl(fd_.get(), BLKGETSIZE64, &bytes_) != 0 || ioctl(fd_.get(), BLKSSZGET, &logical) != 0)
      throw Error(subject(path), reason(errno));
    block_bytes_ = static_cast<u32>(logical);
  } else {
    if (fstat(fd_.get(), &st) != 0) throw Error(subject(path), reason(errno));
    bytes_ = static_cast<u64>(st.st_size);
#ifdef STATX_DIOALIGN
    struct statx sx {};
    if (statx(fd_.get(), "", AT_EMPTY_PATH, STATX_DIOALIGN, &sx) == 0 &&
        (sx.stx_mask & STATX_DIOALIGN) != 0 && sx.stx_dio_offset_align > block_bytes_ && o.direct)
      block_bytes_ = sx.stx_dio_offset_align;
#endif
  }
  if (o.iopoll && !may_poll(block ? st.st_rdev : st.st_dev))
    throw Error(setting::iopoll, fmt::format("the device of {} has no poll queues", path),
                fmt::format("leave {} out", setting::iopoll));
  if (bytes_ == 0)
    throw Error(subject(path), "it is empty",
                fmt::format("give {} SIZE and another name, to make one", setting::create_bytes));
  if (bytes_ < block_bytes_)
    throw Error(subject(path), fmt::format("its {} bytes are less than a block of {}", bytes_, block_bytes_));
}

bool DataFile::scratch() const {
  return regular_ && !holds_foreign_data(fd_.get());
}

DataFile::~DataFile() {
  if (!made_.empty()) unlink(made_.c_str());
}

}  // namespace doorbell::nvme
