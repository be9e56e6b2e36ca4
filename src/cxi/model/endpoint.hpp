// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The objects that a process creates on the software Cassini. Each object registers itself with the engine,
// and its destructor removes it.
#pragma once

#include "cxi/model/cassini.hpp"

namespace doorbell::cxi {

class ModelEndpoint final : public Endpoint {
 public:
  ModelEndpoint(ModelCassini& nic, u16 vni);
  ~ModelEndpoint() override;

  [[nodiscard]] Address address() const override;
  [[nodiscard]] std::unique_ptr<MemoryDescriptor> map(const Region& region, Access access) override;
  [[nodiscard]] std::unique_ptr<EventQueueObject> create_event_queue(u64 bytes, Place place) override;
  [[nodiscard]] std::unique_ptr<CommandQueueObject> create_command_queue(
      const CommandQueueShape& shape) override;
  [[nodiscard]] std::unique_ptr<CounterObject> create_counter(bool writeback, Place place) override;
  [[nodiscard]] bool counts_on_request() const override { return nic_.counts_on_request(); }
  [[nodiscard]] std::unique_ptr<PortalsEntry> create_portals_entry(EventQueueObject& events, u32 pid_offset,
                                                                   bool matching) override;
  /// The name of the endpoint's network in an LCID command.
  [[nodiscard]] u32 lcid() const { return lcid_; }

 private:
  ModelCassini& nic_;
  u16 vni_;
  u32 pid_ = 0;
  u32 lcid_ = 0;
  u32 lac_ = 0;
  std::vector<u32> offsets_;  ///< of the portals entries that are mapped
  friend class ModelPortalsEntry;
};

}  // namespace doorbell::cxi
