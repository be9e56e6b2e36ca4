// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// What a run of one-sided operations stands on: buffers registered with a device, queues, and whoever drives
// them.
#pragma once

#include <memory>
#include <vector>

#include "rma/port.hpp"

namespace doorbell::rma {

struct SessionShape {
  Ends ends = Ends::self;
  Role role = Role::initiator;
  u32 queues = 1;  ///< connections
  u32 window = 1;
  u32 requests = 0;         ///< of each send queue; 0: the window's
  u32 imm_slots = 0;        ///< OpPhase::imm_slots
  bool one_offset = false;  ///< every operation of a queue from and to the same bytes, unverified
  bool ping_pong = false;   ///< both ends send (ping_pong_end.hpp); not with Ends::self
  u32 bytes = 0;            ///< of a payload
  u32 max_inline = 0;
  Place queue_memory = Place::pageable;
  Place local_memory = Place::pageable;
  Place remote_memory = Place::pageable;
  Initiator initiator = Initiator::cpu;

  /// Slots of the responder's buffers; the initiator's have `window`.
  [[nodiscard]] u32 remote_slots() const { return imm_slots != 0 ? imm_slots : window; }
  /// An initiator alone needs no buffers of the other end, a responder none of this one.
  [[nodiscard]] bool has_local() const { return role == Role::initiator; }
  [[nodiscard]] bool has_remote() const { return ends != Ends::remote || role == Role::responder; }
  [[nodiscard]] QueueShape queue() const;
};

/// A slot's bytes: the payload rounded up so that slots share no 64-byte line.
[[nodiscard]] u64 slot_bytes(u32 payload_bytes);

/// Bytes of host memory that a Session of this shape on `port` and its runner take: the registered buffers of
/// the ends that are in this process, the queues, the working memory of the loops. What lies in a GPU is not
/// counted.
[[nodiscard]] u64 memory_needed(const SessionShape& shape, const Port& port);

/// Memory that the other end may reach.
struct MemoryKey {
  u64 address = 0;
  u32 rkey = 0;
  u64 bytes = 0;
};

class Session {
 public:
  /// Registers memory and creates the queues. `port` must outlive it.
  Session(Port& port, std::shared_ptr<gpu::Gpu> gpu, const SessionShape& shape);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// One a connection, in addresses of the shape's initiator. The bench sets `count`.
  [[nodiscard]] std::vector<OpQueue>& queues() { return queues_; }

  /// Ends::remote: what the other process may reach of this one's memory, one a connection, and what this one
  /// may reach of the other's. Throws Error when the other has too little.
  [[nodiscard]] std::vector<MemoryKey> keys() const;
  void use(const std::vector<MemoryKey>& theirs);

  /// QueueSet::recover().
  void recover() { set_->recover(); }
  /// Drives the queues as they stand now, with `threads` CPU threads or by a kernel.
  [[nodiscard]] std::unique_ptr<OpRunner> runner(u32 threads);

 private:
  /// One connection's buffers. They are taken from the device before they are freed.
  struct Buffers {
    Region local;
    Region remote;
    std::unique_ptr<RegisteredMemory> local_memory;
    std::unique_ptr<RegisteredMemory> remote_memory;
  };

  std::shared_ptr<gpu::Gpu> gpu_;
  SessionShape shape_;
  std::vector<Buffers> buffers_;
  std::unique_ptr<QueueSet> set_;  // ends before the memory that its queues use
  std::vector<OpQueue> queues_;
};

}  // namespace doorbell::rma
