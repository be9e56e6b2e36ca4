// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// An AF_XDP socket in copy mode: memory for frames (UMEM), and four rings of it.
#pragma once

#include <linux/if_xdp.h>

#include <cerrno>
#include <ctime>
#include <string>

#include "net/raw/kernel_socket.hpp"
#include "system/clock.hpp"

namespace doorbell::net::raw {

/// The kernel takes chunks of 2048 and 4096 bytes.
inline constexpr u32 kChunkBytes = 4096;
/// Bytes that the kernel keeps free at the start of a chunk that it receives into.
inline constexpr u32 kXdpHeadroom = 256;
// Since Linux 6.6; older headers do not have them.
inline constexpr u16 kXdpUseSg = 1 << 4;      ///< in sxdp_flags: frames of several descriptors
inline constexpr u32 kXdpContinued = 1 << 0;  ///< in xdp_desc::options: the frame goes on in the next one

/// Calls `call` until it is not refused with EBUSY, for a second at most; errno is the last call's.
template <class Call>
int until_not_busy(Call call) {
  const u64 end = wall_ns() + 1'000'000'000;
  for (;;) {
    const int result = call();
    if (result >= 0 || errno != EBUSY || wall_ns() > end) return result;
    const timespec pause = {0, 2'000'000};
    nanosleep(&pause, nullptr);
  }
}

/// One ring in memory that the kernel shares: either the kernel produces and this side consumes, or the other
/// way.
template <class T>
class XdpRing {
 public:
  XdpRing() = default;
  XdpRing(const std::string& subject, int fd, u64 page_offset, const xdp_ring_offset& at, u32 entries)
      : memory_(subject, fd, page_offset, at.desc + u64{entries} * sizeof(T)),
        producer_(reinterpret_cast<u32*>(memory_.base() + at.producer)),
        consumer_(reinterpret_cast<u32*>(memory_.base() + at.consumer)),
        entries_(reinterpret_cast<T*>(memory_.base() + at.desc)),
        mask_(entries - 1) {}

  // This side produces.
  [[nodiscard]] u32 space() const {
    return mask_ + 1 - (own_ + written_ - __atomic_load_n(consumer_, __ATOMIC_ACQUIRE));
  }
  /// Needs space(). The kernel sees it after publish().
  void put(const T& entry) { entries_[(own_ + written_++) & mask_] = entry; }
  void publish() {
    own_ += std::exchange(written_, 0);
    __atomic_store_n(producer_, own_, __ATOMIC_RELEASE);
  }
  /// Entries that have been published and the kernel has not taken.
  [[nodiscard]] u32 pending() const { return own_ - __atomic_load_n(consumer_, __ATOMIC_ACQUIRE); }

  // This side consumes.
  [[nodiscard]] u32 available() const { return __atomic_load_n(producer_, __ATOMIC_ACQUIRE) - own_; }
  [[nodiscard]] const T& at(u32 i) const { return entries_[(own_ + i) & mask_]; }
  void consume(u32 n) {
    own_ += n;
    __atomic_store_n(consumer_, own_, __ATOMIC_RELEASE);
  }

 private:
  Mapping memory_;
  u32* producer_ = nullptr;
  u32* consumer_ = nullptr;
  T* entries_ = nullptr;
  u32 mask_ = 0;
  u32 own_ = 0;      ///< this side's position
  u32 written_ = 0;  ///< put and not published
};

/// Entries of the rings: powers of two, 0 for a direction that is not used.
struct XdpRings {
  u32 rx = 0, fill = 2;
  u32 tx = 0, completion = 2;
};

struct XdpSocket {
  /// Registers `memory` as UMEM, opens the rings. Runs in the calling thread's namespace.
  /// `title_in_messages`: of the engine.
  XdpSocket(const std::string& title_in_messages, u8* memory, u64 bytes, u32 headroom, const XdpRings& sizes);
  /// Binds it to a queue of an interface. Throws Error: the queue is not there, or is another's for a second.
  void bind_to(const std::string& interface, u32 index, u32 queue);

  std::string title;
  Descriptor socket;
  XdpRing<xdp_desc> rx, tx;
  XdpRing<u64> fill, completion;
  bool segments = false;  ///< frames of several descriptors: the kernel knows them
};

}  // namespace doorbell::net::raw
