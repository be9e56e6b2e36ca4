// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The service of a model controller's I/O queues, as its admin queue sees it: threads of the CPU
// (thread_service.hpp) or a kernel on a GPU (kernel_service.hpp).
#pragma once

#include <doorbell/address_space.hpp>

#include <functional>

#include "nvme/model/io_totals.hpp"

namespace doorbell::nvme {

/// A queue as an admin command describes it. A completion queue has no `cqid`.
struct QueueRequest {
  u16 qid = 0;
  u16 cqid = 0;
  u32 entries = 0;
  Iova iova = 0;
  int vector = -1;    ///< of a completion queue's interrupts; -1: none
  u64 doorbell = 0;   ///< where its doorbell lies in the BAR
  Iova shadow = 0;    ///< its word in the shadow doorbell buffer; 0: none
  Iova eventidx = 0;  ///< its word in the event index buffer; 0: none
};

/// Set-up only. Thread rule: the admin queue's thread calls everything but totals(), which any thread may
/// call.
class IoService {
 public:
  virtual ~IoService() = default;
  virtual void add_cq(const QueueRequest& q) = 0;
  virtual void add_sq(const QueueRequest& q) = 0;
  /// Ends the queue's commands with "aborted: SQ deletion", then forgets the queue.
  virtual void delete_sq(u16 qid, u16 cqid) = 0;
  virtual void delete_cq(u16 qid) = 0;
  /// From now on the doorbell of a queue that exists lies in shadow doorbell buffers too, where its value is
  /// already. With `cqid` it is a submission queue.
  virtual void ring_in_memory(const QueueRequest& q) = 0;
  /// True if the command was still outstanding and has been completed as aborted.
  [[nodiscard]] virtual bool abort(u16 sqid, u16 cqid, u16 cid) = 0;
  /// Controller reset: drops everything outstanding without a completion.
  virtual void drop_all() = 0;
  /// Faults have been switched on, where there were none. A kernel has those that it was started with.
  virtual void track() {}
  /// Runs `work` while no command is executed and no completion is written; then finds the memory of every
  /// queue anew. False: this service cannot. The admin queue's thread, or a thread that is none of the
  /// device's while that one waits.
  [[nodiscard]] virtual bool pause(const std::function<void()>& work) = 0;
  /// Runs `change`, which maps and unmaps, while no memory is accessed; then finds the memory of every queue
  /// anew. A command may be in the middle of waiting for another process. False: this service cannot. Any
  /// thread that is none of the device's; one at a time.
  [[nodiscard]] virtual bool change_memory(const std::function<void()>& change) = 0;
  [[nodiscard]] virtual IoTotals totals() = 0;
};

}  // namespace doorbell::nvme
