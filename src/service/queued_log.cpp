// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "service/queued_log.hpp"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>

#include "service/peer.hpp"
#include "system/clock.hpp"
#include "system/thread.hpp"

namespace doorbell::service {

namespace {

constexpr u64 kSecondNs = 1'000'000'000;
/// Users whose entries are counted apart; the others share what one has.
constexpr std::size_t kMostUsers = 1024;
constexpr uid_t kOtherUsers = kNobody;

}  // namespace

struct QueuedLog::State {
  /// The entries that a user may still cause.
  struct Allowance {
    u64 left = QueuedLog::kBurst;
    u64 since_ns = 0;  // no more has been added than until then
    u64 left_out = 0;

    bool take(u64 now_ns) {
      const u64 more = (now_ns - since_ns) / (kSecondNs / QueuedLog::kPerSecond);
      since_ns += more * (kSecondNs / QueuedLog::kPerSecond);
      left = std::min<u64>(left + more, QueuedLog::kBurst);
      if (left == 0) return false;
      --left;
      return true;
    }
  };

  std::unique_ptr<Log> behind;
  std::mutex mutex;
  std::condition_variable wake, written;
  std::deque<LogEntry> waiting;
  std::map<uid_t, Allowance> users;
  u64 lost = 0, said = 0;  // of the lost ones, those that an entry has told of
  bool writing = false, stopping = false;

  void push(const LogEntry& entry) {
    if (waiting.size() >= kMostWaiting) {
      ++lost;
      return;
    }
    waiting.push_back(entry);
    wake.notify_one();
  }
  Allowance& allowance(uid_t user, u64 now_ns) {
    const auto known = users.find(user);
    if (known != users.end()) return known->second;
    return users.try_emplace(users.size() < kMostUsers ? user : kOtherUsers, Allowance{.since_ns = now_ns})
        .first->second;
  }
};

QueuedLog::QueuedLog(std::unique_ptr<Log> behind, Priority least)
    : least_(least), state_(std::make_shared<State>()) {
  state_->behind = std::move(behind);
  make_thread("log", [state = state_] { run(*state); }).detach();
}

QueuedLog::~QueuedLog() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping = true;
    state_->wake.notify_one();
  }
  flush();
}

void QueuedLog::flush() {
  std::unique_lock lock(state_->mutex);
  state_->written.wait_for(lock, std::chrono::seconds(3),
                           [&] { return state_->waiting.empty() && !state_->writing; });
}

void QueuedLog::write(const LogEntry& entry) noexcept {
  if (entry.priority > least_) return;
  const std::lock_guard lock(state_->mutex);
  try {
    if (entry.user) {
      const u64 now = wall_ns();
      State::Allowance& a = state_->allowance(*entry.user, now);
      if (!a.take(now)) {
        ++a.left_out;
        ++state_->lost;
        ++state_->said;  // with the next entry of this user
        return;
      }
      if (a.left_out > 0) {
        state_->push({entry.priority,
                      fmt::format("{} entries that user {} caused were left out", a.left_out, *entry.user)});
        a.left_out = 0;
      }
    }
    state_->push(entry);
  } catch (const std::bad_alloc&) {
    ++state_->lost;
  }
}

u64 QueuedLog::lost() const noexcept {
  const std::lock_guard lock(state_->mutex);
  return state_->lost;
}

bool QueuedLog::has_room() const noexcept {
  const std::lock_guard lock(state_->mutex);
  return state_->waiting.size() < kMostWaiting / 2;
}

void QueuedLog::run(State& state) {
  pthread_setname_np(pthread_self(), "log");
  std::unique_lock lock(state.mutex);
  for (;;) {
    state.wake.wait(lock, [&] { return state.stopping || !state.waiting.empty(); });
    if (state.waiting.empty()) return;
    const LogEntry entry = std::move(state.waiting.front());
    state.waiting.pop_front();
    const u64 unsaid = state.lost - state.said;
    state.writing = true;
    lock.unlock();
    u64 failed = 0;
    try {
      if (unsaid > 0)
        state.behind->write({Priority::warning, fmt::format("{} entries of this log were lost", unsaid)});
    } catch (const std::exception&) {
      ++failed;
    }
    const bool told = failed == 0;
    try {
      state.behind->write(entry);
    } catch (const std::exception&) {
      ++failed;
    }
    lock.lock();
    state.writing = false;
    if (told) state.said += unsaid;
    state.lost += failed;
    if (state.waiting.empty()) state.written.notify_all();
  }
}

}  // namespace doorbell::service
