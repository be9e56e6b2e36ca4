// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The resources of a run of one-sided operations: buffers that are registered with a device, queues, and the
// runner that drives the queues.
#pragma once

#include <memory>
#include <vector>

#include "memory/gpu_mirror.hpp"
#include "rma/port.hpp"

namespace doorbell::rma {

struct SessionShape {
  Ends ends = Ends::self;
  Role role = Role::initiator;
  u32 queues = 1;  ///< connections
  u32 window = 1;
  u32 requests = 0;         ///< of each send queue; 0: as many as the window
  u32 target_slots = 0;     ///< OpPhase::target_slots
  u32 slot_alignment = 64;  ///< slots begin at multiples of it, in a buffer and in a device's memory
  bool one_offset = false;  ///< every operation of a queue uses the same bytes, unverified
  bool ping_pong = false;   ///< both ends send (ping_pong_end.hpp); not with Ends::self
  bool receives = true;     ///< operations take receives of the other end
  u32 bytes = 0;            ///< of a payload
  u32 max_inline = 0;
  Place queue_memory = Place::pageable;
  Place local_memory = Place::pageable;
  Place remote_memory = Place::pageable;
  Initiator initiator = Initiator::cpu;

  /// Slots of the responder's buffers; the initiator's have `window`.
  [[nodiscard]] u32 remote_slots() const { return target_slots != 0 ? target_slots : window; }
  /// An initiator alone has no buffers of the other end, and a responder has no buffers of the initiator's
  /// end.
  [[nodiscard]] bool has_local() const { return role == Role::initiator; }
  [[nodiscard]] bool has_remote() const {
    return ends == Ends::self || ends == Ends::pair || role == Role::responder;
  }
  [[nodiscard]] QueueShape queue() const;
};

/// A slot's bytes: the payload rounded up, with 64 so that slots share no line of a cache.
[[nodiscard]] u64 slot_bytes(u32 payload_bytes, u32 alignment = 64);

/// Bytes of host memory that a Session of this shape on `port` and its runner take: the registered buffers of
/// the ends in this process, the queues, and the working memory of the loops. GPU memory is not counted.
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

  /// One entry for each connection, with addresses in the shape's initiator's view. The bench sets `count`.
  [[nodiscard]] std::vector<OpQueue>& queues() { return queues_; }

  /// For Ends::remote, one entry for each connection. keys() is the memory of this process that the other
  /// process may reach. use() takes the other process's keys, and throws Error if these lead to too little
  /// memory.
  [[nodiscard]] std::vector<MemoryKey> keys() const;
  void use(const std::vector<MemoryKey>& theirs);

  /// Throws what a copy between GPU memory and its mirror has failed with. Between phases.
  void check_mirrors();

  /// QueueSet::recover().
  void recover() { set_->recover(); }
  /// Drives the queues as they stand now, with `threads` CPU threads or by a kernel. `checkers`:
  /// DriverShape's.
  [[nodiscard]] std::unique_ptr<OpRunner> runner(u32 threads, u32 checkers = 0);

 private:
  /// One connection's buffers. The device loses access to them before they are freed.
  struct Buffers {
    Region local;
    Region remote;
    std::unique_ptr<RegisteredMemory> local_memory;
    std::unique_ptr<RegisteredMemory> remote_memory;
    std::unique_ptr<GpuMirror> local_mirror, remote_mirror;  ///< of GPU memory, for a CPU initiator
  };

  std::shared_ptr<gpu::Gpu> gpu_;
  SessionShape shape_;
  std::vector<Buffers> buffers_;
  std::unique_ptr<QueueSet> set_;  // destroyed before the memory that its queues use
  std::vector<OpQueue> queues_;
};

}  // namespace doorbell::rma
