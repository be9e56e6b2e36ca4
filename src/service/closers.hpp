// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Closing the files that other processes have sent. They may be any files, and close() may wait as long as
// their sender likes (a TCP socket that lingers, a file of a file system in a process of his own).
#pragma once

#include <doorbell/config.hpp>
#include <sys/types.h>

#include <functional>
#include <memory>
#include <utility>

#include "system/descriptor.hpp"

namespace doorbell::service {

/// Threads that close. Each user's files have one of their own, so that he delays nobody else's. Any thread.
class Closers {
 public:
  /// Users with a thread of their own; those that come then share one.
  static constexpr std::size_t kMostUsers = 64;
  /// Files of a user that may wait: who has as many is not read.
  static constexpr u64 kMostWaiting = 1024;

  Closers();
  /// Waits a second at most: what is not closed by then is closed later.
  ~Closers();
  Closers(const Closers&) = delete;
  Closers& operator=(const Closers&) = delete;

  /// Makes the thread now that the latecomers share, and those for whom none can be made later: files are
  /// closed then where no more threads or memory are to be had. Throws Error.
  void keep_thread();
  void close(uid_t user, Descriptor file);
  /// Has the user's thread do what may wait as closing does; `work` must not throw.
  void run(uid_t user, std::function<void()> work);
  /// Files and work of this user that are not done yet.
  [[nodiscard]] u64 waiting(uid_t user) const;
  /// Asked before each message: takes the lock only where so many wait at all.
  [[nodiscard]] bool full(uid_t user) const {
    return waiting() >= kMostWaiting && waiting(user) >= kMostWaiting;
  }
  /// Those of all users.
  [[nodiscard]] u64 waiting() const;

 private:
  struct State;
  struct Job;
  void add(uid_t user, Job job);
  static void run_thread(State& state, uid_t user);
  std::shared_ptr<State> state_;
};

/// A file that another process has sent. Closers close it, where there are some.
class ForeignFile {
 public:
  ForeignFile() = default;
  explicit ForeignFile(Descriptor file, std::shared_ptr<Closers> closers = nullptr, uid_t user = 0)
      : file_(std::move(file)), closers_(std::move(closers)), user_(user) {}
  ~ForeignFile() { reset(); }
  ForeignFile(ForeignFile&&) noexcept = default;
  ForeignFile& operator=(ForeignFile&& other) noexcept {
    if (this == &other) return *this;
    reset();
    file_ = std::move(other.file_);
    closers_ = std::move(other.closers_);
    user_ = other.user_;
    return *this;
  }
  [[nodiscard]] int get() const { return file_.get(); }
  void reset() {
    if (file_.get() >= 0 && closers_) closers_->close(user_, std::move(file_));
    file_.reset();
  }

 private:
  Descriptor file_;
  std::shared_ptr<Closers> closers_;
  uid_t user_ = 0;
};

}  // namespace doorbell::service
