// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The software Cassini as users of libcxi know it: services, numbers, names in networks, and the engine. It
// works on memory that its users bring.
#pragma once

#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "cxi/model/cassini.hpp"
#include "cxi/model/engine_base.hpp"
#include "model/device_thread.hpp"

namespace doorbell::cxi::dropin {

/// Whose VNIs and traffic classes an LNI may use.
struct Service {
  u32 id = 0;
  std::vector<u16> vnis;
  u32 traffic_classes = 0;  ///< a bit for each
  [[nodiscard]] bool allows(u64 vni) const;
};

/// LNIs at a time; LNI 0 stands for the driver.
inline constexpr u32 kMaxOwners = 64;

/// One Cassini for any number of clients, and what its objects (objects.hpp) need to know. Calls come from
/// one thread at a time.
struct Nic {
  /// Throws Error for an engine that is a kernel.
  explicit Nic(const ModelConfig& config);
  ~Nic();
  Nic(const Nic&) = delete;
  Nic& operator=(const Nic&) = delete;

  [[nodiscard]] const Service* service(u64 id) const;
  /// The first of `count` PIDs in a row that nobody has, from `wanted` on, or anywhere for kAnyPid. -1: none.
  [[nodiscard]] int free_pids(u32 vni, u64 wanted, u64 count) const;
  [[nodiscard]] u32 pid_count() const { return (1u << shared.config.pid_bits) - 1; }
  [[nodiscard]] nlohmann::ordered_json counts();

  /// A PID of a network.
  struct Pid {
    u32 reserved_by = 0;  ///< an LNI
    bool used = false;
  };

  ModelShared shared;
  SoftwareAddressSpace space;  ///< stays empty: the engine reaches all memory itself
  Region alive;
  std::unique_ptr<EngineBase> engine;
  std::vector<Service> services;
  Handles owners, transmit_queues, target_queues, event_queues, counters, entries, memories, domains;
  std::map<std::pair<u32, u32>, Pid> pids;          ///< by network and number
  std::set<std::tuple<u32, u32, u32>> entry_names;  ///< network, process, index
  Iova next_iova = u64{1} << 32;
  u32 queues_created = 0;
  std::unique_ptr<model::DeviceThread> thread;  ///< last, because the thread uses the engine
};

}  // namespace doorbell::cxi::dropin
