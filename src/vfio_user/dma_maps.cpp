// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "vfio_user/dma_maps.hpp"

#include <doorbell/error.hpp>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "system/mapping_guard.hpp"

namespace doorbell::vfio_user {

namespace {

constexpr u64 kPage = 4096;
/// Of a file system that a process provides: a load may wait for that process for ever.
constexpr auto kFuse = static_cast<decltype(statfs::f_type)>(0x65735546);

}  // namespace

struct DmaMaps::File {
  u8* base = nullptr;
  u64 bytes = 0;
  std::optional<MappingGuard> guard;
  std::shared_ptr<u64> lost_files;

  File(int fd, u64 n, bool writable, std::shared_ptr<u64> lost) : bytes(n), lost_files(std::move(lost)) {
    void* const at =
        mmap(nullptr, n, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (at == MAP_FAILED) return;
    (void)madvise(at, n, MADV_DONTDUMP);
    base = static_cast<u8*>(at);
    guard.emplace(base, n);
  }
  ~File() {
    if (guard && guard->lost()) ++*lost_files;
    guard.reset();
    if (base != nullptr) munmap(base, bytes);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
};

int DmaMaps::open_file(int fd, const DmaMap& what, FileKey& key, std::shared_ptr<File>& file) {
  struct stat s {};
  struct statfs f {};
  if (fstat(fd, &s) != 0 || fstatfs(fd, &f) != 0) return errno;
  if (!S_ISREG(s.st_mode) || f.f_type == kFuse) return EINVAL;
  if (s.st_size <= 0 || !within(what.offset, what.size, static_cast<u64>(s.st_size))) return EINVAL;
  key = {s.st_dev, s.st_ino, (what.flags & DmaMap::kWriteable) != 0};
  const int mode = fcntl(fd, F_GETFL) & O_ACCMODE;
  if (mode == O_WRONLY || (key.writable && mode != O_RDWR)) return EACCES;
  if (const auto known = files_.find(key); known != files_.end()) {
    file = known->second.lock();
    // One that has grown meanwhile is mapped anew; ranges of the old mapping keep it.
    if (file && within(what.offset, what.size, file->bytes)) return 0;
    file.reset();
    files_.erase(known);
  }
  std::erase_if(files_, [](const auto& known) { return known.second.expired(); });
  if (files_.size() >= kMostFiles) return ENOSPC;
  try {
    file = std::make_shared<File>(fd, static_cast<u64>(s.st_size), key.writable, lost_);
  } catch (const Error&) {
    return ENOSPC;  // of guards
  }
  if (file->base == nullptr) return errno;
  files_[key] = file;
  return 0;
}

int DmaMaps::map(const DmaMap& what, int file, const OwnRegisters& own) {
  constexpr u32 kAccess = DmaMap::kReadable | DmaMap::kWriteable;
  if ((what.flags & kAccess) == 0 || (what.flags & ~(kAccess | DmaMap::kByMmap | DmaMap::kByFile)) != 0)
    return EINVAL;
  if (what.size == 0 || what.address % kPage != 0 || what.size % kPage != 0 || what.offset % kPage != 0 ||
      what.size > ~u64{0} - what.address || what.size > ~u64{0} - what.offset)
    return EINVAL;
  Map m{.end = what.address + what.size,
        .offset = what.offset,
        .flags = what.flags,
        .key = {},
        .file = {},
        .own = file < 0 && own.overlap(what.address, what.size)};
  auto next = maps_.lower_bound(what.address);
  const bool at_begin = next != maps_.end() && next->first < m.end;
  const bool before = next != maps_.begin() && std::prev(next)->second.end > what.address;
  if (file >= 0)
    if (const int error = open_file(file, what, m.key, m.file); error != 0) return error;
  if (at_begin || before) {
    if (before || next->first != what.address) return EEXIST;
    const Map& there = next->second;
    const bool same = there.end == m.end && there.offset == m.offset && there.flags == m.flags &&
                      there.key == m.key && (there.file == nullptr) == (m.file == nullptr);
    return same ? 0 : EEXIST;
  }
  if (maps_.size() >= kMostMaps) return E2BIG;
  const bool r = (what.flags & DmaMap::kReadable) != 0, w = (what.flags & DmaMap::kWriteable) != 0;
  if (!m.own)
    space_.map_at({.begin = what.address,
                   .end = m.end,
                   .base = m.file ? m.file->base + what.offset : nullptr,
                   .device = nullptr,
                   .access = r && w ? Access::read_write
                             : r    ? Access::read
                                    : Access::write,
                   .gpu = false,
                   .remote = m.file ? nullptr : &remote_});
  if (!m.file && !m.own) ++remote_ranges_;
  maps_.emplace(what.address, std::move(m));
  return 0;
}

int DmaMaps::find(const DmaUnmap& what, Maps::const_iterator& first, Maps::const_iterator& last) const {
  first = maps_.begin();
  last = maps_.end();
  if ((what.flags & ~DmaUnmap::kAll) != 0) return EINVAL;
  if ((what.flags & DmaUnmap::kAll) != 0) return what.address == 0 && what.size == 0 ? 0 : EINVAL;
  if (what.size == 0 || what.size > ~u64{0} - what.address) return EINVAL;
  const u64 end = what.address + what.size;
  first = maps_.lower_bound(what.address);
  last = maps_.lower_bound(end);
  const bool begins = first == maps_.begin() || std::prev(first)->second.end <= what.address;
  return begins && first != last && std::prev(last)->second.end <= end ? 0 : ENOENT;
}

bool DmaMaps::is_here(const DmaUnmap& what) const {
  Maps::const_iterator first, last;
  return find(what, first, last) == 0 &&
         std::any_of(first, last, [](const auto& m) { return m.second.file != nullptr; });
}

int DmaMaps::unmap(const DmaUnmap& what) {
  Maps::const_iterator first, last;
  if (const int error = find(what, first, last); error != 0) return error;
  std::vector<Iova> begins;
  for (auto m = first; m != last; ++m) {
    begins.push_back(m->first);
    if (!m->second.file && !m->second.own) --remote_ranges_;
  }
  space_.unmap_all(begins);
  maps_.erase(first, last);
  return 0;
}

void DmaMaps::forget_all() {
  (void)unmap({.flags = DmaUnmap::kAll});
  files_.clear();
}

u64 DmaMaps::files_lost() const {
  u64 n = *lost_;
  for (const auto& [key, known] : files_)
    if (const auto file = known.lock(); file && file->guard && file->guard->lost()) ++n;
  return n;
}

}  // namespace doorbell::vfio_user
