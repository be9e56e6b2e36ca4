// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A NIC as one-sided operations see it. Its queue pairs are connected to themselves, to each other, or to
// those of another process.
#pragma once

#include "rdma/nic_device.hpp"
#include "rma/names.hpp"

namespace doorbell::rdma {

/// The queue pairs of one session.
class NicQueues final : public QueueSet {
 public:
  /// Connects the queue pairs for Ends::self and Ends::pair.
  NicQueues(NicDevice& nic, u32 count, Ends ends, const QueueShape& shape,
            const ConnectionOptions& connection);

  void recover() override;
  [[nodiscard]] std::unique_ptr<OpRunner> runner(const DriverShape& driver) override;
  /// Both ends of each connection.
  [[nodiscard]] std::vector<ConnectedEnds> ends() const;

  /// For Ends::remote: addresses() is what the other process needs to know; connect() takes what it sent.
  [[nodiscard]] std::vector<QueuePairAddress> addresses() const;
  void connect(const std::vector<QueuePairAddress>& peers);

 private:
  struct Connection {
    std::unique_ptr<QueuePairObject> own;
    std::unique_ptr<QueuePairObject> peer;
  };
  void connect_here(const Connection& c);

  NicDevice& nic_;
  ConnectionOptions options_;
  std::vector<Connection> connections_;
};

class NicPort final : public Port {
 public:
  /// `nic` must outlive this object.
  explicit NicPort(NicDevice& nic, const ConnectionOptions& connection = {})
      : nic_(nic), connection_(connection) {}
  explicit NicPort(std::unique_ptr<NicDevice> nic, const ConnectionOptions& connection = {})
      : owned_(std::move(nic)), nic_(*owned_), connection_(connection) {}

  [[nodiscard]] std::string kind() const override { return nic_.kind(); }
  [[nodiscard]] std::string name() const override { return nic_.name(); }
  [[nodiscard]] Limits limits() const override { return nic_.limits(); }
  [[nodiscard]] Region allocate(Place place, u64 bytes) override { return nic_.allocate(place, bytes); }
  [[nodiscard]] std::unique_ptr<RegisteredMemory> register_memory(const Region& region, Reach reach) override;
  [[nodiscard]] std::unique_ptr<QueueSet> create_queues(u32 count, Ends ends,
                                                        const QueueShape& shape) override;
  [[nodiscard]] u64 queue_bytes(Ends ends, const QueueShape& shape) const override;
  [[nodiscard]] measure::StatusName status_names() const override { return status_name; }
  [[nodiscard]] const u32* alive(Initiator initiator) override { return nic_.alive(initiator); }
  [[nodiscard]] nlohmann::ordered_json counters() override { return nic_.counters(); }

  /// The queues that create_queues() made last, as long as they live.
  [[nodiscard]] NicQueues& queues() { return *queues_; }

 private:
  std::unique_ptr<NicDevice> owned_;
  NicDevice& nic_;
  ConnectionOptions connection_;
  NicQueues* queues_ = nullptr;
};

}  // namespace doorbell::rdma
