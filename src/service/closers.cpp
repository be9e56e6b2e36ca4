// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "service/closers.hpp"

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "service/peer.hpp"
#include "system/thread.hpp"

namespace doorbell::service {

namespace {

constexpr uid_t kShared = kNobody;

}  // namespace

struct Closers::Job {
  Descriptor file;
  std::function<void()> work = {};
};

/// The threads keep it.
struct Closers::State {
  struct User {
    std::deque<Job> jobs;
    u64 waiting = 0;  // those, and the one that is being done
    bool has_thread = false;
    std::condition_variable wake;
  };
  std::condition_variable none;  // is left
  std::atomic<u64> waiting{0};   // of all users; written with the mutex held
  mutable std::mutex mutex;
  std::map<uid_t, User> users;
  bool stopping = false;

  /// Whose thread it is: a user's own, or that of all who came too late.
  [[nodiscard]] uid_t thread_of(uid_t user) const {
    return users.size() < kMostUsers || users.contains(user) ? user : kShared;
  }
  bool keeps_shared = false;  // its thread does not end when it has nothing to do
};

Closers::Closers() : state_(std::make_shared<State>()) {}

Closers::~Closers() {
  std::unique_lock lock(state_->mutex);
  state_->stopping = true;
  for (auto& [id, user] : state_->users) user.wake.notify_one();
  state_->none.wait_for(lock, std::chrono::seconds(1), [&] { return state_->users.empty(); });
}

void Closers::keep_thread() {
  const std::lock_guard lock(state_->mutex);
  if (std::exchange(state_->keeps_shared, true)) return;
  State::User& u = state_->users[kShared];
  if (u.has_thread) return;
  make_thread("closer", [state = state_] { run_thread(*state, kShared); }).detach();
  u.has_thread = true;
}

void Closers::close(uid_t user, Descriptor file) {
  add(user, {.file = std::move(file)});
}

void Closers::run(uid_t user, std::function<void()> work) {
  add(user, {.file = {}, .work = std::move(work)});
}

void Closers::add(uid_t user, Job job) {
  const std::lock_guard lock(state_->mutex);
  uid_t whose = state_->thread_of(user);
  if (!state_->users[whose].has_thread) {
    try {
      std::thread([state = state_, whose] { run_thread(*state, whose); }).detach();
      state_->users[whose].has_thread = true;
    } catch (const std::system_error&) {
      // The next file tries again, unless there is the shared one.
      if (state_->keeps_shared && whose != kShared) {
        if (state_->users[whose].jobs.empty()) state_->users.erase(whose);
        whose = kShared;
      }
    }
  }
  State::User& u = state_->users[whose];
  u.jobs.push_back(std::move(job));
  ++u.waiting, ++state_->waiting;
  u.wake.notify_one();
}

u64 Closers::waiting(uid_t user) const {
  const std::lock_guard lock(state_->mutex);
  const auto u = state_->users.find(state_->thread_of(user));
  return u == state_->users.end() ? 0 : u->second.waiting;
}

u64 Closers::waiting() const {
  return state_->waiting;
}

void Closers::run_thread(State& state, uid_t user) {
  pthread_setname_np(pthread_self(), "closer");
  constexpr std::chrono::seconds kIdle{2};  // making a thread for each file would cost more than closing it
  std::unique_lock lock(state.mutex);
  State::User& u = state.users.at(user);
  for (;;) {
    u.wake.wait_for(lock, kIdle, [&] { return state.stopping || !u.jobs.empty(); });
    if (u.jobs.empty() && user == kShared && state.keeps_shared && !state.stopping) continue;
    if (u.jobs.empty()) break;
    Job job = std::move(u.jobs.front());
    u.jobs.pop_front();
    lock.unlock();
    job.file.reset();
    if (job.work) job.work();
    job.work = nullptr;
    lock.lock();
    --u.waiting, --state.waiting;
  }
  state.users.erase(user);
  if (state.users.empty()) state.none.notify_all();
}

}  // namespace doorbell::service
