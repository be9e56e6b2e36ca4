// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/raw/rx_slots.hpp"

#include <algorithm>
#include <cstring>

namespace doorbell::net::raw {

namespace {

/// Copies that one call to the GPU's driver takes.
constexpr u32 kCopiesAtOnce = 256;

u64 whole_lines(u64 bytes) {
  return (bytes + 63) / 64 * 64;
}

}  // namespace

RxSlots::RxSlots(const StreamRequest& request, u32 count)
    : split_(request.split),
      count_(count),
      max_payload_(request.payload_bytes),
      head_stride_(whole_lines(kPayloadOffset + (request.split ? kHeaderBytes : request.payload_bytes))),
      body_stride_(request.split ? std::max<u64>(64, whole_lines(request.payload_bytes - kHeaderBytes)) : 0) {
  if (!split_) {
    head_ = Region(request.place, head_stride_ * count, request.gpu);
    return;
  }
  head_ = Region(Place::pageable, head_stride_ * count);
  body_ = Region(request.place, body_stride_ * count, request.gpu);
  body_address_ = request.place == Place::gpu ? body_.device() : body_.host();
  if (request.place == Place::gpu) to_gpu_.reserve(kCopiesAtOnce);
}

void RxSlots::write(u32 slot, const u8* payload, u32 bytes, u32 before) {
  const u32 head_bytes = split_ ? std::min(bytes, kHeaderBytes) : bytes;
  std::memcpy(head(slot) - before, payload - before, before + head_bytes);
  if (bytes > head_bytes) write_data(slot, 0, payload + head_bytes, bytes - head_bytes);
}

void RxSlots::write_part(u32 slot, u32 at, const u8* from, u32 n) {
  const u32 head_end = split_ ? kHeaderBytes : max_payload_;
  const u32 head_bytes = at < head_end ? std::min(n, head_end - at) : 0;
  std::memcpy(head(slot) + at, from, head_bytes);
  if (n > head_bytes) write_data(slot, at + head_bytes - head_end, from + head_bytes, n - head_bytes);
}

void RxSlots::write_data(u32 slot, u32 at, const u8* from, u32 n) {
  u8* const to = body_address_ + slot * body_stride_ + at;
  if (body_.place() != Place::gpu) {
    std::memcpy(to, from, n);
    return;
  }
  to_gpu_.push_back({to, from, n});
  if (to_gpu_.size() == kCopiesAtOnce) flush_gpu();
}

void RxSlots::flush_gpu() {
  body_.gpu()->copy(to_gpu_);
  to_gpu_.clear();
}

}  // namespace doorbell::net::raw
