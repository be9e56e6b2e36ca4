// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/roce/send_queue.hpp"

#include <bit>
#include <cerrno>

namespace doorbell::roce {

SendQueue::SendQueue(u32 requests, u32 sges, u32 inline_bytes, bool lends)
    : requests_(requests),
      most_sges_(std::max<u32>(sges, 1)),
      inline_bytes_(std::max<u32>(inline_bytes, 1)),
      slots_(std::bit_ceil(std::max<u32>(requests + (lends ? 1 : 0), 1))),
      sges_(slots_.size() * most_sges_),
      inline_(slots_.size() * inline_bytes_),
      mask_(slots_.size() - 1) {}

Errno SendQueue::post(const SendRequest& request, std::span<const Sge> sges, Status status) {
  const bool inlined = (request.flags & kInline) != 0;
  const u64 bytes = bytes_of(sges);
  if (inlined ? bytes > inline_bytes_ : sges.size() > most_sges_) return EINVAL;
  const std::scoped_lock lock(post_lock_);
  const u64 head = head_.load(std::memory_order_relaxed);
  // A slot that was given back has been read to its end.
  if (head - tail_.load(std::memory_order_acquire) >= most_posted()) return ENOMEM;
  SendSlot& slot = slots_[head & mask_];
  slot.request = request;
  slot.bytes = bytes;
  slot.status = status;
  slot.fault = CompletionFault::none;
  slot.drawn = slot.reported = slot.started = slot.counted = false;
  slot.packets = slot.part = 0;
  slot.at = {};
  if (inlined) {
    slot.sges = 0;
    u8* to = &inline_[(head & mask_) * inline_bytes_];
    for (const Sge& sge : sges) {
      if (sge.length == 0) continue;
      std::memcpy(to, reinterpret_cast<const void*>(sge.address), sge.length);
      to += sge.length;
    }
  } else {
    slot.sges = static_cast<u32>(sges.size());
    std::copy(sges.begin(), sges.end(), &sges_[(head & mask_) * most_sges_]);
  }
  // The slot is written before the engine sees it.
  head_.store(head + 1, std::memory_order_release);
  return 0;
}

void SendQueue::clear() {
  const std::scoped_lock lock(post_lock_);
  lent_.store(0, std::memory_order_relaxed);
  tail_.store(head_.load(std::memory_order_relaxed), std::memory_order_release);
}

}  // namespace doorbell::roce
