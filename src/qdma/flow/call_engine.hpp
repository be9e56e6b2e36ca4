// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// An engine begins transfer calls on one descriptor without waiting for them: an io_uring, or a thread each.
#pragma once

#include <doorbell/qdma/card.hpp>

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "qdma/driver.hpp"

namespace doorbell::qdma {

/// A transfer call that has begun. It stays at its address until the engine has ended it.
struct PendingCall {
  Transfer structure;
  u64 tag = 0;          ///< unlike that of every other call in flight in this process
  u64 deadline_ns = 0;  ///< from the beginning; 0: the driver's own limit
  std::atomic<bool> cancelled{false};
  CallResult result;
  std::array<SubResult, kMaxSubTransfers> parts{};
};

/// Thread rule: any thread, but drive() in one thread at a time.
class CallEngine {
 public:
  /// Called once for each call that has begun, by any thread, perhaps before begin() returns. It may begin
  /// another call.
  using Ended = std::function<void(const std::shared_ptr<PendingCall>&)>;
  /// Nothing is in flight any more, or what is was abandoned.
  virtual ~CallEngine() = default;
  /// "io_uring" or "threads".
  [[nodiscard]] virtual std::string name() const = 0;
  void set_ended(Ended ended) { ended_ = std::move(ended); }
  /// Returns 0, or an errno: then the call has not begun.
  [[nodiscard]] virtual int begin(std::shared_ptr<PendingCall> call) = 0;
  virtual void cancel(PendingCall& call) = 0;
  /// True if calls end only while a thread is in drive().
  [[nodiscard]] virtual bool driven() const = 0;
  /// Waits until a call may have ended, or until `until_ns`.
  virtual void drive(u64 until_ns) { static_cast<void>(until_ns); }
  /// The caller does not wait any more: no Ended is called from now on, and what the calls need stays until
  /// they end.
  virtual void abandon() = 0;

 protected:
  Ended ended_;
};

/// A thread for each call in flight, which waits in Driver::call().
[[nodiscard]] std::unique_ptr<CallEngine> thread_engine(std::shared_ptr<Driver> driver, int fd);

/// The environment's DOORBELL_QDMA_SUBMIT: "io_uring" or "threads"; empty: io_uring where it works. Throws
/// Error for another value.
[[nodiscard]] std::string engine_wanted();

}  // namespace doorbell::qdma
