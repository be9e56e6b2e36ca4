// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "measure/stop.hpp"

#include <csignal>
#include <doorbell/error.hpp>
#include <system_error>
#include <unistd.h>

namespace doorbell::measure {
namespace {

constexpr int kInterrupted = 130;

// What the handler reaches: a signal handler has no other argument.
std::atomic<StopFlag*> installed{nullptr};
static_assert(std::atomic<StopFlag*>::is_always_lock_free);
struct sigaction old_int, old_term;

void on_signal(int signal) {
  StopFlag* flag = installed.load(std::memory_order_acquire);
  if (flag == nullptr || !flag->request(signal)) _exit(kInterrupted);
}

}  // namespace

StopFlag::~StopFlag() {
  uninstall();
}

bool StopFlag::request(int signal) noexcept {
  int none = 0;
  return signal_.compare_exchange_strong(none, signal, std::memory_order_relaxed);
}

void StopFlag::install() {
  StopFlag* none = nullptr;
  if (!installed.compare_exchange_strong(none, this, std::memory_order_acq_rel)) {
    throw Error("signal handlers", "another stop flag is installed");
  }
  struct sigaction action = {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  // System calls of libraries that do not expect EINTR go on; the loops that wait poll the flag.
  action.sa_flags = SA_RESTART;
  if (sigaction(SIGINT, &action, &old_int) != 0 || sigaction(SIGTERM, &action, &old_term) != 0) {
    throw Error("signal handlers", std::generic_category().message(errno));
  }
}

void StopFlag::uninstall() noexcept {
  if (installed.load(std::memory_order_acquire) != this) return;
  sigaction(SIGINT, &old_int, nullptr);
  sigaction(SIGTERM, &old_term, nullptr);
  installed.store(nullptr, std::memory_order_release);
}

}  // namespace doorbell::measure
