// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Events that a program waits for at a file descriptor, as verbs' completion channels and asynchronous events
// are: poll() says that there is one, and a read that may block takes it.
#pragma once

#include <doorbell/config.hpp>
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <vector>

namespace doorbell::dropin {

/// Any thread. Each event is a token of an eventfd in semaphore mode, and an entry of a ring that grows.
template <typename T>
class EventQueue {
 public:
  EventQueue() : fd_(::eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC)), ring_(16) {}
  ~EventQueue() {
    if (fd_ >= 0) ::close(fd_);
  }
  EventQueue(const EventQueue&) = delete;
  EventQueue& operator=(const EventQueue&) = delete;

  /// -1 when the process has no descriptor left.
  [[nodiscard]] int fd() const { return fd_; }

  void push(const T& event) {
    const std::lock_guard lock(mutex_);
    if (count_ == ring_.size()) grow();
    ring_[(first_ + count_++) % ring_.size()] = event;
    const u64 one = 1;
    (void)!::write(fd_, &one, sizeof one);
  }

  /// Waits for an event unless the program made the descriptor non-blocking; `taken` runs with the queue
  /// locked. False with errno as read() has it.
  template <typename Taken>
  bool take(T* into, Taken&& taken) {
    for (;;) {
      u64 token = 0;
      if (::read(fd_, &token, sizeof token) != sizeof token) return false;
      const std::lock_guard lock(mutex_);
      // None: remove() took the event whose token this was.
      if (count_ == 0) continue;
      *into = ring_[first_];
      first_ = (first_ + 1) % ring_.size();
      --count_;
      taken(*into);
      return true;
    }
  }

  /// Forgets the events that `match`, for an object that ends.
  template <typename Match>
  void remove(Match&& match) {
    const std::lock_guard lock(mutex_);
    std::size_t kept = 0;
    for (std::size_t i = 0; i < count_; ++i) {
      const T event = ring_[(first_ + i) % ring_.size()];
      if (!match(event)) ring_[(first_ + kept++) % ring_.size()] = event;
    }
    for (std::size_t i = kept; i < count_; ++i) {
      u64 token = 0;
      iovec one{&token, sizeof token};
      // A reader between its read() and the lock has the token already: it finds none and waits again.
      (void)!::preadv2(fd_, &one, 1, -1, RWF_NOWAIT);
    }
    count_ = kept;
  }

  [[nodiscard]] std::mutex& mutex() { return mutex_; }

 private:
  void grow() {
    std::vector<T> larger(ring_.size() * 2);
    for (std::size_t i = 0; i < count_; ++i) larger[i] = ring_[(first_ + i) % ring_.size()];
    ring_.swap(larger);
    first_ = 0;
  }

  int fd_;
  std::mutex mutex_;
  std::vector<T> ring_;
  std::size_t first_ = 0, count_ = 0;
};

}  // namespace doorbell::dropin
