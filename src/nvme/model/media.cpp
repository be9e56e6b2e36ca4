// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "nvme/model/media.hpp"

#include <doorbell/error.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "nvme/foreign_data.hpp"

namespace doorbell::nvme {

namespace {

struct File {
  explicit File(const std::string& path) : fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
    if (fd < 0) throw Error(fmt::format("media file {}", path), std::strerror(errno));
  }
  ~File() { close(fd); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int fd;
};

}  // namespace

Media::Media(const ModelConfig& config)
    : capacity_(config.capacity_bytes / config.lba_bytes * config.lba_bytes) {
  if (config.media == ModelConfig::Media::null) return;
  void* p = MAP_FAILED;
  if (config.media == ModelConfig::Media::ram) {
    p = mmap(nullptr, capacity_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  } else {
    const File file(config.path);
    struct stat st {};
    if (fstat(file.fd, &st) != 0 || !S_ISREG(st.st_mode))
      throw Error(fmt::format("media file {}", config.path), "it is not a regular file",
                  "name a file; a block device is driven as hardware, not through a model");
    foreign_ = holds_foreign_data(file.fd, static_cast<u64>(st.st_size));
    if (foreign_ && static_cast<u64>(st.st_size) < capacity_)
      throw Error(
          fmt::format("media file {}", config.path),
          fmt::format("it has {} bytes that doorbell did not write, less than the capacity", st.st_size),
          "name another file, or give a smaller capacity");
    // A larger file keeps what lies behind the capacity: it is not this model's to cut.
    if (static_cast<u64>(st.st_size) < capacity_ && ftruncate(file.fd, static_cast<off_t>(capacity_)) != 0)
      throw Error(fmt::format("media file {}", config.path),
                  fmt::format("cannot grow it to {} bytes: {}", capacity_, std::strerror(errno)));
    p = mmap(nullptr, capacity_, PROT_READ | PROT_WRITE, MAP_SHARED, file.fd, 0);
    file_ = true;
  }
  if (p == MAP_FAILED) throw Error(fmt::format("media of {} bytes", capacity_), std::strerror(errno));
  base_ = static_cast<u8*>(p);
}

Media::~Media() {
  if (base_ != nullptr) munmap(base_, capacity_);
}

bool Media::flush() {
  return !file_ || msync(base_, capacity_, MS_SYNC) == 0;
}

}  // namespace doorbell::nvme
