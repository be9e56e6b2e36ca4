// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The I/O queues of a model controller inside a kernel on the GPU that the controller was opened with.
// Without a GPU, CPU threads run the same code: for tests.
#pragma once

#include <doorbell/gpu.hpp>

#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "memory/software_address_space.hpp"
#include "model/servers.hpp"
#include "nvme/model/io_engine.hpp"
#include "nvme/model/io_service.hpp"
#include "nvme/model/served_queues.hpp"

namespace doorbell::nvme {

class KernelService final : public IoService {
 public:
  /// `gpu` may be null: threads. `registers`: the BAR, which must outlive the service.
  KernelService(ModelShared& shared, SoftwareAddressSpace& space, std::shared_ptr<gpu::Gpu> gpu,
                const Region& registers);
  ~KernelService() override;

  void add_cq(const QueueRequest& r) override;
  void add_sq(const QueueRequest& r) override;
  void delete_sq(u16 qid, u16 cqid) override;
  void delete_cq(u16 qid) override;
  void ring_in_memory(const QueueRequest& q) override;
  [[nodiscard]] bool abort(u16 sqid, u16 cqid, u16 cid) override;
  void drop_all() override;
  [[nodiscard]] bool pause(const std::function<void()>&) override { return false; }
  [[nodiscard]] bool change_memory(const std::function<void()>&) override { return false; }
  [[nodiscard]] IoTotals totals() override;

  /// Passes on what the servers found wrong by themselves. Called all the time by the admin queue's thread.
  void collect();
  /// Where a GPU rings the doorbells of I/O queues, with the offsets of the BAR; null where it does so in the
  /// BAR.
  [[nodiscard]] u8* gpu_doorbells() const { return doorbells_.device(); }

 private:
  /// A queue in a server's memory, and what the host has set aside for it.
  struct Slot {
    u16 qid = 0;  ///< 0: free
    Region memory;
  };
  struct Server {
    std::vector<Slot> sqs{kServedQueues};
    std::vector<Slot> cqs{kServedQueues};
    u32 bad_doorbells = 0;  ///< that were passed on
    ServerCounts counted{};
  };

  [[nodiscard]] u32 server_of_cq(u16 cqid) const { return (cqid - 1u) % static_cast<u32>(servers_.size()); }
  [[nodiscard]] static u32 slot_of(std::vector<Slot>& slots, u16 qid);
  [[nodiscard]] u8* find(Iova iova, u64 bytes);
  [[nodiscard]] const u32* doorbell_word(const QueueRequest& r);
  void take_ranges(std::span<const SoftwareAddressSpace::Range> ranges);
  void start();
  /// A free slot, now the queue's, with memory for its server where commands are tracked.
  [[nodiscard]] u32 take_slot(std::vector<Slot>& slots, u16 qid, u64 tracking_bytes);
  /// Orders a queue's creation. Not `found`, its memory or doorbell: the status is fatal.
  void add(u32 server, const ServerOrder& order, bool found);
  /// The servers cannot be reached, and the controller's status is fatal from now on.
  void give_up();
  /// allocate(), or nothing after give_up().
  [[nodiscard]] Region set_aside(u64 bytes);
  /// Orders the queue's deletion, and gives back what was set aside for it.
  void remove(ServerOrder::Kind kind, u32 server, std::vector<Slot>& slots, u16 qid);
  /// Sends an order to one server, or to all, and waits until it is carried out. Returns the (last) result; 0
  /// from servers that do not answer, after which the controller's status is fatal.
  u32 order(u32 first, u32 count, const ServerOrder& order);
  void order_all(const ServerOrder& all) { (void)order(0, static_cast<u32>(servers_.size()), all); }
  [[nodiscard]] ServerAnswer& answer(u32 server) { return blocks_.answer<ServerAnswer>(server); }

  ModelShared& shared_;
  SoftwareAddressSpace& space_;
  model::Servers blocks_;
  const Region& registers_;
  Region doorbells_;
  Region media_;
  Region state_;  ///< everything else that the servers share
  u64 counts_at_ = 0;
  std::mutex order_mutex_;
  std::mutex mutex_;  ///< guards the members below
  std::vector<Server> servers_;
  std::vector<ServedRange> ranges_;
  Region range_tables_[2];  ///< the servers use one while the other is written
  u32 newest_table_ = 0;
};

}  // namespace doorbell::nvme
