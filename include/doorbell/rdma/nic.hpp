// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// An RDMA NIC from its user's side: registered memory, queue pairs, their connection. The software NIC and
// the back ends for hardware are opened by the same names as on the command line. Host code only, for set-up;
// the initiator itself drives the queues (queue_pair.hpp, remote_operations.hpp).
//
// Ownership: a Nic outlives the objects that it made, and a Region what was made of it.
// Thread rule: set-up calls come from one thread at a time, whatever the initiators do meanwhile.
// Errors: all throw doorbell::Error; with ExitCode::absent something is not on this machine.
#pragma once

#include <doorbell/address_space.hpp>
#include <doorbell/rdma/queue_pair.hpp>

#include <array>
#include <memory>
#include <string>
#include <string_view>

namespace doorbell::rdma {

/// The verbs name for registered memory.
using MemoryRegion = RegisteredMemory;

/// The address of a queue pair. The two ends of a connection exchange their addresses.
struct QueuePairAddress {
  u32 qpn = 0;               ///< queue pair number, 24 bits
  u32 psn = 0;               ///< number of its first packet, 24 bits
  u32 lid = 0;               ///< of the port on InfiniBand; 0 on RoCE
  u32 mtu = 1024;            ///< active MTU of the port in bytes: the smaller of two is used
  std::array<u8, 16> gid{};  ///< of the port, in network order
};

/// The parameters with which a queue pair is created.
struct QueuePairShape {
  u32 sq_requests = 128;                 ///< outstanding requests, at most NicLimits::max_requests
  u32 rq_requests = 128;                 ///< receives posted ahead, at most NicLimits::max_receives
  u32 max_inline = 0;                    ///< bytes; the back end may grant more
  Place queue_memory = Place::pageable;  ///< Place::gpu needs a GPU initiator
  bool signal_all = false;  ///< every request completes visibly, whatever WorkRequest::signalled says
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
  /// As the device has it; a request that fails makes it QpState::error.
  [[nodiscard]] virtual QpState state() const = 0;
  /// The addresses of the queues, in those of `initiator`. initial_state() of it is the state of a queue pair
  /// that has just been created or reset. Throws Error if `initiator` cannot reach the queues, and for the
  /// provider "verbs", whose queues belong to libibverbs.
  [[nodiscard]] virtual QueuePairMemory memory(Initiator initiator) = 0;
  /// The bytes that one request may carry inlined.
  [[nodiscard]] virtual u32 max_inline() const = 0;
};

/// Connects two queue pairs of this process, or one to itself (`&one == &other`), from RESET to RTS.
void connect(QueuePairObject& one, QueuePairObject& other, const ConnectionOptions& options = {});

/// Limits of a NIC.
struct NicLimits : Limits {
  u32 active_mtu = 4096;  ///< bytes
};

/// An open NIC. It outlives the objects that it made.
class Nic {
 public:
  virtual ~Nic() = default;
  /// "model", "emulated" or "hardware".
  [[nodiscard]] virtual std::string kind() const = 0;
  /// The device's full name, for what the user wrote.
  [[nodiscard]] virtual std::string name() const = 0;
  /// Whose queue format it has, as NicRequest::provider names it. with_format() makes the type of it.
  [[nodiscard]] virtual std::string_view provider_name() const = 0;
  /// To check before anything is created.
  [[nodiscard]] virtual NicLimits limits() const = 0;

  /// `bytes` of zeroed memory that this device can register at `place`.
  [[nodiscard]] virtual Region allocate(Place place, u64 bytes) = 0;
  /// Lets this NIC's requests use the region; `access` (bits of namespace access) says what the peer's may
  /// do.
  [[nodiscard]] virtual std::unique_ptr<MemoryRegion> register_memory(const Region& region, u32 access) = 0;
  /// A queue pair in the state RESET; connect() makes it ready.
  [[nodiscard]] virtual std::unique_ptr<QueuePairObject> create_queue_pair(const QueuePairShape& shape) = 0;
  /// A word that stays 1 while the device is there, in the initiator's addresses; null if the device has
  /// none.
  [[nodiscard]] virtual const u32* alive(Initiator) { return nullptr; }
};

/// Names a NIC, and what it is opened for. A model adapts its threads to that; hardware ignores it.
struct NicRequest {
  /// As `doorbell rdma` takes it: "model", "model:mtu=1024,latency=2us", "mlx5_0".
  std::string device = "model";
  /// Whose queues are driven: "mlx5", "bnxt", "ionic", "ernic". "verbs" has no queues to write.
  std::string provider = "mlx5";
  std::shared_ptr<gpu::Gpu> gpu = {};    ///< that rings doorbells or holds memory; may be null
  Initiator initiator = Initiator::cpu;  ///< Initiator::gpu needs `gpu`
  bool gpu_memory = false;               ///< queues or data may lie in the GPU's memory
  u32 queue_pairs = 1;                   ///< connections in use at the same time
};

/// Opens the NIC that the request names; never another one in its place. Throws Error: a name or key that is
/// unknown; with ExitCode::absent, a device or library that is not here.
[[nodiscard]] std::unique_ptr<Nic> open_nic(const NicRequest& request = {});

}  // namespace doorbell::rdma
