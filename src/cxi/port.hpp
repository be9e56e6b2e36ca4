// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A Cassini as one-sided operations see it: puts and gets through PutQueue. Every connection leads back to
// this endpoint.
#pragma once

#include <doorbell/cxi/put_queue.hpp>

#include "cxi/backends.hpp"
#include "rma/bench.hpp"

namespace doorbell::cxi {

/// The queues of one session.
class PutQueues final : public rma::QueueSet {
 public:
  PutQueues(Endpoint& endpoint, u32 count, const rma::QueueShape& shape, bool restricted);

  /// Nothing to do here: start() creates used queues again.
  void recover() override {}
  [[nodiscard]] std::unique_ptr<rma::OpRunner> runner(const rma::DriverShape& driver) override;
  /// The state of each queue before its first operation; queues that were used are created again.
  [[nodiscard]] std::vector<PutQueueState> start(Initiator initiator);

 private:
  Endpoint& endpoint_;
  std::vector<std::unique_ptr<PutQueueObject>> queues_;
};

class CassiniPort final : public rma::Port {
 public:
  /// Opens the device of `request.spec` at the default service. `restricted`: restricted puts and gets, else
  /// unrestricted ones.
  CassiniPort(const rma::PortRequest& request, bool restricted);
  ~CassiniPort() override;

  [[nodiscard]] std::string kind() const override { return device_->kind(); }
  [[nodiscard]] std::string name() const override { return device_->name(); }
  [[nodiscard]] rma::Limits limits() const override;
  [[nodiscard]] Region allocate(Place place, u64 bytes) override {
    return device_->allocate(place, bytes, gpu_);
  }
  [[nodiscard]] std::unique_ptr<rma::RegisteredMemory> register_memory(const Region& region,
                                                                       rma::Reach reach) override;
  [[nodiscard]] std::unique_ptr<rma::QueueSet> create_queues(u32 count, rma::Ends ends,
                                                             const rma::QueueShape& shape) override;
  [[nodiscard]] u64 queue_bytes(rma::Ends ends, const rma::QueueShape& shape) const override;
  [[nodiscard]] measure::StatusName status_names() const override;
  [[nodiscard]] const u32* alive(Initiator initiator) override { return device_->alive(initiator); }
  [[nodiscard]] nlohmann::ordered_json counters() override { return device_->counters(); }
  /// Queues of this port's endpoint, for callers that drive them themselves.
  [[nodiscard]] std::unique_ptr<PutQueues> create_put_queues(u32 count, const rma::QueueShape& shape);

 private:
  std::shared_ptr<gpu::Gpu> gpu_;
  bool restricted_;
  std::unique_ptr<CassiniDevice> device_;
  std::unique_ptr<Endpoint> endpoint_;
  std::unique_ptr<PortalsTable> portals_table_;
};

/// The defaults for a bench of puts and gets: this path's names, on the first model. `restricted`: packets
/// that need no order.
[[nodiscard]] rma::BenchOptions bench_of_puts(bool restricted = true);

}  // namespace doorbell::cxi
