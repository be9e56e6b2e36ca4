// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "qdma/peer/closers.hpp"

#include <pthread.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>

namespace doorbell::qdma {

/// The threads keep it.
struct Closers::State {
  struct Owner {
    std::deque<Descriptor> files;
    u64 waiting = 0;  // those, and the one that is being closed
    bool has_thread = false;
    std::condition_variable wake;
  };
  std::condition_variable none;  // is left
  mutable std::mutex mutex;
  std::map<u64, Owner> owners;
  bool stopping = false;
};

Closers::Closers() : state_(std::make_shared<State>()) {}

Closers::~Closers() {
  std::unique_lock lock(state_->mutex);
  state_->stopping = true;
  for (auto& [id, owner] : state_->owners) owner.wake.notify_one();
  state_->none.wait_for(lock, std::chrono::seconds(1), [&] { return state_->owners.empty(); });
}

void Closers::close(u64 owner, Descriptor file) {
  const std::lock_guard lock(state_->mutex);
  State::Owner& o = state_->owners[owner];
  o.files.push_back(std::move(file));
  ++o.waiting;
  o.wake.notify_one();
  if (o.has_thread) return;
  try {
    std::thread([state = state_, owner] { run(*state, owner); }).detach();
    o.has_thread = true;
  } catch (const std::system_error&) {
    // The next file tries again.
  }
}

u64 Closers::waiting(u64 owner) const {
  const std::lock_guard lock(state_->mutex);
  const auto o = state_->owners.find(owner);
  return o == state_->owners.end() ? 0 : o->second.waiting;
}

void Closers::run(State& state, u64 owner) {
  pthread_setname_np(pthread_self(), "qdma closer");
  constexpr std::chrono::seconds kIdle{2};  // making a thread for each file would cost more than closing it
  std::unique_lock lock(state.mutex);
  State::Owner& o = state.owners.at(owner);
  for (;;) {
    o.wake.wait_for(lock, kIdle, [&] { return state.stopping || !o.files.empty(); });
    if (o.files.empty()) break;
    Descriptor file = std::move(o.files.front());
    o.files.pop_front();
    lock.unlock();
    file.reset();
    lock.lock();
    --o.waiting;
  }
  state.owners.erase(owner);
  if (state.owners.empty()) state.none.notify_all();
}

}  // namespace doorbell::qdma
