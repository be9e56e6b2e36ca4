// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// An RDMA NIC as its user sees it: registered memory, queue pairs, their connection. One implementation
// a back end (model, verbs, mlx5dv); everything above is the same for all.
#pragma once

#include <doorbell/address_space.hpp>
#include <doorbell/initiator.hpp>
#include <doorbell/rdma/format.hpp>

#include <array>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "measure/tally.hpp"
#include "rdma/op_runner.hpp"

namespace doorbell::rdma {

/// Access flags of memory and queue pairs; the numbers are those of ibv_access_flags.
namespace access {
inline constexpr u32 local_write = 1, remote_write = 2, remote_read = 4, remote_atomic = 8;
inline constexpr u32 all = local_write | remote_write | remote_read | remote_atomic;
}  // namespace access

/// Queue pair states; the numbers are those of ibv_qp_state.
enum class QpState : u32 { reset = 0, init = 1, rtr = 2, rts = 3, sqd = 4, sqe = 5, error = 6 };

/// Whose vendor's queues; verbs: whatever libibverbs posts to.
/// cxi: Cassini's command queues in the shape of queue pairs (src/cxi/rma_device.hpp).
enum class Provider { mlx5, bnxt, ionic, ernic, verbs, cxi };
[[nodiscard]] std::string_view name(Provider p);
/// Those of `doorbell rdma`, in order.
[[nodiscard]] const std::vector<std::string>& provider_names();

/// Memory that the NIC may use. Deregistered on destruction; the region must live until then.
class MemoryRegion {
 public:
  virtual ~MemoryRegion() = default;
  [[nodiscard]] u64 iova() const { return iova_; }
  [[nodiscard]] u32 lkey() const { return lkey_; }
  [[nodiscard]] u32 rkey() const { return rkey_; }

 protected:
  u64 iova_ = 0;
  u32 lkey_ = 0;
  u32 rkey_ = 0;
};

/// What the two ends of a connection tell each other.
struct Endpoint {
  u32 qpn = 0;
  u32 psn = 0;
  u32 lid = 0;
  u32 mtu = 1024;  ///< active MTU of the port: the smaller of two is used
  std::array<u8, 16> gid{};
};

/// Memory that the other end may reach.
struct MemoryKey {
  u64 address = 0;
  u32 rkey = 0;
  u64 bytes = 0;
};

/// What a queue pair is created with.
struct QueuePairShape {
  u32 sq_requests = 128;
  u32 rq_requests = 128;
  u32 max_inline = 0;  ///< bytes; the back end may grant more
  Place queue_memory = Place::pageable;
  bool signal_all = false;
};

/// What it is connected with. Codes are those of the verbs attributes.
struct ConnectionOptions {
  u32 mtu = 0;             ///< 256..4096; 0: the smaller of the two ports' active MTUs
  u32 timeout = 14;        ///< acknowledgement time-out 4.096 us * 2^timeout; 0: none
  u32 retry_count = 7;     ///< 0..7
  u32 rnr_retry = 7;       ///< 0..7; 7: for ever
  u32 min_rnr_timer = 12;  ///< code 0..31; 12: 0.64 ms
  u32 max_rd_atomic = 16;  ///< outstanding reads and atomics as requester and as responder
  u32 access = access::all;
};

/// A queue pair with its own send CQ and receive CQ. Set-up calls from one thread at a time.
class QueuePairObject {
 public:
  virtual ~QueuePairObject() = default;
  /// What the peer needs to know.
  [[nodiscard]] virtual Endpoint endpoint() const = 0;
  /// RESET -> INIT: receives may be posted from now on.
  virtual void initialise(const ConnectionOptions& options) = 0;
  /// INIT -> RTR -> RTS, to `peer` (which may be this very queue pair).
  virtual void connect(const Endpoint& peer, const ConnectionOptions& options) = 0;
  /// Any state -> RESET: rings are emptied, completions thrown away; initialise() and connect() again.
  virtual void reset() = 0;
  /// Any state -> ERR: everything outstanding is flushed.
  virtual void fail() = 0;
  [[nodiscard]] virtual QpState state() const = 0;
  /// Where the queues lie, for back ends whose queues the initiator writes itself; throws Error where
  /// they cannot be reached by `initiator`.
  [[nodiscard]] virtual QueuePairMemory memory(Initiator initiator) = 0;
  [[nodiscard]] virtual u32 max_inline() const = 0;
};

/// Both ends of a connection; `peer` null for one that leads back to itself or away.
struct ConnectedEnds {
  QueuePairObject* own = nullptr;
  QueuePairObject* peer = nullptr;
};

/// Who drives connections, and with how much.
struct DriverShape {
  Initiator initiator = Initiator::cpu;
  std::shared_ptr<gpu::Gpu> gpu = {};  ///< Initiator::gpu
  u32 threads = 1;                     ///< Initiator::cpu
  u32 window = 1;                      ///< operations in flight on each
  bool ping_pong = false;              ///< both ends send: PingPong instead of OpLoop
};

/// Limits of the device, for checks before anything is created.
struct Limits {
  u32 max_requests = 32768;  ///< of one queue
  u32 max_queue_pairs = 1024;
  u32 max_inline = 0;
  u32 max_message = kMaxMessage;
  u32 active_mtu = 4096;
  bool atomics = true;
  bool gpu_memory = false;     ///< can register GPU memory
  bool gpu_initiator = false;  ///< a GPU can reach its queues and doorbells
};

class Device {
 public:
  virtual ~Device() = default;
  /// "model", "emulated" or "hardware".
  [[nodiscard]] virtual std::string kind() const = 0;
  /// What the user called it, resolved.
  [[nodiscard]] virtual std::string name() const = 0;
  [[nodiscard]] virtual Provider provider() const = 0;
  [[nodiscard]] virtual Limits limits() const = 0;

  /// Memory that this device can register at `place`.
  [[nodiscard]] virtual Region allocate(Place place, u64 bytes) = 0;
  [[nodiscard]] virtual std::unique_ptr<MemoryRegion> register_memory(const Region& region, u32 access) = 0;
  [[nodiscard]] virtual std::unique_ptr<QueuePairObject> create_queue_pair(const QueuePairShape& shape) = 0;

  /// Bytes of host memory that such a queue pair takes: rings, records, what its initiator keeps. An estimate
  /// where a driver lays them out.
  [[nodiscard]] virtual u64 queue_pair_bytes(const QueuePairShape& shape) const;

  /// Drives queue pairs that are no rings of a WireFormat, as they stand now; null where they are, and the
  /// initiator writes them itself (QueuePairObject::memory()).
  [[nodiscard]] virtual std::unique_ptr<OpRunner> runner(const std::vector<ConnectedEnds>&,
                                                         const DriverShape&) {
    return nullptr;
  }
  /// What a completion's status is called.
  [[nodiscard]] virtual measure::StatusName status_names() const;

  /// A word that stays 1 while the device is there, in the initiator's addresses; null where nobody tells.
  [[nodiscard]] virtual const u32* alive(Initiator) { return nullptr; }
  /// What the device itself counted, for the Result; null when it cannot tell.
  [[nodiscard]] virtual nlohmann::ordered_json counters() { return nullptr; }
};

}  // namespace doorbell::rdma
