// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "vfio_user/event_signal.hpp"

#include <doorbell/config.hpp>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <ctime>

namespace doorbell::vfio_user {

namespace {

constexpr unsigned kRequests = 32;  // whose ends lie in the context before they are taken out
constexpr int kAttempts = 64;       // other threads may fill it each time

}  // namespace

EventSignal::EventSignal() : empty_(memfd_create("interrupts", MFD_CLOEXEC)) {
  if (empty_.get() >= 0 && ::syscall(SYS_io_setup, kRequests, &context_) != 0) context_ = 0;
}

EventSignal::~EventSignal() {
  if (context_ != 0) ::syscall(SYS_io_destroy, context_);
}

bool EventSignal::submit(int eventfd) noexcept {
  char nothing = 0;
  iocb request{};
  request.aio_lio_opcode = IOCB_CMD_PREAD;
  request.aio_fildes = static_cast<u32>(empty_.get());
  request.aio_buf = reinterpret_cast<u64>(&nothing);
  request.aio_nbytes = 1;
  request.aio_flags = IOCB_FLAG_RESFD;
  request.aio_resfd = static_cast<u32>(eventfd);
  iocb* one = &request;
  return ::syscall(SYS_io_submit, context_, 1, &one) == 1;
}

bool EventSignal::add(int eventfd) noexcept {
  for (int i = 0; context_ != 0 && i < kAttempts; ++i) {
    if (submit(eventfd)) return true;
    if (errno != EAGAIN) return false;
    std::array<io_event, kRequests> ends;
    timespec at_once{};
    ::syscall(SYS_io_getevents, context_, 0, kRequests, ends.data(), &at_once);
  }
  const u64 one = 1;
  return ::write(eventfd, &one, sizeof one) == sizeof one;
}

}  // namespace doorbell::vfio_user
