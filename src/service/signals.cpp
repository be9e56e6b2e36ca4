// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "service/signals.hpp"

#include <doorbell/config.hpp>
#include <doorbell/error.hpp>
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>

#include "system/sysfs.hpp"

namespace doorbell::service {

namespace {

std::atomic<int> noted_at{-1};

void note(int number) {
  const int error = errno;
  const u8 byte = static_cast<u8>(number);
  static_cast<void>(!::write(noted_at, &byte, 1));
  errno = error;
}

}  // namespace

Signals::Signals(std::initializer_list<int> numbers) : numbers_(numbers.begin(), numbers.end()) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) throw Error("signals", reason(errno));
  read_ = Descriptor(ends[0]), write_ = Descriptor(ends[1]);
  noted_at = ends[1];
  struct sigaction action {};
  action.sa_handler = note;
  action.sa_flags = SA_RESTART;
  for (const int n : numbers_) ::sigaction(n, &action, nullptr);
}

Signals::~Signals() {
  for (const int n : numbers_) static_cast<void>(std::signal(n, SIG_DFL));
  noted_at = -1;
}

int Signals::take() {
  u8 byte = 0;
  return ::read(read_.get(), &byte, 1) == 1 ? byte : 0;
}

}  // namespace doorbell::service
