// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A device as one-sided operations see it: memory that it may use, queues, whoever drives them. A path that
// moves data by put and get (RDMA, Cassini) implements it once; session, plan, bench and command options
// above it are the same for all.
#pragma once

#include <doorbell/initiator.hpp>
#include <doorbell/region.hpp>
#include <doorbell/rma/op_types.hpp>

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "measure/runner.hpp"
#include "measure/tally.hpp"
#include "model/use.hpp"

namespace doorbell::gpu {
class Gpu;
}

namespace doorbell::rma {

using OpRunner = measure::Runner<OpPhase, OpQueue>;

/// How the two ends of each connection lie.
enum class Ends {
  self,    ///< the queue leads back to this process's own memory by itself
  pair,    ///< two queues of this process
  remote,  ///< the other end is in another process
};

/// Memory that the device may use. Taken away from it on destruction; the region must live until then.
class RegisteredMemory {
 public:
  virtual ~RegisteredMemory() = default;
  [[nodiscard]] u64 iova() const { return iova_; }
  [[nodiscard]] u32 lkey() const { return lkey_; }
  [[nodiscard]] u32 rkey() const { return rkey_; }

 protected:
  u64 iova_ = 0;
  u32 lkey_ = 0;
  u32 rkey_ = 0;
};

/// Who may use registered memory.
enum class Reach {
  own,     ///< requests of this end
  others,  ///< and operations of the other end: puts, gets, atomics
};

/// What each queue of a session is created with.
struct QueueShape {
  u32 requests = 128;
  u32 receives = 128;
  u32 max_inline = 0;  ///< bytes; the device may grant more
  Place queue_memory = Place::pageable;
};

/// Who drives queues, and with how much.
struct DriverShape {
  Initiator initiator = Initiator::cpu;
  std::shared_ptr<gpu::Gpu> gpu = {};  ///< Initiator::gpu
  u32 threads = 1;                     ///< Initiator::cpu
  u32 window = 1;                      ///< operations in flight on each
  bool ping_pong = false;              ///< both ends send: PingPong instead of OpLoop
};

/// The queues of one session, one a connection. Set-up calls from one thread at a time.
class QueueSet {
 public:
  virtual ~QueueSet() = default;
  /// Queues that an error has stopped take operations again, from the beginning. Runners made before are of
  /// no use then.
  virtual void recover() = 0;
  /// Drives the queues as they stand now. Throws Error where the initiator cannot reach them.
  [[nodiscard]] virtual std::unique_ptr<OpRunner> runner(const DriverShape& driver) = 0;
};

/// Limits of the device, for checks before anything is created.
struct Limits {
  u32 max_requests = 32768;  ///< of one queue
  u32 max_queues = 1024;
  u32 max_inline = 0;
  u32 max_message = kMaxMessage;
  bool atomics = true;
  bool gpu_memory = false;     ///< can register GPU memory
  bool gpu_initiator = false;  ///< a GPU can reach its queues and doorbells
};

class Port {
 public:
  virtual ~Port() = default;
  /// "model", "emulated" or "hardware".
  [[nodiscard]] virtual std::string kind() const = 0;
  /// What the user called it, resolved.
  [[nodiscard]] virtual std::string name() const = 0;
  [[nodiscard]] virtual Limits limits() const = 0;

  /// Memory that this device can register at `place`.
  [[nodiscard]] virtual Region allocate(Place place, u64 bytes) = 0;
  [[nodiscard]] virtual std::unique_ptr<RegisteredMemory> register_memory(const Region& region,
                                                                          Reach reach) = 0;
  /// Queues for `count` connections; with Ends::self and Ends::pair they are connected.
  [[nodiscard]] virtual std::unique_ptr<QueueSet> create_queues(u32 count, Ends ends,
                                                                const QueueShape& shape) = 0;
  /// Bytes of host memory that the queues of one connection take: rings, records, what the initiator keeps.
  /// An estimate where a driver lays them out.
  [[nodiscard]] virtual u64 queue_bytes(Ends ends, const QueueShape& shape) const = 0;

  /// What a completion's status is called.
  [[nodiscard]] virtual measure::StatusName status_names() const = 0;
  /// A word that stays 1 while the device is there, in the initiator's addresses; null where nothing says so.
  [[nodiscard]] virtual const u32* alive(Initiator) { return nullptr; }
  /// What the device itself counted, for the Result; null when it cannot tell.
  [[nodiscard]] virtual nlohmann::ordered_json counters() { return nullptr; }
};

/// What a device is opened for.
struct PortRequest {
  std::string spec = {};
  std::shared_ptr<gpu::Gpu> gpu = {};
  model::Use use = {};
};

using OpenPort = std::function<std::unique_ptr<Port>(const PortRequest&)>;

}  // namespace doorbell::rma
