// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// What the responder and the wire do to one request of any queue format: checks of keys and rights, movement
// of data, atomics.
#pragma once

#include <mutex>
#include <vector>

#include "model/copier.hpp"
#include "model/count.hpp"
#include "model/fault_injector.hpp"
#include "rdma/model/memory_table.hpp"
#include "rdma/model/qp.hpp"

namespace doorbell::rdma {

/// Bytes in memory that the NIC has looked up. Has no initialisers, because every request has a list of them.
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

/// The pause for a code of min_rnr_timer.
[[nodiscard]] u64 rnr_timer_ns(u32 code);

/// Bytes on the wire for a message of `packets` packets, RoCEv2 over IPv4.
[[nodiscard]] u64 wire_bytes(Op op, u32 bytes, u32 packets);

/// One for each engine. Copies to or from GPU memory are complete after DmaEngine::commit().
class Transport {
 public:
  /// `atomics` is shared by all engines of the device; `copy_threads` share a large copy of this one.
  Transport(const MemoryTable& table, model::DmaEngine& dma, model::FaultInjector& faults,
            std::mutex& atomics, u32 copy_threads)
      : table_(table), copier_(dma, copy_threads), faults_(faults), atomics_(atomics) {}

  /// Looks up the buffers of a request or of a receive. `written`: the NIC will write, so local_write is
  /// required.
  [[nodiscard]] Status find_local(const DecodedWqe& d, bool written, SegmentList& out);
  /// Checks whether the responder lets `wr` reach its memory, and stores the place in `out`.
  [[nodiscard]] Status find_remote(const WorkRequest& wr, const Qp& responder, Segment& out);

  /// Moves `bytes` bytes and applies the faults that change data. False: the DMA engine cannot move them.
  [[nodiscard]] bool move(const SegmentList& to, const SegmentList& from, u32 bytes,
                          const model::InjectedFault& injected);
  /// Reads, changes and writes 8 bytes; no other atomic of this device comes between.
  [[nodiscard]] bool atomic(const WorkRequest& wr, const Segment& at, u64& old);
  /// True if a copy that move() started needs commit().
  [[nodiscard]] bool settle() { return copier_.settle(); }
  [[nodiscard]] u64 violations() const { return violations_.value(); }

 private:
  Status violation(Status s);
  bool move_with_fault(const SegmentList& to, const SegmentList& from, u32 bytes,
                       const model::InjectedFault& injected);

  const MemoryTable& table_;
  model::Copier copier_;
  model::FaultInjector& faults_;
  std::mutex& atomics_;
  std::vector<u8> scratch_;
  model::Count violations_;
};

}  // namespace doorbell::rdma
