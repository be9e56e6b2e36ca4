// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Closing the files that other processes have sent. They may be any files, and close() may wait as long as
// their sender likes (a TCP socket that lingers, a file of a file system in a process of his own).
#pragma once

#include <doorbell/config.hpp>

#include <memory>
#include <utility>

#include "system/descriptor.hpp"

namespace doorbell::qdma {

/// Threads that close. Each owner's files have one of their own, so that he delays nobody else's. Any thread.
class Closers {
 public:
  Closers();
  /// Waits a second at most: what is not closed by then is closed later.
  ~Closers();
  Closers(const Closers&) = delete;
  Closers& operator=(const Closers&) = delete;

  void close(u64 owner, Descriptor file);
  /// Files of this owner that are not closed yet.
  [[nodiscard]] u64 waiting(u64 owner) const;

 private:
  struct State;
  static void run(State& state, u64 owner);
  std::shared_ptr<State> state_;
};

/// A file that another process has sent. Closers close it, where there are some.
class ForeignFile {
 public:
  ForeignFile() = default;
  explicit ForeignFile(Descriptor file, std::shared_ptr<Closers> closers = nullptr, u64 owner = 0)
      : file_(std::move(file)), closers_(std::move(closers)), owner_(owner) {}
  ~ForeignFile() { reset(); }
  ForeignFile(ForeignFile&&) noexcept = default;
  ForeignFile& operator=(ForeignFile&& other) noexcept {
    if (this == &other) return *this;
    reset();
    file_ = std::move(other.file_);
    closers_ = std::move(other.closers_);
    owner_ = other.owner_;
    return *this;
  }
  [[nodiscard]] int get() const { return file_.get(); }
  void reset() {
    if (file_.get() >= 0 && closers_) closers_->close(owner_, std::move(file_));
    file_.reset();
  }

 private:
  Descriptor file_;
  std::shared_ptr<Closers> closers_;
  u64 owner_ = 0;
};

}  // namespace doorbell::qdma
