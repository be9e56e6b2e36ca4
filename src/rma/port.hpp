// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A device as one-sided operations see it: memory that it may use, queues, and runners that drive the queues.
// A path that moves data by put and get (RDMA, Cassini) implements this once. The session, the setup of
// cells, the bench and the command options are the same for all such paths.
#pragma once

#include <doorbell/region.hpp>

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "measure/runner.hpp"
#include "measure/tally.hpp"
#include "model/use.hpp"
#include "rma/op_types.hpp"

namespace doorbell::gpu {
class Gpu;
}

namespace doorbell::rma {

using OpRunner = measure::Runner<OpPhase, OpQueue>;

/// Where the two ends of each connection are.
enum class Ends {
  self,    ///< the queue leads back to this process's own memory
  pair,    ///< both queues are in this process
  remote,  ///< the other end is in another process
  device,  ///< the queue leads to the device's own memory, which no process reaches but through its queues
};

/// Which requests may use registered memory.
enum class Reach {
  own,     ///< requests of this end
  others,  ///< and operations of the other end: puts, gets, atomics
};

/// The parameters with which each queue of a session is created.
struct QueueShape {
  u32 requests = 128;
  u32 receives = 128;
  u32 max_inline = 0;  ///< bytes; the device may grant more
  Place queue_memory = Place::pageable;
};

/// The driver of the queues: an initiator and its resources.
struct DriverShape {
  Initiator initiator = Initiator::cpu;
  std::shared_ptr<gpu::Gpu> gpu = {};  ///< Initiator::gpu
  u32 threads = 1;                     ///< Initiator::cpu
  u32 checkers = 0;        ///< measure::CpuRunner's threads or measure::GpuRunner's warps for payloads
  u32 window = 1;          ///< operations in flight on each
  bool ping_pong = false;  ///< both ends send: PingPong instead of OpLoop
};

/// The queues of one session, one for each connection. Set-up calls come from one thread at a time.
class QueueSet {
 public:
  virtual ~QueueSet() = default;
  /// Makes queues that an error has stopped take operations again, from their initial state. Runners made
  /// before are then useless.
  virtual void recover() = 0;
  /// Makes a runner for the queues in their present state. Throws Error if the initiator cannot reach them.
  [[nodiscard]] virtual std::unique_ptr<OpRunner> runner(const DriverShape& driver) = 0;
};

/// The operations so far by a device's own clock, of those that move bytes the way that is
/// measured.
struct DeviceTime {
  u64 bytes = 0;
  u64 ns = 0;  ///< for how long any of them was under way; 0: it has no clock of its own
};

class Port {
 public:
  virtual ~Port() = default;
  /// "model", "emulated" or "hardware".
  [[nodiscard]] virtual std::string kind() const = 0;
  /// The device's full name, for what the user wrote.
  [[nodiscard]] virtual std::string name() const = 0;
  [[nodiscard]] virtual Limits limits() const = 0;

  /// Memory that this device can register at `place`.
  [[nodiscard]] virtual Region allocate(Place place, u64 bytes) = 0;
  [[nodiscard]] virtual std::unique_ptr<RegisteredMemory> register_memory(const Region& region,
                                                                          Reach reach) = 0;
  /// Queues for `count` connections; with Ends::self and Ends::pair they are connected.
  [[nodiscard]] virtual std::unique_ptr<QueueSet> create_queues(u32 count, Ends ends,
                                                                const QueueShape& shape) = 0;
  /// Ends::device: where connection `number` of a session finds `bytes` bytes of the device's own memory.
  [[nodiscard]] virtual u64 device_memory(u32 number, u64 bytes);
  /// Reads the device's own memory, for an error's text: a transfer of its own, beside no queue's. False if
  /// it fails.
  [[nodiscard]] virtual bool read_device(u64 /*address*/, std::span<u8> /*to*/) { return false; }
  /// Bytes of host memory that the queues of one connection take: rings, records, and what the initiator
  /// keeps. An estimate if a driver lays out the queues.
  [[nodiscard]] virtual u64 queue_bytes(Ends ends, const QueueShape& shape) const = 0;

  /// The files that the queues of one connection keep open at most. An estimate.
  [[nodiscard]] virtual u64 queue_files(const QueueShape&) const { return 0; }

  /// The names of a completion's statuses.
  [[nodiscard]] virtual measure::StatusName status_names() const = 0;
  /// A word that stays 1 while the device is there, in the initiator's addresses; null if the device has
  /// none.
  [[nodiscard]] virtual const u32* alive(Initiator) { return nullptr; }
  /// Further facts that a cell states about the way to the device; null if there are none.
  [[nodiscard]] virtual nlohmann::ordered_json described() const { return nullptr; }
  /// The device's own counters, for the Result; null if it has none.
  [[nodiscard]] virtual nlohmann::ordered_json counters() { return nullptr; }
  /// Grows from call to call.
  [[nodiscard]] virtual DeviceTime device_time() { return {}; }
};

/// The purpose for which a device is opened.
struct PortRequest {
  std::string spec = {};
  std::shared_ptr<gpu::Gpu> gpu = {};
  model::Use use = {};
  double more_s = 0;  ///< that an operation on a model may take besides the limits of the options
};

using OpenPort = std::function<std::unique_ptr<Port>(const PortRequest&)>;

}  // namespace doorbell::rma
