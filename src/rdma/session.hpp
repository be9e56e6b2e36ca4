// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// What a run of RDMA operations stands on: buffers registered with a device, connected queue pairs, and
// whoever drives them.
#pragma once

#include <memory>
#include <vector>

#include "rdma/device.hpp"
#include "rdma/op_work.hpp"

namespace doorbell::gpu {
class Gpu;
}

namespace doorbell::rdma {

/// How the two ends of each connection lie.
enum class Ends {
  self,    ///< one queue pair, connected to itself
  pair,    ///< two queue pairs of this process
  remote,  ///< the other end is in another process
};

struct SessionShape {
  Ends ends = Ends::self;
  Role role = Role::initiator;
  u32 queue_pairs = 1;  ///< connections
  u32 window = 1;
  u32 requests = 0;         ///< of each send queue; 0: the window's
  u32 landing = 0;          ///< OpPhase::landing
  bool one_offset = false;  ///< every operation of a queue pair from and to the same bytes, unverified
  bool ping_pong = false;   ///< both ends send (ping_pong_end.hpp); not with Ends::self
  u32 bytes = 0;            ///< of a payload
  u32 max_inline = 0;
  Place queue_memory = Place::pageable;
  Place local_memory = Place::pageable;
  Place remote_memory = Place::pageable;
  Initiator initiator = Initiator::cpu;
  ConnectionOptions connection;

  /// Slots of the responder's buffers; the initiator's have `window`.
  [[nodiscard]] u32 remote_slots() const { return landing != 0 ? landing : window; }
  /// An initiator alone needs no buffers of the other end, a responder none of this one.
  [[nodiscard]] bool has_local() const { return role == Role::initiator; }
  [[nodiscard]] bool has_remote() const { return ends != Ends::remote || role == Role::responder; }
  [[nodiscard]] QueuePairShape queue() const;
};

/// A slot's bytes: the payload rounded up so that slots share no 64-byte line.
[[nodiscard]] u64 slot_bytes(u32 payload_bytes);

/// Bytes of host memory that a Session of this shape on `device` and its runner take: the registered buffers
/// of the ends that are in this process, the queue pairs, the working memory of the loops. What lies in a GPU
/// is not counted.
[[nodiscard]] u64 memory_needed(const SessionShape& shape, const Device& device);

class Session {
 public:
  /// Registers memory and creates the queue pairs; with Ends::self and Ends::pair they are connected.
  Session(Device& device, std::shared_ptr<gpu::Gpu> gpu, const SessionShape& shape);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// One a connection, in addresses of the shape's initiator. The bench sets `count`.
  [[nodiscard]] std::vector<OpQueue>& queues() { return queues_; }

  /// Ends::remote: what the other process needs of this one, and the connection itself.
  [[nodiscard]] std::vector<Endpoint> endpoints() const;
  [[nodiscard]] std::vector<MemoryKey> keys() const;
  void connect(const std::vector<Endpoint>& peers, const std::vector<MemoryKey>& keys);

  /// Queue pairs that an error has stopped are reset and connected again (Ends::self and Ends::pair).
  /// Runners made before are of no use then.
  void recover();

  /// Where freshly connected queue pairs stand, for back ends whose queues the initiator writes itself.
  [[nodiscard]] std::vector<OpState<QueuePairState>> direct_states();
  /// Drives the queue pairs as they stand now, with `threads` CPU threads or by a kernel.
  [[nodiscard]] std::unique_ptr<OpRunner> runner(u32 threads);

 private:
  struct Connection;
  void connect_here(Connection& c);
  template <class Format>
  std::unique_ptr<OpRunner> direct_runner(const DriverShape& driver);

  Device& device_;
  /// Of each connection's buffers at the responder.
  [[nodiscard]] u32 remote_slots() const { return shape_.remote_slots(); }

  std::shared_ptr<gpu::Gpu> gpu_;
  SessionShape shape_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::vector<OpQueue> queues_;
};

/// The kernels (rma/op_kernel.hpp) for one provider's format.
[[nodiscard]] measure::KernelNames op_kernels(Provider provider);

}  // namespace doorbell::rdma
