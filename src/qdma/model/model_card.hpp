// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The software card's engine: rings that are served first in, first out, by device threads that sleep while
// there is nothing to do.
#pragma once

#include <array>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "model/fault_injector.hpp"
#include "qdma/model/agenda.hpp"
#include "qdma/model/card.hpp"
#include "qdma/model/card_clock.hpp"
#include "qdma/model/memory.hpp"
#include "qdma/model/rates.hpp"
#include "system/running_time.hpp"
#include "system/thread.hpp"

namespace doorbell::qdma {

class ModelCard;
class CardQueue;
struct CardRing;
struct CardRequest;

/// An entry of the agenda, as a device thread finds it when it is due: exactly one member is set.
struct CardEvent {
  CardRing* move = nullptr;         ///< the ring's next burst
  CardRequest* done = nullptr;      ///< a completion
  CardRequest* deadline = nullptr;  ///< give the request up
};

/// One sub-transfer on the card. Its owner keeps it, and the memory at `host`, until `ended` has been called.
struct CardRequest {
  std::shared_ptr<CardQueue> queue;
  Direction direction = Direction::host_to_card;
  u8* host = nullptr;
  u64 address = 0;
  u64 bytes = 0;     ///< more than 0
  u64 limit_ns = 0;  ///< from submit(), of the card's clock while it runs; 0: none
  /// Called once, by any thread and without a lock, when the device no longer touches anything of the
  /// request.
  void (*ended)(CardRequest& request) = nullptr;

  // How it ended.
  int error = 0;  ///< 0 or an errno
  u64 moved = 0;  ///< bytes
  u64 ns = 0;     ///< from its first burst to its end, by the card's clock; 0: it has never begun

 private:
  friend class ModelCard;
  enum class State : u8 { fresh, queued, done, ended };
  State state_ = State::fresh;
  bool begun_ = false, in_burst_ = false;
  int verdict_ = 0;  // what it ends with after the burst in which it was abandoned
  u64 limit_ = 0;    // bytes after which an injected error ends it
  u64 source_ = 0;   // the address that is really used
  u64 piece_ = 0;    // bytes since the ring was last empty of it
  u64 begin_ns_ = 0, end_ns_ = 0;
  model::InjectedFault injected_;
  Agenda<CardEvent>::Key done_, deadline_;
  CardRequest *before_ = nullptr, *after_ = nullptr;  // all that have not ended
};

/// One direction of a queue pair.
struct CardRing {
  CardQueue* queue = nullptr;
  Direction direction = Direction::host_to_card;
  u64 capacity = 0;  ///< bytes that its descriptors move
  u64 time_ns = 0;   ///< when its next burst may start
  bool busy = false;
  std::deque<CardRequest*> waiting;  ///< the first one is being moved
  Agenda<CardEvent>::Key next;
};

struct CardQueueShape {
  u32 index = 0;    ///< of the hardware's queues, below kMaxQueuePairs
  u32 channel = 0;  ///< 0 or 1
  u32 h2c_ring = 0, c2h_ring = 0;
  u32 aperture = 0;
};

/// A queue pair of the card. Made stopped.
class CardQueue {
 public:
  explicit CardQueue(const CardQueueShape& shape);
  [[nodiscard]] const CardQueueShape& shape() const { return shape_; }

 private:
  friend class ModelCard;
  [[nodiscard]] CardRing& ring(Direction d) { return rings_[d == Direction::host_to_card ? 0 : 1]; }
  [[nodiscard]] bool busy() const { return rings_[0].busy || rings_[1].busy; }
  const CardQueueShape shape_;
  bool started_ = false;
  std::array<CardRing, 2> rings_;
  std::vector<std::function<void()>> when_quiet_;
};

/// Every function may be called by any thread, but not from CardRequest::ended.
class ModelCard {
 public:
  explicit ModelCard(const CardConfig& config);
  /// Ends what is left with ENODEV.
  ~ModelCard();
  ModelCard(const ModelCard&) = delete;
  ModelCard& operator=(const ModelCard&) = delete;

