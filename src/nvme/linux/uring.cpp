// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "nvme/linux/uring.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <string>

#include "nvme/settings.hpp"
#include "system/open_files.hpp"
#include "system/sysfs.hpp"

namespace doorbell::nvme {

namespace {

/// A wait lasts this long at most: a timeout that is always in the ring ends it. A timeout of each wait's own
/// has to be programmed into the clock every time, which costs more than the rest of the call in a VM.
__kernel_timespec kLongestWait = {0, 5'000'000};
constexpr u64 kTimeoutTag = ~u64{0};
constexpr u64 kLargestBuffer = u64{1} << 30;

void require(int result, const std::string& what, const std::string& hint) {
  if (result >= 0) return;
  // A lack of this process is none of io_uring.
  const bool files = result == -EMFILE || result == -ENFILE;
  throw Error(fmt::format("{} io_uring: {}", setting::engine, what), reason(-result),
              files ? more_open_files() : hint);
}

}  // namespace

UringEngine::UringEngine(int fd, u32 entries, std::span<u8> buffer, const FileOptions& o)
    : fd_(fd), options_(o) {
  io_uring_params p{};
  // Twice the entries: a submission thread reports completions before it gives the entries back.
  // Every wait here enters the kernel, so completions need not interrupt the thread.
  p.flags = o.sqpoll ? IORING_SETUP_SQPOLL : IORING_SETUP_COOP_TASKRUN;
  if (o.iopoll) p.flags |= IORING_SETUP_IOPOLL;
  p.sq_thread_idle = 1000;
  require(io_uring_queue_init_params(std::bit_ceil(2 * entries + 1), &ring_, &p), "a ring",
          fmt::format("this kernel or container may forbid io_uring: {} sync", setting::engine));
  try {
    if (o.fixed_files)
      require(io_uring_register_files(&ring_, &fd_, 1), "registering the file",
              fmt::format("{} off", setting::fixed_files));
    if (o.fixed_buffers && buffer.size() > kLargestBuffer)
      throw Error(setting::fixed_buffers,
                  fmt::format("the kernel registers {} bytes at most, a queue's buffers are {}",
                              kLargestBuffer, buffer.size()),
                  fmt::format("use {} off, or put less in flight", setting::fixed_buffers));
    if (o.fixed_buffers) {
      const iovec all = {buffer.data(), buffer.size()};
      require(io_uring_register_buffers(&ring_, &all, 1), "registering the buffers",
              fmt::format("raise the locked-memory limit (ulimit -l), or {} off", setting::fixed_buffers));
    }
  } catch (...) {
    io_uring_queue_exit(&ring_);
    throw;
  }
  arm();
}

void UringEngine::arm() {
  if (options_.iopoll) return;  // it never waits
  if (io_uring_sqe* e = io_uring_get_sqe(&ring_); e != nullptr) {
    io_uring_prep_timeout(e, &kLongestWait, 0, 0);
    io_uring_sqe_set_data64(e, kTimeoutTag);
    armed_ = true;
  }
  hand_over();
}

UringEngine::~UringEngine() {
  // I/Os that were given up on may still write to the buffers, which go next.
  io_uring_sync_cancel_reg all{};
  all.flags = IORING_ASYNC_CANCEL_ANY | IORING_ASYNC_CANCEL_ALL;
  all.timeout = {1, 0};
  (void)io_uring_register_sync_cancel(&ring_, &all);
  // The ring itself goes some time after this call, and would hold the file open until then.
  if (options_.fixed_files) (void)io_uring_unregister_files(&ring_);
  if (options_.fixed_buffers) (void)io_uring_unregister_buffers(&ring_);
  io_uring_queue_exit(&ring_);
}

void UringEngine::put(const FileIo& io) {
  io_uring_sqe* e = io_uring_get_sqe(&ring_);
  if (e == nullptr) {
    // More than the ring was made for: the kernel has to take some first.
    hand_over();
    e = io_uring_get_sqe(&ring_);
  }
  if (e == nullptr) return;  // it will be missed by its deadline
  const int file = options_.fixed_files ? 0 : fd_;
  if (options_.fixed_buffers && io.write) io_uring_prep_write_fixed(e, file, io.data, io.bytes, io.offset, 0);
  else if (options_.fixed_buffers) io_uring_prep_read_fixed(e, file, io.data, io.bytes, io.offset, 0);
  else if (io.write) io_uring_prep_write(e, file, io.data, io.bytes, io.offset);
  else io_uring_prep_read(e, file, io.data, io.bytes, io.offset);
  if (options_.fixed_files) e->flags |= IOSQE_FIXED_FILE;
  io_uring_sqe_set_data64(e, io.cid);
}

void UringEngine::hand_over() {
  // Entries that the kernel does not take now stay in the ring; the next round tries again.
  pending_ = io_uring_submit(&ring_) < 0;
}

u32 UringEngine::submit(bool wait_follows) {
  deferred_ = wait_follows && armed_ && !options_.sqpoll;
  if (!deferred_) hand_over();
  return 1;
}

bool UringEngine::take(FileIoDone* done, bool wait) {
  if (deferred_) {
    pending_ = io_uring_submit_and_wait(&ring_, 1) < 0;
    deferred_ = false;
  } else if (pending_) {
    hand_over();
  }
  io_uring_cqe* e = nullptr;
  if (io_uring_peek_cqe(&ring_, &e) != 0) {
    // A polled ring looks at the device at every peek. The others sleep until something completes, which
    // the timeout in the ring bounds.
    if (!wait || !armed_ || pending_ || io_uring_wait_cqe(&ring_, &e) != 0) return false;
  }
  const u64 tag = e->user_data;
  done->cid = static_cast<u16>(tag);
  done->result = e->res;
  io_uring_cqe_seen(&ring_, e);
  if (tag != kTimeoutTag) return true;
  armed_ = false;
  arm();
  return false;
}

u32 SyncEngine::submit(bool) {
  for (const FileIo& io : todo_) {
    ssize_t n = 0;
    do {
      n = io.write ? pwrite(fd_, io.data, io.bytes, static_cast<off_t>(io.offset))
                   : pread(fd_, io.data, io.bytes, static_cast<off_t>(io.offset));
    } while (n < 0 && errno == EINTR);
    done_.push_back({io.cid, n < 0 ? -errno : static_cast<std::int32_t>(n)});
  }
  const auto calls = static_cast<u32>(todo_.size());
  todo_.clear();
  return calls;
}

bool SyncEngine::take(FileIoDone* done, bool) {
  if (done_.empty()) return false;
  *done = done_.back();
  done_.pop_back();
  return true;
}

}  // namespace doorbell::nvme
