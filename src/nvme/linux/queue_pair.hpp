// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The kernel's I/O calls in the shape of a queue pair, so that the loop that drives NVMe queues drives them
// too: the same window, pattern, checks, deadlines and clock reads.
#pragma once

#include <doorbell/nvme/wire.hpp>

#include <cstdint>

namespace doorbell::nvme {

/// A completion's status where there is no controller: type 7 (vendor specific), the code an errno, or this.
inline constexpr u16 kKernelStatus = 7u << 8;
inline constexpr u16 kShortTransfer = kKernelStatus | 0xff;

/// One read or write of a file.
struct FileIo {
  bool write = false;
  u16 cid = 0;
  u8* data = nullptr;
  u32 bytes = 0;
  u64 offset = 0;
};
struct FileIoDone {
  u16 cid = 0;
  std::int32_t result = 0;  ///< bytes, or a negative errno
};

/// `Engine` has put(FileIo), submit(bool wait_follows), which returns how many system calls it takes, and
/// take(FileIoDone*, bool wait), which waits a moment if it may. Thread rule: as for a QueuePair.
template <class Engine>
class KernelQueuePair {
 public:
  struct State {
    Engine* engine = nullptr;
    u32 lba_bytes = 512;
    u32 io_bytes = 512;
    u32 entries = 2;
    u16 qid = 0;
    u32 in_flight = 0;
  };
  explicit KernelQueuePair(const State& state) : s_(state) {}
  [[nodiscard]] const State& state() const { return s_; }

  [[nodiscard]] u32 room() const { return s_.entries - 1 - s_.in_flight; }

  template <class Warp, class Build>
  void post(const Warp&, u32 n, Build build) {
    for (u32 i = 0; i < n; ++i) put(build(i));
  }
  template <class Warp, class Build, class Probe>
  void post(const Warp&, u32 n, Build build, Probe& probe) {
    for (u32 i = 0; i < n; ++i) {
      const Sqe e = build(i);
      probe.built();
      put(e);
      probe.enqueued();
    }
  }

  template <class Warp>
  u32 ring(const Warp&) {
    // With a window of one a wait is next: one call does both.
    return s_.engine->submit(s_.entries == 2);
  }

  struct Polled {
    u32 count = 0;
    Cqe mine;
  };
  template <class Warp>
  [[nodiscard]] Polled poll(const Warp&, u32 expected) {
    Polled p;
    FileIoDone done;
    // With room in the window there may be more to post; asked a second time, there is not.
    const bool wait = room() == 0 || !posted_;
    posted_ = false;
    if (expected == 0 || !s_.engine->take(&done, wait)) return p;
    p.count = 1;
    p.mine.cid = done.cid;
    p.mine.sq_id = s_.qid;
    u16 code = 0;
    if (done.result < 0) code = static_cast<u16>(kKernelStatus | (static_cast<u32>(-done.result) & 0xff));
    else if (static_cast<u32>(done.result) != s_.io_bytes) code = kShortTransfer;
    p.mine.status = static_cast<u16>(code << 1);
    --s_.in_flight;
    return p;
  }

  // Completions need no giving back.
  [[nodiscard]] u32 cq_unrung() const { return 0; }
  [[nodiscard]] u32 cq_room() const { return ~0u; }
  template <class Warp>
  u32 ring_cq(const Warp&) {
    return 0;
  }
  [[nodiscard]] u16 qid() const { return s_.qid; }
  [[nodiscard]] u32 bad_sq_heads() const { return 0; }

 private:
  void put(const Sqe& e) {
    FileIo io;
    io.write = e.opcode == static_cast<u8>(IoOpcode::write);
    io.cid = e.cid;
    // Buffers are mapped one to one: the address is the pointer.
    io.data = reinterpret_cast<u8*>(e.prp1);
    io.bytes = s_.io_bytes;
    io.offset = (u64{e.cdw11} << 32 | e.cdw10) * s_.lba_bytes;
    s_.engine->put(io);
    ++s_.in_flight;
    posted_ = true;
  }

  State s_;
  bool posted_ = false;
};

}  // namespace doorbell::nvme
