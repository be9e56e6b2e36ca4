// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Making threads, where the system may have none left.
#pragma once

#include <doorbell/error.hpp>

#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace doorbell {

/// A thread that runs `body`, or an Error that says of `what` that it cannot be made: without it a program
/// ends by an exception that names nothing.
template <class Thread = std::thread, class Body>
[[nodiscard]] Thread make_thread(const std::string& what, Body&& body) {
  try {
    return Thread(std::forward<Body>(body));
  } catch (const std::system_error& e) {
    throw Error(
        what, "the thread cannot be made: " + e.code().message(),
        "the user or control group has no threads left (ulimit -u, pids.max): ask for fewer queues or "
        "threads, or raise the limit");
  }
}

/// Threads that are joined before their end. What they wait for must come by itself.
class JoinedThreads {
 public:
  JoinedThreads() = default;
  ~JoinedThreads() { join(); }
  JoinedThreads(const JoinedThreads&) = delete;
  JoinedThreads& operator=(const JoinedThreads&) = delete;

  template <class Body>
  void add(const std::string& what, Body&& body) {
    threads_.reserve(threads_.size() + 1);  // so that nothing throws once the thread runs
    threads_.push_back(make_thread(what, std::forward<Body>(body)));
  }
  void join() {
    for (std::thread& t : threads_)
      if (t.joinable()) t.join();
  }

 private:
  std::vector<std::thread> threads_;
};

}  // namespace doorbell
