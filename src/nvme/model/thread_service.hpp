// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The I/O queues of a model controller on CPU threads, each of which has an engine.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "nvme/model/io_engine.hpp"
#include "nvme/model/io_service.hpp"

namespace doorbell::nvme {

class ThreadService final : public IoService {
 public:
  /// `registers`: where the BAR lies. The first of the engines runs on the thread of the admin queue, the
  /// others have threads of their own.
  ThreadService(ModelShared& shared, const SoftwareAddressSpace& space, model::DmaAgent* agent,
                u8* registers);

  [[nodiscard]] std::span<const std::unique_ptr<IoEngine>> engines() const { return engines_; }

  void add_cq(const QueueRequest& r) override;
  void add_sq(const QueueRequest& r) override;
  void delete_sq(u16 qid, u16 cqid) override;
  void delete_cq(u16 qid) override;
  void ring_in_memory(const QueueRequest& q) override;
  [[nodiscard]] bool abort(u16 sqid, u16 cqid, u16 cid) override;
  void drop_all() override;
  void track() override;
  [[nodiscard]] bool pause(const std::function<void()>& work) override;
  [[nodiscard]] bool change_memory(const std::function<void()>& change) override;
  [[nodiscard]] IoTotals totals() override;

 private:
  [[nodiscard]] IoEngine& engine_of_cq(u16 cqid) { return *engines_[(cqid - 1u) % engines_.size()]; }
  void on_engine(IoEngine& engine, const std::function<void()>& work);
  void with_held(std::size_t next, const std::function<void()>& work);
  void with_memory_held(std::size_t next, const std::function<void()>& work);

  u8* registers_;
  std::vector<std::unique_ptr<IoEngine>> engines_;
};

}  // namespace doorbell::nvme
