// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "qdma/server/buffers.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "system/available_memory.hpp"

namespace doorbell::qdma {

namespace {

/// The kernel finds the pages now: later no call is left that could return the error.
int allocate(int fd, u64 from, u64 bytes) {
  for (;;) {
    if (fallocate(fd, 0, static_cast<off_t>(from), static_cast<off_t>(bytes)) == 0) return 0;
    if (errno != EINTR) return errno == ENOSPC || errno == EFBIG || errno == EINVAL ? ENOMEM : errno;
  }
}

/// Whether no other open file of the same memory is left, in whatever process, as a descriptor or a mapping.
/// The kernel leases it for writing then only. Where it leases no memory files, the lock that goes with the
/// other file tells, which who has it can give up.
bool alone(int fd) {
  if (fcntl(fd, F_SETLEASE, F_WRLCK) == 0) {
    fcntl(fd, F_SETLEASE, F_UNLCK);
    return true;
  }
  return errno != EAGAIN && flock(fd, LOCK_EX | LOCK_NB) == 0;
}

}  // namespace

HostBuffer::~HostBuffer() {
  if (data_ != nullptr) munmap(data_, bytes_);
  if (held_bytes_) held_bytes_->fetch_sub(bytes_);
}

int HostBuffers::reserve(u64 bytes) {
  static_cast<void>(sweep());
  {
    const std::lock_guard lock(mutex_);
    if (buffers_.size() + being_made_ >= limits_.buffers) return EDQUOT;
    const u64 held = held_bytes_->load();
    if (held > limits_.bytes || bytes > limits_.bytes - held) return EDQUOT;
    if (const auto available = available_memory();
        available && (bytes > *available || being_made_bytes_ > *available - bytes))
      return ENOMEM;
    ++being_made_;
    being_made_bytes_ += bytes;
    held_bytes_->fetch_add(bytes);
  }
  return 0;
}

int HostBuffers::begin(u64 bytes, bool close_on_exec, std::shared_ptr<Making>& out) {
  if (const int error = reserve(bytes); error != 0) return error;
  out = std::make_shared<Making>(*this, bytes, close_on_exec);
  return 0;
}

void HostBuffers::settle(u64 bytes) {
  const std::lock_guard lock(mutex_);
  being_made_bytes_ -= bytes;
}

HostBuffers::Making::Making(HostBuffers& all, u64 bytes, bool close_on_exec)
    : all_(all), close_on_exec_(close_on_exec), buffer_(new HostBuffer) {
  buffer_->held_bytes_ = all_.held_bytes_;
  buffer_->bytes_ = bytes;
}

HostBuffers::Making::~Making() {
  if (!buffer_) return;
  all_.settle(buffer_->bytes_ - found_);
  const std::lock_guard lock(all_.mutex_);
  --all_.being_made_;
}

int HostBuffers::Making::open() {
  const u64 bytes = buffer_->bytes_;
  const Descriptor memory(memfd_create("qdma", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (memory.get() < 0) return errno;
  if (ftruncate(memory.get(), static_cast<off_t>(bytes)) != 0) return ENOMEM;
  if (fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) return errno;
  // The kernel counts files that have been opened, and not the one that memfd_create() gives.
  const std::string path = fmt::format("/proc/self/fd/{}", memory.get());
  buffer_->file_ = Descriptor(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  theirs_ = Descriptor(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (buffer_->file_.get() < 0 || theirs_.get() < 0) return errno;
  // The lock belongs to the open file that goes away: for kernels that give no lease.
  if (flock(theirs_.get(), LOCK_EX | LOCK_NB) != 0) return errno;
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, buffer_->file_.get(), 0);
  if (p == MAP_FAILED) return ENOMEM;
  buffer_->data_ = static_cast<u8*>(p);
  return 0;
}

int HostBuffers::Making::find_memory(u64 bytes) {
  if (const int error = allocate(theirs_.get(), found_, bytes); error != 0) return error;
  // Without it a transfer finds the pages itself, more slowly: an older kernel does not know it.
  static_cast<void>(madvise(buffer_->data_ + found_, bytes, MADV_POPULATE_WRITE));
  found_ += bytes;
  all_.settle(bytes);
  return 0;
}

int HostBuffers::Making::go_on(Descriptor& out) {
  if (buffer_->data_ == nullptr)
    if (const int error = open(); error != 0) return error;
  const u64 left = buffer_->bytes_ - found_;
  if (const int error = find_memory(std::min(left, all_.limits_.part)); error != 0) return error;
  if (found_ < buffer_->bytes_) return EINPROGRESS;
  HostBuffer::Identity identity;
  if (const int error = wire::name_of(buffer_->file_.get(), identity); error != 0) return error;
  if (!close_on_exec_) fcntl(theirs_.get(), F_SETFD, 0);
  out = std::move(theirs_);
  const std::lock_guard lock(all_.mutex_);
  --all_.being_made_;
  all_.buffers_.emplace(identity, std::move(buffer_));
  return 0;
}

int HostBuffers::find(int fd, std::shared_ptr<HostBuffer>& out) const {
  HostBuffer::Identity identity;
  if (fd < 0 || wire::name_of(fd, identity) != 0) return EBADF;
  const std::lock_guard lock(mutex_);
  const auto it = buffers_.find(identity);
  if (it == buffers_.end()) return EINVAL;
  out = it->second;
  return 0;
}

bool HostBuffers::holds(const HostBuffer::Identity& buffer) {
  const std::lock_guard lock(mutex_);
  const auto it = buffers_.find(buffer);
  return it != buffers_.end() && !alone(it->second->file_.get());
}

u64 HostBuffers::sweep() {
  std::map<HostBuffer::Identity, std::shared_ptr<HostBuffer>> gone;  // unmapped without the lock
  const std::lock_guard lock(mutex_);
  for (auto it = buffers_.begin(); it != buffers_.end();) {
    const auto here = it++;
    if (alone(here->second->file_.get())) gone.insert(buffers_.extract(here));
  }
  return buffers_.size();
}

}  // namespace doorbell::qdma
