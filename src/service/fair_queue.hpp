// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Whose blocking call comes next. Calls run on worker threads; users take turns, and so do the clients of one
// user, and no user has all the threads of a lane.
#pragma once

#include <doorbell/config.hpp>
#include <sys/types.h>

#include <functional>
#include <map>

namespace doorbell::service {

/// Threads for calls that block.
class Workers {
 public:
  virtual ~Workers() = default;
  /// Calls `work` on another thread and afterwards `done` on this one.
  virtual void run(std::function<void()> work, std::function<void()> done) = 0;
};

/// The purpose of a call.
enum class Lane : u8 { control, host_buffer, transfer };

struct FairQueueLimits {
  u32 control = 4;       ///< control calls at a time
  u32 host_buffers = 4;  ///< host buffers being made at a time, one for each client: that may take long
  u32 transfers = 56;    ///< transfers at a time
  u32 transfers_per_client = 4;
};

/// Who calls: turns go by user, then by client.
struct Caller {
  uid_t user = 0;
  u64 client = 0;
};

/// Thread rule: the loop's.
class FairQueue {
 public:
  FairQueue(Workers& workers, const FairQueueLimits& limits);

  using Ticket = u64;
  /// `work` runs on a worker, `done` on the loop after it.
  Ticket add(Caller caller, Lane lane, std::function<void()> work, std::function<void()> done);
  /// True if the call has not begun: it is gone then, and neither function is called.
  bool withdraw(Caller caller, Lane lane, Ticket ticket);
  [[nodiscard]] u64 waiting() const { return lanes_[0].waiting + lanes_[1].waiting + lanes_[2].waiting; }
  [[nodiscard]] u64 running() const { return lanes_[0].running + lanes_[1].running + lanes_[2].running; }

 private:
  struct Call {
    std::function<void()> work, done;
  };
  struct Client {
    std::map<Ticket, Call> waiting;  // oldest first
    u32 running = 0;
  };
  struct User {
    std::map<u64, Client> clients;
    u64 last = 0;  // the client that had the last turn
    u32 running = 0;
  };
  struct LaneState {
    u32 most = 0, most_per_client = 0;  // at a time
    std::map<uid_t, User> users;
    uid_t last = 0;  // the user who had the last turn
    u64 waiting = 0;
    u32 running = 0;
  };
  void start_what_may(Lane lane);
  void start(Lane lane, uid_t user, u64 client);
  static void forget_idle(LaneState& s, uid_t user, u64 client);
  LaneState& state(Lane lane) { return lanes_[static_cast<u32>(lane)]; }

  Workers& workers_;
  LaneState lanes_[3];
  Ticket next_ = 1;
};

}  // namespace doorbell::service
