// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Fakes around the daemon's logic: a card that only keeps books, sockets that only keep what is sent, and
// workers that work when a test says so.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "qdma/daemon/service.hpp"
#include "qdma/peer/wire.hpp"

namespace doorbell::qdma::daemon {

/// A descriptor's number that no process has: closing it does nothing.
inline constexpr int kNoFile = 1 << 30;

/// Answers calls as a driver does, moves nothing. Its ids are reused lowest first, at once.
class FakeCard final : public Driver {
 public:
  struct Queue {
    u32 directions = 0;
    bool started = false;
  };
  [[nodiscard]] std::string kind() const override { return "model"; }
  [[nodiscard]] std::string name() const override { return "fake"; }
  [[nodiscard]] bool descriptors_are_sockets() const override { return false; }

  CallResult call(int fd, u32 number, std::span<u8> structure, const CallOptions& options) override {
    ++calls[number];
    if (during) during(number, options);
    if (const auto failing = fail.find(number); failing != fail.end()) return {-failing->second, 0};
    switch (number) {
      case kCallInfo: {
        Info info;
        std::strcpy(info.bdf.data(), "0000:65:00.1");
        return give(structure, info);
      }
      case kCallQpairAdd:
        return add(structure);
      case kCallQpairOp:
        return operate(take<QpairOp>(structure));
      case kCallQpairGetFd:
        return {new_fd(), 0};
      case kCallBufCreate: {
        auto create = take<BufCreate>(structure);
        if (create.length == 0 || create.length % kGranule != 0) return {-EINVAL, 0};
        create.granule = kGranule;
        create.transfer_hint = 2;
        give(structure, create);
        return {new_fd(), 0};
      }
      case kCallTransfer: {
        transfers.emplace_back(fd, take<Transfer>(structure));
        deadlines.push_back(options.deadline_ns);
        i64 total = 0;
        const Transfer& t = transfers.back().second;
        for (u32 i = 0; i < t.count; ++i) {
          options.parts[i] = {.bytes = t.xfers[i].length, .ns = 5};
          total += static_cast<i64>(t.xfers[i].length);
        }
        return {total, t.count};
      }
      default:
        return {-ENOTTY, 0};
    }
  }

  void cancel(int, u64 tag) override { cancelled.push_back(tag); }
  void close(int) override {}

  std::map<u32, u64> calls;
  std::function<void(u32 number, const CallOptions& options)> during;  ///< a call
  std::vector<u64> cancelled;
  std::map<u32, int> fail;  ///< calls that are refused, with which errno
  std::map<u32, Queue> queues;
  std::vector<std::pair<int, Transfer>> transfers;
  std::vector<u64> deadlines;
  std::vector<u32> stopped, deleted;
  int fail_delete = 0;

 private:
  template <class T>
  static T take(std::span<u8> structure) {
    T value;
    std::memcpy(static_cast<void*>(&value), structure.data(), sizeof value);
    return value;
  }
  template <class T>
  static CallResult give(std::span<u8> structure, const T& value) {
    std::memcpy(structure.data(), &value, sizeof value);
    return {};
  }
  static int new_fd() { return kNoFile; }
  CallResult add(std::span<u8> structure) {
    auto request = take<QpairAdd>(structure);
    if (request.dir_mask == 0 || request.mode > 1 || request.mm_channel > 2 || request.h2c_ring > 15)
      return {-EINVAL, 0};
    u32 id = 0;
    while (queues.contains(id)) ++id;
    if (id == kMaxQueuePairs) return {-EBUSY, 0};
    queues[id] = {request.dir_mask, false};
    request.qid = id;
    return give(structure, request);
  }
  CallResult operate(const QpairOp& op) {
    const auto q = queues.find(op.qid);
    if (q == queues.end()) return {-ENOENT, 0};
    const auto wanted = QueueOp{op.op};
    if (wanted == QueueOp::del) {
      if (fail_delete != 0) return {-fail_delete, 0};
      queues.erase(q);
      deleted.push_back(op.qid);
      return {};
    }
    if (wanted == QueueOp::stop) stopped.push_back(op.qid);
    if (q->second.started == (wanted == QueueOp::start)) return {-EINVAL, 0};
    q->second.started = wanted == QueueOp::start;
    return {};
  }
};

/// Keeps what is sent.
class FakeOutlet final : public Outlet {
 public:
  struct Sent {
    std::vector<u8> bytes;
    bool with = false;
  };
  void send(SocketId to, std::vector<u8> message, Descriptor with) override {
    if (!closed.contains(to)) sent[to].push_back({std::move(message), with.get() >= 0});
  }
  Descriptor open_pair(SocketId id, uid_t, int& error) override {
    if (no_sockets) {
      error = EMFILE;
      return {};
    }
    pairs.push_back(id);
    return Descriptor(kNoFile);
  }
  void close(SocketId id) override { closed.insert(id); }
  void pause(SocketId id) override { paused.insert(id); }
  void resume(SocketId id) override { paused.erase(id); }

  std::map<SocketId, std::deque<Sent>> sent;
  std::vector<SocketId> pairs;
  std::set<SocketId> closed, paused;
  bool no_sockets = false;
};

/// Works when it is told to, or at once.
class FakeWorkers final : public Workers {
 public:
  void run(std::function<void()> work, std::function<void()> done) override {
    jobs.push_back({std::move(work), std::move(done)});
    if (at_once) run_all();
  }
  void run_one() {
    auto job = std::move(jobs.front());
    jobs.pop_front();
    job.first();
    job.second();
  }
  void run_all() {
    while (!jobs.empty()) run_one();
  }
  std::deque<std::pair<std::function<void()>, std::function<void()>>> jobs;
  bool at_once = false;
};

class FakeLog final : public Log {
 public:
  void write(const LogEntry& entry) override { entries.push_back(entry); }
  std::vector<LogEntry> entries;
};

}  // namespace doorbell::qdma::daemon
