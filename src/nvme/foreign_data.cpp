// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "nvme/foreign_data.hpp"

#include <doorbell/error.hpp>
#include <doorbell/pattern.hpp>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <memory>

#include "measure/other_run.hpp"
#include "measure/stop.hpp"
#include "system/open_file.hpp"

namespace doorbell::nvme {

namespace {

constexpr u64 kDiskPage = 4096;
constexpr u64 kPiece = u64{1} << 20;

struct Free {
  void operator()(void* p) const { std::free(p); }
};

/// The kinds of data in a piece of a file.
struct Content {
  bool foreign = false;
  bool ours = false;
};

bool is_zero(const u32* words, u64 n) {
  u32 any = 0;
  for (u64 i = 0; i < n; ++i) any |= words[i];
  return any == 0;
}

/// A whole unit of the pattern, of this version or of an earlier one.
bool is_ours(const u32* unit) {
  return measure::writer_of(unit).has_value() || pattern::version1::is_unit(unit);
}

Content content_of(const u8* data, u64 bytes) {
  Content c;
  u64 at = 0;
  for (; at + pattern::kUnitBytes <= bytes; at += pattern::kUnitBytes) {
    const auto* unit = reinterpret_cast<const u32*>(data + at);
    if (unit[0] == 0 && is_zero(unit, pattern::kUnitWords)) continue;
    if (!is_ours(unit)) {
      c.foreign = true;
      return c;
    }
    c.ours = true;
  }
  c.foreign = std::any_of(data + at, data + bytes, [](u8 b) { return b != 0; });
  return c;
}

/// The first byte of data from `at` on; `bytes` where there is none.
u64 next_data(int fd, u64 at, u64 bytes) {
  const off_t found = lseek(fd, static_cast<off_t>(at), SEEK_DATA);
  if (found >= 0) return std::min(static_cast<u64>(found), bytes);
  // Without the call everything is data.
  return errno == ENXIO ? bytes : at;
}

u64 next_hole(int fd, u64 at, u64 bytes) {
  const off_t found = lseek(fd, static_cast<off_t>(at), SEEK_HOLE);
  return found > static_cast<off_t>(at) ? std::min(static_cast<u64>(found), bytes) : bytes;
}

u64 size_of(int fd) {
  struct stat st {};
  return fstat(fd, &st) == 0 ? static_cast<u64>(st.st_size) : 0;
}

}  // namespace

bool holds_nothing(int fd) {
  const u64 bytes = size_of(fd);
  return next_data(fd, 0, bytes) >= bytes;
}

bool holds_foreign_data(int fd) {
  const u64 bytes = size_of(fd);
  // Whole pages at a page's start: what descriptors opened for direct I/O can read too.
  const std::unique_ptr<u8, Free> piece(static_cast<u8*>(std::aligned_alloc(kDiskPage, kPiece)));
  if (piece == nullptr) return true;
  bool data = false, ours = false;
  for (u64 at = next_data(fd, 0, bytes); at < bytes; at = next_data(fd, at, bytes)) {
    data = true;
    const u64 end = next_hole(fd, at, bytes);
    for (at = at / kDiskPage * kDiskPage; at < end;) {
      if (measure::stop_requested())
        throw Error("looking for data that doorbell did not write", "stopped by a signal", {},
                    ExitCode::interrupted);
      const u64 wanted = std::min(kPiece, (end - at + kDiskPage - 1) / kDiskPage * kDiskPage);
      const ssize_t n = pread(fd, piece.get(), wanted, static_cast<off_t>(at));
      if (n < 0 && errno == EINTR) continue;
      // The file has become shorter: another program is writing to it.
      if (n <= 0) return true;
      const Content c = content_of(piece.get(), static_cast<u64>(n));
      if (c.foreign) return true;
      ours = ours || c.ours;
      at += static_cast<u64>(n);
    }
    at = std::max(at, end);
  }
  return data && !ours;
}

std::optional<pattern::Identity> writer_of(const std::string& path, u64 byte) {
  std::array<u32, pattern::kUnitWords> unit{};
  const Opened file = open_file(path, O_RDONLY, FileKinds::regular);
  if (!file || pread(file.fd.get(), unit.data(), sizeof unit, static_cast<off_t>(byte)) != sizeof unit)
    return {};
  return measure::writer_of(unit.data());
}

}  // namespace doorbell::nvme
