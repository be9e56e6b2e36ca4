// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "nvme/model/media.hpp"

#include <doorbell/error.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "nvme/foreign_data.hpp"
#include "system/open_file.hpp"
#include "system/sysfs.hpp"

namespace doorbell::nvme {

namespace {

constexpr u64 kPage = 4096;
// No smaller than what the kernel makes writable at a time, which is up to a large folio.
constexpr u64 kSmallestPart = u64{2} << 20;
constexpr u64 kPartsAtMost = u64{1} << 20;

std::string subject(const std::string& path) {
  return fmt::format("media file {}", path);
}

/// Opens the file; returns nothing if it does not exist yet.
Descriptor open_existing(const std::string& path, bool must_write, bool* read_only) {
  Opened file = open_file(path, O_RDWR, FileKinds::regular);
  if (!file && !must_write && (file.error == EROFS || file.error == EACCES || file.error == EPERM)) {
    file = open_file(path, O_RDONLY, FileKinds::regular);
    *read_only = true;
  }
  if (file) return std::move(file.fd);
  if (file.error != ENOENT)
    throw Error(
        subject(path), file.why,
        file.error == EINVAL ? "name a file; a block device is driven as hardware, not through a model" : "");
  const auto folder = std::filesystem::path(path).parent_path();
  if (access(folder.empty() ? "." : folder.c_str(), W_OK | X_OK) != 0)
    throw Error(subject(path), fmt::format("it does not exist, and its folder: {}", reason(errno)));
  return {};
}

u64 size_of(int fd) {
  struct stat st {};
  return fd >= 0 && fstat(fd, &st) == 0 ? static_cast<u64>(st.st_size) : 0;
}

/// The capacity that was asked for. Without one, an existing file's size.
u64 capacity_of(const ModelConfig& config, u64 file_bytes) {
  const u64 bytes = !config.capacity_given && file_bytes > 0 ? file_bytes : config.capacity_bytes;
  return bytes / config.lba_bytes * config.lba_bytes;
}

}  // namespace

Media::Media(const ModelConfig& config) {
  if (config.media == ModelConfig::Media::file) {
    path_ = config.path;
    fd_ = open_existing(path_, config.must_write, &read_only_);
    file_ = true;
    writes_ = config.writes && !read_only_;
    if (fd_.get() >= 0) lock_ = FileLock(fd_.get(), writes_, subject(path_));
  }
  const u64 held = size_of(fd_.get());
  capacity_ = capacity_of(config, held);
  if (capacity_ == 0)
    throw Error(subject(path_),
                fmt::format("its {} bytes are less than a block of {}", held, config.lba_bytes));
  if (held > 0 && held < capacity_ && !read_only_ && foreign())
    throw Error(subject(path_),
                fmt::format("it has {} bytes that doorbell did not write, less than the capacity", held),
                "name another file, or leave the capacity out");
  if (config.media == ModelConfig::Media::null) return;
  // The part of the address range that the file does not cover yet reads as zeros, and stores there fail.
  void* const p = mmap(nullptr, capacity_, file_ ? PROT_READ : PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) throw Error(fmt::format("media of {} bytes", capacity_), reason(errno));
  base_ = static_cast<u8*>(p);
  if (!file_) return;
  guard_.emplace(base_, capacity_);
  part_bytes_ = std::max(kSmallestPart, (capacity_ / kPartsAtMost + kPage) / kPage * kPage);
  reserved_ = std::vector<std::atomic<u64>>(capacity_ / part_bytes_ / 64 + 1);
  map_file(std::min(held, capacity_));
  note_space();
}

/// The parts of the file that have their space already.
void Media::note_space() {
  off_t hole = 0;
  for (;;) {
    const off_t data = lseek(fd_.get(), hole, SEEK_DATA);
    if (data < 0) return;
    hole = lseek(fd_.get(), data, SEEK_HOLE);
    if (hole <= data) return;
    const u64 end = std::min(static_cast<u64>(hole), mapped_);
    for (u64 part = (static_cast<u64>(data) + part_bytes_ - 1) / part_bytes_;
         std::min((part + 1) * part_bytes_, capacity_) <= end && part * part_bytes_ < end; ++part)
      set_reserved(part);
  }
}

Media::~Media() {
  guard_.reset();
  if (base_ != nullptr) munmap(base_, capacity_);
}

bool Media::foreign() const {
  return read_only_ || (fd_.get() >= 0 && holds_foreign_data(fd_.get()));
}

/// Of a larger file, the bytes behind the capacity stay as they are, because they do not belong to this
/// model.
void Media::map_file(u64 bytes) {
  if (bytes == 0) return;
  const int access = read_only_ ? PROT_READ : PROT_READ | PROT_WRITE;
  if (mmap(base_, bytes, access, MAP_SHARED | MAP_FIXED, fd_.get(), 0) == MAP_FAILED)
    throw Error(subject(path_), fmt::format("mapping its {} bytes: {}", bytes, reason(errno)));
  mapped_ = bytes;
}

bool Media::reserve_slowly(u64 offset, u64 bytes) {
  const std::scoped_lock lock(mutex_);
  if (locked_out_ || (mapped_ < capacity_ && !grow())) return false;
  // Whole parts: a store makes all of its page or folio writable, and the kernel needs space for that.
  // Without it the store would end the process, so a disk is full when it has no part left.
  const u64 first = offset / part_bytes_, last = (offset + bytes - 1) / part_bytes_;
  const u64 begin = first * part_bytes_, end = std::min((last + 1) * part_bytes_, capacity_);
  if (!make_space(begin, end - begin)) return false;
  for (u64 part = first; part <= last; ++part) set_reserved(part);
  return true;
}

bool Media::read(u64 offset, void* to, u64 bytes) const {
  if (lost()) return false;
  int fd = -1;
  {
    const std::scoped_lock lock(mutex_);
    fd = fd_.get();  // it stays open from then on
  }
  auto* const at = static_cast<u8*>(to);
  u64 done = 0;
  while (fd >= 0 && done < bytes) {
    const ssize_t n = pread(fd, at + done, bytes - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    if (n == 0) break;
    done += static_cast<u64>(n);
  }
  std::memset(at + done, 0, bytes - done);  // behind the file's end
  return true;
}

bool Media::grow() {
  if (fd_.get() < 0) {
    Opened file = open_file(path_, O_RDWR | O_CREAT, FileKinds::regular);
    if (!file) {
      refusal_ = file.why;
      return false;
    }
    try {
      FileLock lock(file.fd.get(), writes_, subject(path_));
      fd_ = std::move(file.fd);
      lock_ = std::move(lock);
    } catch (const Error& e) {
      refusal_ = e.what();
      locked_out_ = true;
      return false;
    }
  }
  if (size_of(fd_.get()) < capacity_ && ftruncate(fd_.get(), static_cast<off_t>(capacity_)) != 0) {
    refusal_ = fmt::format("cannot grow to {} bytes: {}", capacity_, reason(errno));
    return false;
  }
  try {
    // The file replaces the zeros, which a device thread may be reading: that thread reads zeros from the
    // file too.
    map_file(capacity_);
  } catch (const Error& e) {
    refusal_ = e.what();
    return false;
  }
  return true;
}

bool Media::make_space(u64 offset, u64 bytes) {
  int error = 0;
  do {
    // Keeps existing data. If the file system lacks this call, the C library writes a zero into each block
    // that has no space yet.
    error = posix_fallocate(fd_.get(), static_cast<off_t>(offset), static_cast<off_t>(bytes));
  } while (error == EINTR);
  if (error != 0) refusal_ = reason(error);
  return error == 0;
}

std::string Media::refusal() const {
  if (lost()) return "the file lost data while it was in use: was it truncated?";
  const std::scoped_lock lock(mutex_);
  return refusal_;
}

bool Media::flush() {
  if (lost()) return false;
  u64 bytes = 0;
  {
    const std::scoped_lock lock(mutex_);
    bytes = mapped_;
  }
  return bytes == 0 || msync(base_, bytes, MS_SYNC) == 0;
}

bool Media::flush(u64 offset, u64 bytes) {
  if (!file_) return true;
  if (lost()) return false;
  const u64 begin = offset / kPage * kPage;
  return msync(base_ + begin, offset + bytes - begin, MS_SYNC) == 0;
}

bool Media::deallocate(u64 offset, u64 bytes) {
  if (base_ == nullptr) return true;
  if (!file_) {
    // Whole pages go back to the system, which gives zeros for them. Small ranges are not worth the call.
    const u64 first = (offset + kPage - 1) / kPage * kPage, end = (offset + bytes) / kPage * kPage;
    if (bytes < kSmallestPart || madvise(base_ + first, end - first, MADV_DONTNEED) != 0) {
      std::memset(base_ + offset, 0, bytes);
    } else {
      std::memset(base_ + offset, 0, first - offset);
      std::memset(base_ + end, 0, offset + bytes - end);
    }
    return true;
  }
  if (read_only_ || !writes_ || lost()) return false;
  if (!exists()) return true;
  for (u64 at = offset, end = offset + bytes; at < end;) {
    const u64 part = at / part_bytes_, part_end = std::min((part + 1) * part_bytes_, capacity_);
    const u64 here = std::min(end, part_end) - at;
    const bool whole = at == part * part_bytes_ && here == part_end - at;
    // A store to a page without space can end the process: what had its space keeps it, or the part is
    // reserved anew before its next store.
    if ((whole || !has_space(at, here)) && punch(at, here)) set_unreserved(part);
    else if (reserve(at, here)) std::memset(base_ + at, 0, here);
    else return false;
    at += here;
  }
  return !lost();
}

bool Media::exists() const {
  const std::scoped_lock lock(mutex_);
  return fd_.get() >= 0;
}

bool Media::punch(u64 offset, u64 bytes) {
  const std::scoped_lock lock(mutex_);
  return fallocate(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                   static_cast<off_t>(bytes)) == 0;
}

}  // namespace doorbell::nvme
