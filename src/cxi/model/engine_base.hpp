// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The host's view of the device's engine: its counts, and how set-up calls reach it.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <span>

#include "cxi/model/config.hpp"
#include "cxi/model/engine_report.hpp"
#include "cxi/model/engine_rule.hpp"
#include "cxi/model/objects.hpp"
#include "model/shared.hpp"

namespace doorbell::cxi {

struct ModelShared : model::Shared<ModelConfig> {
  const u32 nid;
  ModelShared(const ModelConfig& c, u32 own_nid) : Shared(c), nid(own_nid) {}
  [[nodiscard]] EngineRule engine_rule() const {
    return {.nid = nid,
            .pid_bits = config.pid_bits,
            .overhead = config.overhead,
            .jitter_ns = config.jitter_ns,
            .doorbell_ns = config.doorbell_ns,
            .window = config.window,
            .max_list_entries = config.max_list_entries,
            .nack = config.nack,
            .slow_writer_ns = config.slow_writer_ns,
            .stuck_read = config.stuck_read,
            .pte_disable = config.pte_disable,
            .seed = config.seed,
            .limited = link.limited(),
            .faulty = faults.active(),
            .rendezvous_get = config.rendezvous_get == ModelConfig::RendezvousGet::nic};
  }
};

/// How many of each object there can be at a time.
struct MostObjects {
  u32 transmit_queues, target_queues, event_queues, counters, entries, memories;
  template <class Room>
  [[nodiscard]] static constexpr MostObjects of() {
    return {Room::kTransmitQueues, Room::kTargetQueues, Room::kEventQueues,
            Room::kCounters,       Room::kEntries,      Room::kMemories};
  }
};

class EngineBase {
 public:
  EngineBase() = default;
  virtual ~EngineBase() = default;
  EngineBase(const EngineBase&) = delete;
  EngineBase& operator=(const EngineBase&) = delete;

  /// Carries out a set-up call between two rounds of the engine and waits for it. One caller at a time.
  virtual void change(const Change& c) = 0;
  /// Makes the counts those of now. One caller at a time, which makes no change meanwhile.
  virtual void refresh() {}
  /// Waits for the end of a round. Engines in a kernel have none.
  [[nodiscard]] virtual EntryReport entry(u32) { return {}; }
  /// The offsets of a portals entry's unexpected messages from number `first` on, as far as they find room;
  /// and how many messages there are. Waits as entry() does.
  [[nodiscard]] virtual u32 unexpected(u32, u32, std::span<u64>) { return 0; }
  /// Does one round, for an engine without a thread of its own; true if there was work.
  virtual bool poll() { return false; }

  [[nodiscard]] virtual MostObjects most() const = 0;
  [[nodiscard]] virtual const EngineCounters& counters() const = 0;
  [[nodiscard]] virtual u64 dma_faults() const { return 0; }
};

/// Counts of the device so far, by name. Refreshes the engine's counts.
[[nodiscard]] nlohmann::ordered_json counters_of(EngineBase& engine, const ModelShared& shared);

}  // namespace doorbell::cxi
