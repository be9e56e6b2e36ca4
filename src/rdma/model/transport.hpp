// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// What the responder and the wire do to one request, whatever queue format it came in: checks of keys and
// rights, movement of data, atomics.
#pragma once

#include <mutex>
#include <vector>

#include "model/copier.hpp"
#include "model/count.hpp"
#include "model/fault_injector.hpp"
#include "rdma/model/memory_table.hpp"
#include "rdma/model/qp.hpp"

namespace doorbell::rdma {

/// Bytes in memory that the NIC has looked up. Without initialisers: every request has a list of them.
struct Segment {
  model::DmaPlace place;
  u32 bytes;
  const MemoryTable::Entry* memory;  ///< null for inlined payload
};

struct SegmentList {
  static constexpr u32 kMax = DecodedWqe::kMaxSges;
  u32 count = 0;
  bool gpu = false;
  std::array<Segment, kMax> list;
  void add(const Segment& s) {
    list[count++] = s;
    gpu = gpu || s.place.gpu;
  }
};

/// The pause that a code of min_rnr_timer stands for.
[[nodiscard]] u64 rnr_timer_ns(u32 code);

/// Bytes that a message of `packets` packets occupies the wire with, RoCEv2 over IPv4.
[[nodiscard]] u64 wire_bytes(Op op, u32 bytes, u32 packets);

/// One per engine. Copies to or from GPU memory are over after DmaEngine::commit().
class Transport {
 public:
  /// `atomics` is shared by all engines of the device.
  Transport(const MemoryTable& table, model::DmaEngine& dma, model::FaultInjector& faults,
            std::mutex& atomics)
      : table_(table), copier_(dma), faults_(faults), atomics_(atomics) {}

  /// The requester's or a receive's own buffers, with local_write where the NIC will write.
  [[nodiscard]] Status find_local(const DecodedWqe& d, bool written, SegmentList& out);
  /// Whether the responder lets `wr` reach its memory; `out` is where.
  [[nodiscard]] Status find_remote(const WorkRequest& wr, const Qp& responder, Segment& out);

  /// Moves `bytes` bytes, and carries out what strikes them on their way. False: the DMA engine cannot.
  [[nodiscard]] bool move(const SegmentList& to, const SegmentList& from, u32 bytes,
                          const model::Strike& strike);
  /// Reads, changes and writes 8 bytes, as one for every other atomic of this device.
  [[nodiscard]] bool atomic(const WorkRequest& wr, const Segment& at, u64& old);
  /// Something that move() started needs commit().
  [[nodiscard]] bool settle() { return copier_.settle(); }
  [[nodiscard]] u64 violations() const { return violations_.value(); }

 private:
  Status violation(Status s);
  bool move_struck(const SegmentList& to, const SegmentList& from, u32 bytes, const model::Strike& strike);

  const MemoryTable& table_;
  model::Copier copier_;
  model::FaultInjector& faults_;
  std::mutex& atomics_;
  std::vector<u8> scratch_;
  model::Count violations_;
};

}  // namespace doorbell::rdma
