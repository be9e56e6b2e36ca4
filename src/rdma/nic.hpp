// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// An RDMA NIC from its user's side: registered memory, queue pairs, their connection. Each back end (model,
// verbs, mlx5dv) implements it; all code above is the same for all.
#pragma once

#include <doorbell/address_space.hpp>
#include <doorbell/rdma/queue_pair.hpp>
#include <doorbell/rdma/types.hpp>
#include <doorbell/region.hpp>

#include <array>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rdma/vendors.hpp"
#include "rma/port.hpp"

namespace doorbell::rdma {

/// The verbs name for registered memory.
using MemoryRegion = RegisteredMemory;

/// The address of a queue pair. The two ends of a connection exchange their addresses.
struct QueuePairAddress {
  u32 qpn = 0;
  u32 psn = 0;
  u32 lid = 0;
  u32 mtu = 1024;  ///< active MTU of the port: the smaller of two is used
  std::array<u8, 16> gid{};
};

/// The parameters with which a queue pair is created.
struct QueuePairShape {
  u32 sq_requests = 128;
  u32 rq_requests = 128;
  u32 max_inline = 0;  ///< bytes; the back end may grant more
  Place queue_memory = Place::pageable;
  bool signal_all = false;
};

/// A queue pair with its own send CQ and receive CQ. Set-up calls from one thread at a time.
class QueuePairObject {
 public:
  virtual ~QueuePairObject() = default;
  /// The address that the peer needs to know.
  [[nodiscard]] virtual QueuePairAddress address() const = 0;
  /// RESET -> INIT: receives may be posted from now on.
  virtual void initialise(const ConnectionOptions& options) = 0;
  /// INIT -> RTR -> RTS, to `peer` (which may be this very queue pair).
  virtual void connect(const QueuePairAddress& peer, const ConnectionOptions& options) = 0;
  /// Any state -> RESET: rings are emptied, completions thrown away; initialise() and connect() again.
  virtual void reset() = 0;
  /// Any state -> ERR: everything outstanding is flushed.
  virtual void fail() = 0;
  [[nodiscard]] virtual QpState state() const = 0;
  /// The addresses of the queues, for back ends whose queues the initiator writes itself. Throws Error if
  /// `initiator` cannot reach the queues.
  [[nodiscard]] virtual QueuePairMemory memory(Initiator initiator) = 0;
  [[nodiscard]] virtual u32 max_inline() const = 0;
};

/// Both ends of a connection. `peer` is null if the connection leads to the same queue pair or to another
/// process.
struct ConnectedEnds {
  QueuePairObject* own = nullptr;
  QueuePairObject* peer = nullptr;
};

/// The states of freshly connected queue pairs whose rings the initiator writes itself.
[[nodiscard]] std::vector<OpState<QueuePairState>> direct_states(const std::vector<ConnectedEnds>& ends,
                                                                 Initiator initiator);

struct NicLimits : Limits {
  u32 active_mtu = 4096;
};

class Nic {
 public:
  virtual ~Nic() = default;
  /// "model", "emulated" or "hardware".
  [[nodiscard]] virtual std::string kind() const = 0;
  /// The device's full name, for what the user wrote.
  [[nodiscard]] virtual std::string name() const = 0;
  [[nodiscard]] virtual Provider provider() const = 0;
  [[nodiscard]] virtual NicLimits limits() const = 0;

  /// Memory that this device can register at `place`.
  [[nodiscard]] virtual Region allocate(Place place, u64 bytes) = 0;
  [[nodiscard]] virtual std::unique_ptr<MemoryRegion> register_memory(const Region& region, u32 access) = 0;
  [[nodiscard]] virtual std::unique_ptr<QueuePairObject> create_queue_pair(const QueuePairShape& shape) = 0;

  /// Bytes of host memory that such a queue pair takes: rings, records, and what its initiator keeps. An
  /// estimate if a driver lays out the queues.
  [[nodiscard]] virtual u64 queue_pair_bytes(const QueuePairShape& shape) const;

  /// Makes a runner for queue pairs in their present state. The default is for queue pairs whose rings, in
  /// the provider's format, the initiator writes itself (QueuePairObject::memory()).
  [[nodiscard]] virtual std::unique_ptr<OpRunner> runner(const std::vector<ConnectedEnds>& ends,
                                                         const DriverShape& driver);
  /// Drives one freshly connected queue pair from a CPU thread; it must outlive the result.
  [[nodiscard]] virtual std::unique_ptr<BurstQueue> burst_queue(QueuePairObject& queue_pair);
  /// A word that stays 1 while the device is there, in the initiator's addresses; null if the device has
  /// none.
  [[nodiscard]] virtual const u32* alive(Initiator) { return nullptr; }
  /// The device's own counters, for the Result; null if it has none.
  [[nodiscard]] virtual nlohmann::ordered_json counters() { return nullptr; }
};

}  // namespace doorbell::rdma
