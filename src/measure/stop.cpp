// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "measure/stop.hpp"

#include <array>
#include <csignal>
#include <doorbell/error.hpp>
#include <unistd.h>

#include "system/clock.hpp"
#include "system/sysfs.hpp"

namespace doorbell::measure {
namespace {

constexpr int kInterrupted = static_cast<int>(ExitCode::interrupted);
constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP};

// The flag that the handler reaches: a signal handler has no other argument.
std::atomic<StopFlag*> installed{nullptr};
static_assert(std::atomic<StopFlag*>::is_always_lock_free);
std::array<struct sigaction, kSignals.size()> old_actions;

void on_signal(int signal) {
  StopFlag* flag = installed.load(std::memory_order_acquire);
  if (flag == nullptr || !flag->request(signal)) _exit(kInterrupted);
}

}  // namespace

StopFlag::~StopFlag() {
  uninstall();
}

bool StopFlag::request(int signal, u64 now_ns) noexcept {
  int none = 0;
  (void)signal_.compare_exchange_strong(none, signal, std::memory_order_relaxed);
  const u64 bit = u64{1} << (static_cast<unsigned>(signal) % 64);
  if ((seen_.fetch_or(bit, std::memory_order_relaxed) & bit) == 0) {
    last_ns_.store(now_ns, std::memory_order_relaxed);
    return true;
  }
  if (now_ns - last_ns_.load(std::memory_order_relaxed) < kNextRequestNs) return true;
  last_ns_.store(now_ns, std::memory_order_relaxed);
  return !gave_up_.exchange(true, std::memory_order_relaxed);
}

bool StopFlag::request(int signal) noexcept {
  return request(signal, wall_ns());  // clock_gettime() is allowed in a signal handler
}

void StopFlag::install_without_signals() {
  StopFlag* none = nullptr;
  if (!installed.compare_exchange_strong(none, this, std::memory_order_acq_rel)) {
    throw Error("signal handlers", "another stop flag is installed");
  }
}

void StopFlag::install() {
  install_without_signals();
  takes_signals_ = true;
  struct sigaction action = {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  // System calls of libraries that do not expect EINTR go on; the loops that wait poll the flag.
  action.sa_flags = SA_RESTART;
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    const bool failed = sigaction(kSignals[i], nullptr, &old_actions[i]) != 0;
    // nohup ignores SIGHUP so that the run goes on without its terminal.
    const bool leave = !failed && kSignals[i] == SIGHUP && old_actions[i].sa_handler == SIG_IGN;
    if (failed || (!leave && sigaction(kSignals[i], &action, nullptr) != 0))
      throw Error("signal handlers", reason(errno));
  }
}

void StopFlag::uninstall() noexcept {
  if (installed.load(std::memory_order_acquire) != this) return;
  if (takes_signals_)
    for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &old_actions[i], nullptr);
  takes_signals_ = false;
  installed.store(nullptr, std::memory_order_release);
}

bool stop_requested() noexcept {
  const StopFlag* const flag = installed.load(std::memory_order_acquire);
  return flag != nullptr && flag->requested();
}

bool stop_gave_up() noexcept {
  const StopFlag* const flag = installed.load(std::memory_order_acquire);
  return flag != nullptr && flag->gave_up();
}

}  // namespace doorbell::measure
