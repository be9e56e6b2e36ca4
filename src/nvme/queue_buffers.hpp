// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Memory that the queues of one run need besides their rings: data slots, PRP lists, bookkeeping.
#pragma once

#include <doorbell/nvme/controller.hpp>

#include <memory>
#include <span>
#include <vector>

#include "memory/gpu_mirror.hpp"
#include "nvme/io_types.hpp"

namespace doorbell::nvme {

/// One of several parts of a whole: parts differ by one at most, and together they are the whole.
struct Share {
  u64 first = 0;
  u64 count = 0;
};
[[nodiscard]] constexpr Share share_of(u64 whole, u64 parts, u64 part) {
  const u64 least = whole / parts, longer = whole % parts;
  return {part * least + (part < longer ? part : longer), least + (part < longer ? 1 : 0)};
}

/// How the queues are laid out; the same for every queue.
struct QueueShape {
  u32 queues = 1;
  u32 entries = 1024;
  u32 window = 1;
  u64 io_bytes = 512;
  Place sq = Place::pageable;
  Place cq = Place::pageable;
  Place data = Place::pageable;
  Initiator initiator = Initiator::cpu;
  u64 first = 0;           ///< first position of queue 0
  u64 positions = 1;       ///< of all queues, which each own a share of them
  u64 unwritten_bits = 0;  ///< positions a queue for which refused writes are remembered
};

/// Bytes of host memory that one queue of this shape takes, its rings and its loop's own memory included.
[[nodiscard]] u64 queue_memory(const QueueShape& shape);

class QueueBuffers {
 public:
  /// Memory that `space` maps; it must outlive the buffers. With a GPU, memory that it reaches.
  QueueBuffers(AddressSpace& space, const std::shared_ptr<gpu::Gpu>& gpu, const QueueShape& shape);

  /// One a queue, in addresses of the shape's initiator. `memory` is set when the rings are made, `count` and
  /// `written` by the bench for each phase.
  [[nodiscard]] std::vector<IoQueue>& queues() { return io_; }
  /// Where the data slots of a queue lie.
  [[nodiscard]] const Region& data(u32 queue) const { return data_[queue].region(); }
  void forget_refused_writes();
  /// Throws what a copy between GPU memory and its mirror has failed with. Between phases.
  void check_mirrors();
  /// The writes that a queue's reads are to find, the newest first; what exceeds kEarlierAtMost is left out.
  /// Between phases.
  void set_written_before(u32 queue, std::span<const EarlierWrite> writes);
  static constexpr std::size_t kEarlierAtMost = 128;

 private:
  std::vector<Mapped> data_;
  std::vector<Mapped> lists_;
  std::vector<std::unique_ptr<GpuMirror>> mirrors_;  ///< of data_, for a CPU initiator
  std::vector<Region> unwritten_, more_earlier_;
  std::vector<IoQueue> io_;
};

}  // namespace doorbell::nvme
