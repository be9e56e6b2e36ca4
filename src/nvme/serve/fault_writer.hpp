// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Names each injected fault in a log, whatever the log's pace is.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "model/fault_injector.hpp"
#include "service/queued_log.hpp"

namespace doorbell::nvme {

class FaultWriter final : public model::FaultLog {
 public:
  /// Faults that wait for the log at most; those that come then are only counted.
  static constexpr std::size_t kMostWaiting = std::size_t{1} << 20;

  explicit FaultWriter(service::QueuedLog& log);
  /// Writes what waits, for three seconds at most.
  ~FaultWriter() override;
  FaultWriter(const FaultWriter&) = delete;
  FaultWriter& operator=(const FaultWriter&) = delete;

  void injected(model::Fault fault, u64 queue, u64 serial) noexcept override;
  /// Given to the log so far, and lost for want of room.
  [[nodiscard]] u64 written() const;
  [[nodiscard]] u64 lost() const;

 private:
  struct Entry {
    model::Fault fault;
    u64 queue, serial;
  };
  void run();

  service::QueuedLog& log_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Entry> waiting_;
  u64 written_ = 0, lost_ = 0;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace doorbell::nvme
