// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <cerrno>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "qdma/flow/call_engine.hpp"

namespace doorbell::qdma {

namespace {

/// Threads are made as calls need them and kept until the end: no call waits for another one's thread, as
/// none waits in a ring.
class ThreadEngine : public CallEngine {
 public:
  ThreadEngine(std::shared_ptr<Driver> driver, int fd) : shared_(std::make_shared<Shared>()) {
    shared_->driver = std::move(driver);
    shared_->fd = fd;
  }
  ~ThreadEngine() override {
    bool detach = false;
    {
      const std::lock_guard lock(shared_->mutex);
      shared_->stopping = true;
      detach = shared_->abandoned;
    }
    shared_->wake.notify_all();
    for (std::thread& t : threads_)
      if (detach) t.detach();
      else t.join();
  }

  [[nodiscard]] std::string name() const override { return "threads"; }
  [[nodiscard]] bool driven() const override { return false; }

  [[nodiscard]] int begin(std::shared_ptr<PendingCall> call) override {
    {
      const std::lock_guard lock(shared_->mutex);
      if (shared_->todo.size() >= shared_->idle) try {
          threads_.emplace_back([shared = shared_, ended = &ended_] { run(*shared, *ended); });
        } catch (const std::system_error&) {
          // The system has no more: those that are there take it when they have time.
          if (threads_.empty()) return EAGAIN;
        }
      shared_->todo.push_back(std::move(call));
    }
    shared_->wake.notify_one();
    return 0;
  }

  void cancel(PendingCall& call) override {
    call.cancelled = true;
    shared_->driver->cancel(shared_->fd, call.tag);
  }

  void abandon() override {
    std::unique_lock lock(shared_->mutex);
    shared_->abandoned = true;
    shared_->reported.wait(lock, [&] { return shared_->reporting == 0; });
  }

 private:
  struct Shared {
    std::shared_ptr<Driver> driver;
    int fd = -1;
    std::mutex mutex;
    std::condition_variable wake, reported;
    std::deque<std::shared_ptr<PendingCall>> todo;
    std::size_t idle = 0, reporting = 0;
    bool stopping = false, abandoned = false;
  };

  static void issue(Shared& s, PendingCall& call) {
    if (call.cancelled) {
      call.result = {.result = -ECANCELED, .parts = 0};
      return;
    }
    call.result = s.driver->call(s.fd, kCallTransfer,
                                 std::span(reinterpret_cast<u8*>(&call.structure), sizeof call.structure),
                                 {.deadline_ns = call.deadline_ns,
                                  .parts = call.parts,
                                  .tag = call.tag,
                                  .cancelled = &call.cancelled});
  }

  static void run(Shared& s, const Ended& ended) {
    std::unique_lock lock(s.mutex);
    for (;;) {
      ++s.idle;
      s.wake.wait(lock, [&] { return s.stopping || !s.todo.empty(); });
      --s.idle;
      if (s.todo.empty()) return;
      const std::shared_ptr<PendingCall> call = std::move(s.todo.front());
      s.todo.pop_front();
      lock.unlock();
      issue(s, *call);
      lock.lock();
      if (s.abandoned) continue;  // the caller may be gone
      ++s.reporting;
      lock.unlock();
      ended(call);
      lock.lock();
      --s.reporting;
      s.reported.notify_all();
    }
  }

  std::shared_ptr<Shared> shared_;
  std::vector<std::thread> threads_;  // under the mutex
};

}  // namespace

std::unique_ptr<CallEngine> Driver::uring_engine(int) {
  return nullptr;
}

std::unique_ptr<CallEngine> thread_engine(std::shared_ptr<Driver> driver, int fd) {
  return std::make_unique<ThreadEngine>(std::move(driver), fd);
}

}  // namespace doorbell::qdma
