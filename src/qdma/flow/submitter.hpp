// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Transfers in flight on one descriptor: each is a row of calls, one after the other. The same over every
// engine.
#pragma once

#include <doorbell/qdma/card.hpp>

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "qdma/card_state.hpp"
#include "qdma/flow/call_engine.hpp"
#include "system/clock.hpp"
#include "system/running_time.hpp"

namespace doorbell::qdma {

/// A transfer's part in what is queued on each channel, as long as it exists.
class LoadShare {
 public:
  LoadShare() = default;
  LoadShare(std::shared_ptr<CardState> card, Direction direction, std::array<u64, 2> bytes);
  ~LoadShare();
  LoadShare(LoadShare&& other) noexcept;
  LoadShare& operator=(LoadShare&& other) noexcept;

 private:
  void give_back() noexcept;
  std::shared_ptr<CardState> card_;
  u32 direction_ = 0;
  std::array<u64, 2> bytes_{};
};

/// A transfer as calls.
struct Work {
  std::vector<Transfer> calls;
  u64 limit_ns = 0;  ///< from its start; 0: the driver's own limit for each call
  u64 user = 0;
  LoadShare load;
};

/// Adds what a call has brought to its transfer's result.
void add_call(TransferResult& r, const Transfer& call, const CallResult& result,
              std::span<const SubResult> parts);

/// Any thread.
class Submitter {
 public:
  /// How long a back end that keeps deadlines may take to say so.
  static constexpr u64 kGraceNs = 1'000'000'000;
  /// The driver's own limit of a transfer.
  static constexpr u64 kDriverLimitNs = 10'000'000'000;

  Submitter(std::shared_ptr<Driver> driver, int fd);
  /// Cancels what is in flight and waits until it has ended, or until it should have long ago.
  ~Submitter();
  Submitter(const Submitter&) = delete;
  Submitter& operator=(const Submitter&) = delete;

  /// 0 or an errno.
  [[nodiscard]] int submit(Work work, TransferId& id);
  [[nodiscard]] u32 complete(std::span<TransferCompletion> out, double wait_s);
  void cancel(TransferId id);
  /// Submits and waits.
  [[nodiscard]] TransferResult run(Work work);
  [[nodiscard]] std::string engine() const { return engine_->name(); }

 private:
  struct Operation;
  using Lock = std::unique_lock<std::mutex>;
  [[nodiscard]] int start(Work work, bool waited_for, std::shared_ptr<Operation>& out);
  /// Begins the operation's next call. With the lock. 0 or an errno.
  [[nodiscard]] int begin_next(const std::shared_ptr<Operation>& op);
  void ended(const std::shared_ptr<PendingCall>& call);
  /// Makes the operation's completion, once.
  void report(Operation& op);
  /// Time in which nobody looked counts towards no deadline: the card may not have run either.
  void note_away(u64 now);
  /// Reports what should have ended long ago. Returns when the next one will be due.
  u64 report_overdue(u64 now);
  /// Waits until `done` or until `until_ns`.
  void wait(Lock& lock, u64 until_ns, const std::function<bool()>& done);

  std::shared_ptr<Driver> driver_;
  std::unique_ptr<CallEngine> engine_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<TransferId, std::shared_ptr<Operation>> in_flight_;  // until the device is quiet
  std::deque<TransferCompletion> completions_;
  TransferId next_id_ = 1;
  bool driving_ = false;
  RunningTime running_{wall_ns()};
};

}  // namespace doorbell::qdma
