// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "service/closers.hpp"

#include <pthread.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>

namespace doorbell::service {

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
  mutable std::mutex mutex;
  std::map<uid_t, User> users;
  bool stopping = false;

  /// Whose thread it is: a user's own, or that of all who came too late.
  [[nodiscard]] uid_t thread_of(uid_t user) const {
    return users.size() < kMostUsers || users.contains(user) ? user : ~uid_t{0};
  }
};

Closers::Closers() : state_(std::make_shared<State>()) {}

Closers::~Closers() {
  std::unique_lock lock(state_->mutex);
  state_->stopping = true;
  for (auto& [id, user] : state_->users) user.wake.notify_one();
  state_->none.wait_for(lock, std::chrono::seconds(1), [&] { return state_->users.empty(); });
}

void Closers::close(uid_t user, Descriptor file) {
  add(user, {.file = std::move(file)});
}

void Closers::run(uid_t user, std::function<void()> work) {
  add(user, {.file = {}, .work = std::move(work)});
}

void Closers::add(uid_t user, Job job) {
  const std::lock_guard lock(state_->mutex);
  const uid_t whose = state_->thread_of(user);
  State::User& u = state_->users[whose];
  u.jobs.push_back(std::move(job));
  ++u.waiting;
  u.wake.notify_one();
  if (u.has_thread) return;
  try {
    std::thread([state = state_, whose] { run_thread(*state, whose); }).detach();
    u.has_thread = true;
  } catch (const std::system_error&) {
    // The next file tries again.
  }
}

u64 Closers::waiting(uid_t user) const {
  const std::lock_guard lock(state_->mutex);
  const auto u = state_->users.find(state_->thread_of(user));
  return u == state_->users.end() ? 0 : u->second.waiting;
}

u64 Closers::waiting() const {
  const std::lock_guard lock(state_->mutex);
  u64 sum = 0;
  for (const auto& [id, user] : state_->users) sum += user.waiting;
  return sum;
}

void Closers::run_thread(State& state, uid_t user) {
  pthread_setname_np(pthread_self(), "closer");
  constexpr std::chrono::seconds kIdle{2};  // making a thread for each file would cost more than closing it
  std::unique_lock lock(state.mutex);
  State::User& u = state.users.at(user);
  for (;;) {
    u.wake.wait_for(lock, kIdle, [&] { return state.stopping || !u.jobs.empty(); });
    if (u.jobs.empty()) break;
    Job job = std::move(u.jobs.front());
    u.jobs.pop_front();
    lock.unlock();
    job.file.reset();
    if (job.work) job.work();
    job.work = nullptr;
    lock.lock();
    --u.waiting;
  }
  state.users.erase(user);
  if (state.users.empty()) state.none.notify_all();
}

}  // namespace doorbell::service
