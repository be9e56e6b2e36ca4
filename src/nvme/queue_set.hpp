// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The queue pairs of one run with everything they need: data slots, PRP lists, bookkeeping.
#pragma once

#include <doorbell/nvme/controller.hpp>
#include <doorbell/nvme/io_types.hpp>

#include <vector>

namespace doorbell::nvme {

/// How the queues are laid out; the same for every queue.
struct QueueShape {
  u32 queues = 1;
  u32 entries = 1024;
  u32 window = 1;
  u64 io_bytes = 512;
  Place sq = Place::pageable;
  Place cq = Place::pageable;
  Place data = Place::pageable;
  Initiator initiator = Initiator::cpu;
  u64 first = 0;           ///< first position of queue 0
  u64 span = 1;            ///< positions a queue
  u64 unwritten_bits = 0;  ///< positions a queue for which refused writes are remembered
};

class QueueSet {
 public:
  /// Creates queues 1..shape.queues on `controller`, which must outlive the set.
  QueueSet(Controller& controller, const QueueShape& shape);

  /// Addresses for the shape's initiator; the caller sets `count` and `written` for each phase.
  [[nodiscard]] std::vector<IoQueue>& queues() { return io_; }
  void forget_refused_writes();
  /// After this no completion comes that has not come.
  void delete_submission_queues();

 private:
  std::vector<IoQueuePair> pairs_;
  std::vector<Mapped> data_;
  std::vector<Mapped> lists_;
  std::vector<Region> unwritten_;
  std::vector<IoQueue> io_;
};

}  // namespace doorbell::nvme