  /// A descriptor moves at most a page, a burst at most this.
  static constexpr u64 kBurstBytes = 1 << 20;

  void start(CardQueue& queue);
  /// Queued requests end with ENXIO. `quiet` is called, perhaps at once, when the device touches nothing of
  /// them any more.
  void stop(CardQueue& queue, std::function<void()> quiet);
  /// Queues the requests, all before the card looks at one of them. A queue that is stopped ends its
  /// requests with ENXIO. Nothing is checked here: CardMemory::reaches() must have said yes.
  void submit(std::span<CardRequest* const> requests);
  /// Ends the request with `error`, if it has not ended yet; at once, or after the burst it is in.
  void abandon(CardRequest& request, int error);
  /// The card goes away: everything ends with ENODEV.
  void remove();
  [[nodiscard]] bool gone() const { return presence_.gone(); }

  [[nodiscard]] u64 now() const { return clock_.now(); }
  [[nodiscard]] const CardConfig& config() const { return config_; }
  [[nodiscard]] CardMemory& memory() { return memory_; }
  [[nodiscard]] nlohmann::ordered_json counters() const;
  /// Bytes moved by all transfers until now.
  [[nodiscard]] u64 bytes_moved() const;

 private:
  using Lock = std::unique_lock<std::mutex>;
  using Ended = std::vector<CardRequest*>;
  struct Counters {
    u64 completed = 0, failed = 0, drained = 0, timed_out = 0, cancelled = 0;
    std::array<std::array<u64, 2>, 2> bytes{};  // by channel and direction
    u64 image_bytes = 0, bursts = 0;
  };
  /// For how long requests of one direction have been under way, by the card's clock.
  class Activity {
   public:
    void begins(u64 at) {
      if (running_++ == 0) since_ = std::max(at, until_);
    }
    void ends(u64 at) {
      until_ = std::max(until_, at);
      if (--running_ == 0) ns_ += until_ - std::min(since_, until_);
    }
    [[nodiscard]] u64 ns(u64 now) const { return ns_ + (running_ != 0 ? std::max(now, since_) - since_ : 0); }

   private:
    u32 running_ = 0;
    u64 since_ = 0, until_ = 0, ns_ = 0;
  };

  /// Time in which no thread looked, because this process did not run, counts towards no deadline. With the
  /// lock.
  void note_away();
  void work(u32 thread);
  void end_threads();
  void sleep(u32 thread, u64 until_ns, Lock& lock);
  /// Wakes a thread if something is due before any that sleeps would look.
  void pass_on();
  void handle(const CardEvent& event, Lock& lock, Ended& ended);
  void begin(CardRequest& request, const CardRing& ring);
  void move(CardRing& ring, Lock& lock, Ended& ended);
  void moved_all(CardRequest& request, Ended& ended);
  void enqueue(CardRequest& request, Ended& ended);
  void schedule(CardRing& ring);
  void give_up(CardRequest& request, int error, Ended& ended);
  void retire(CardRequest& request, int error, Ended& ended);
  void remove(Ended& ended);
  [[nodiscard]] u64 burst(const CardRequest& request, const CardRing& ring) const;
  void copy(CardRequest& request, u64 bytes) const;
  static void report(Ended& ended);

  const CardConfig config_;
  CardMemory memory_;
  CardRates rates_;
  CardClock clock_;
  RunningTime running_{wall_ns()};
  model::FaultInjector faults_;
  model::Presence presence_;
  u64 burst_bytes_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<u64> sleeps_until_;  // of each thread; 0: it is awake
  Agenda<CardEvent> agenda_;
  CardRequest* all_ = nullptr;  // that have not ended
  u32 working_ = 0;             // threads that copy, without the lock
  bool stopping_ = false;
  std::array<std::array<u64, 2>, kMaxQueuePairs> serials_{};  // the number of the next request, for faults
  Counters counters_;
  std::array<Activity, 2> active_;
  JoinedThreads threads_;
};

}  // namespace doorbell::qdma
