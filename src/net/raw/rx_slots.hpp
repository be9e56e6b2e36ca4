// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Slots that frames are copied into: whole, or header and data apart (header-data split).
#pragma once

#include <doorbell/gpu.hpp>
#include <doorbell/net/queue.hpp>
#include <doorbell/region.hpp>

#include <vector>

#include "net/raw/frames.hpp"
#include "net/stream.hpp"

namespace doorbell::net::raw {

/// One thread writes a slot and another may read it, once the first has called flush() and handed it over.
class RxSlots {
 public:
  /// Each slot holds a payload of request.payload_bytes. The payload lies in memory of request.place; with
  /// request.split only the data does, and the first kHeaderBytes are in ordinary host memory.
  RxSlots(const StreamRequest& request, u32 count);

  [[nodiscard]] u32 count() const { return count_; }
  [[nodiscard]] bool split() const { return split_; }
  /// The longest payload that a slot takes.
  [[nodiscard]] u32 max_payload() const { return max_payload_; }
  /// Copies a payload, at most max_payload(), and the `before` bytes in front of it (at most kPayloadOffset).
  void write(u32 slot, const u8* payload, u32 bytes, u32 before = 0);
  /// Copies `n` bytes to the payload's bytes from `at` on: for a payload that comes in parts.
  void write_part(u32 slot, u32 at, const u8* from, u32 n);
  /// Call it behind the last write() of a burst: data is in its place when this returns.
  void flush() {
    if (!to_gpu_.empty()) flush_gpu();
  }
  /// Says in burst entry `i` where a payload of `bytes` lies.
  void describe(u32 slot, u32 bytes, Burst& burst, u32 i) {
    burst.data[i] = head(slot);
    burst.length[i] = split_ && bytes > kHeaderBytes ? kHeaderBytes : bytes;
    if (!split_) return;
    burst.body[i] = body_address_ + slot * body_stride_;
    burst.body_length[i] = bytes - burst.length[i];
  }

 private:
  void write_data(u32 slot, u32 at, const u8* from, u32 n);
  [[nodiscard]] u8* head(u32 slot) const { return head_.host() + kPayloadOffset + slot * head_stride_; }
  void flush_gpu();

  bool split_;
  u32 count_, max_payload_;
  u64 head_stride_, body_stride_;
  Region head_, body_;
  u8* body_address_ = nullptr;
  std::vector<gpu::Copy> to_gpu_;
};

}  // namespace doorbell::net::raw
