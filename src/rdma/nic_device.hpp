// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// An RDMA NIC with what drives its queues for doorbell's own benches and streams. Each back end (model,
// verbs, mlx5dv) implements it; all code above is the same for all.
#pragma once

#include <doorbell/rdma/nic.hpp>

#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "rdma/vendors.hpp"
#include "rma/port.hpp"

namespace doorbell::rdma {

/// Both ends of a connection. `peer` is null if the connection leads to the same queue pair or to another
/// process.
struct ConnectedEnds {
  QueuePairObject* own = nullptr;
  QueuePairObject* peer = nullptr;
};

/// The states of freshly connected queue pairs whose rings the initiator writes itself.
[[nodiscard]] std::vector<OpState<QueuePairState>> direct_states(const std::vector<ConnectedEnds>& ends,
                                                                 Initiator initiator);

class NicDevice : public Nic {
 public:
  [[nodiscard]] virtual Provider provider() const = 0;
  [[nodiscard]] std::string_view provider_name() const override { return rdma::name(provider()); }

  /// Bytes of host memory that such a queue pair takes: rings, records, and what its initiator keeps. An
  /// estimate if a driver lays out the queues.
  [[nodiscard]] virtual u64 queue_pair_bytes(const QueuePairShape& shape) const;

  /// Makes a runner for queue pairs in their present state. The default is for queue pairs whose rings, in
  /// the provider's format, the initiator writes itself (QueuePairObject::memory()).
  [[nodiscard]] virtual std::unique_ptr<OpRunner> runner(const std::vector<ConnectedEnds>& ends,
                                                         const DriverShape& driver);
  /// Drives one freshly connected queue pair from a CPU thread; it must outlive the result.
  [[nodiscard]] virtual std::unique_ptr<BurstQueue> burst_queue(QueuePairObject& queue_pair);
  /// The device's own counters, for the Result; null if it has none.
  [[nodiscard]] virtual nlohmann::ordered_json counters() { return nullptr; }
};

}  // namespace doorbell::rdma
