// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/assembly/gather.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace doorbell::net {
namespace {

u32 slices_of(const GatherRequest& r) {
  if (r.data_bytes == 0) throw Error("messages of 0 bytes", "there is nothing to gather");
  if (r.window_bytes == 0) throw Error("windows of 0 bytes", "a window has at least 1 byte");
  return static_cast<u32>(r.data_bytes / r.window_bytes);
}

u32 messages_of(const GatherRequest& r) {
  if (slices_of(r) != 0) return 1;
  const u64 n = (r.window_bytes + r.data_bytes / 2) / r.data_bytes;
  if (n > kMaxWindowPackets)
    throw Error(fmt::format("windows of {} bytes", r.window_bytes),
                fmt::format("they would have {} messages; a window has at most {}", n, kMaxWindowPackets));
  return static_cast<u32>(std::max<u64>(n, 1));
}

}  // namespace

Gather::Gather(const GatherRequest& request, WindowConsumer& consumer)
    : flow_(request.flow),
      data_bytes_(request.data_bytes),
      slices_(slices_of(request)),
      packets_(messages_of(request)),
      window_bytes_(slices_ != 0 ? request.window_bytes : u64{packets_} * data_bytes_),
      wait_ns_(request.wait_ns),
      // Windows over messages need no memory of their own.
      buffers_(slices_ != 0 ? Place::pageable : request.place, request.gpu, 1 + request.in_flight,
               slices_ != 0 ? 1 : window_bytes_, packets_),
      consumer_(consumer),
      bits_((packets_ + 63) / 64) {
  if (slices_ == 0 && request.place == Place::gpu)
    throw Error("windows in GPU memory", "a CPU cannot put messages together there");
}

Placing Gather::add(u64 number, const u8* data, u32 bytes, u64 now_ns, const u8* device) {
  if (bytes != data_bytes_) {
    ++wrong_length_;
    return Placing::wrong_length;
  }
  ++counts_.placed;
  if (slices_ != 0) {
    pass(number, data, now_ns, device);
    return Placing::placed;
  }
  if (filled_ == 0) {
    if (!buffers_.available()) consumer_.poll();
    if (!buffers_.available()) wait_for_buffer(buffers_, consumer_, wait_ns_);
    buffer_ = buffers_.acquire();
    first_packet_ = number;
    first_ns_ = now_ns;
  }
  std::memcpy(buffers_.host(buffer_) + u64{filled_} * data_bytes_, data, bytes);
  bits_[filled_ / 64] |= u64{1} << (filled_ % 64);
  if (++filled_ == packets_) deliver();
  return Placing::placed;
}

void Gather::pass(u64 number, const u8* data, u64 now_ns, const u8* device) {
  for (u32 i = 0; i < slices_; ++i) {
    Window w;
    w.index = index_++;
    w.flow = flow_;
    w.first_packet = number;
    w.host = data + i * window_bytes_;
    w.device = device == nullptr ? nullptr : device + i * window_bytes_;
    w.bytes = window_bytes_;
    w.packets = 1;
    w.first_arrival_ns = now_ns;
    w.owner = this;
    ++borrowed_;
    ++counts_.windows;
    ++counts_.full;
    consumer_.take(w);
  }
}

void Gather::deliver() {
  ClosedWindow c;
  c.index = index_++;
  c.first_packet = first_packet_;
  c.why = filled_ == packets_ ? Closing::full : Closing::end;
  c.packets = c.arrived = filled_;
  c.first_arrival_ns = first_ns_;
  c.bits = bits_.data();
  ++counts_.windows;
  ++(c.why == Closing::full ? counts_.full : counts_.at_end);
  filled_ = 0;
  Window window = buffers_.describe(buffer_, c, data_bytes_);
  window.flow = flow_;
  std::ranges::fill(bits_, 0);
  consumer_.take(window);
}

void Gather::finish() {
  if (filled_ != 0) deliver();
  consumer_.finish();
}

void Gather::give_back(const Window& window) {
  if (borrowed_ == 0)
    throw Error(fmt::format("window {}", window.index), "its message was given back twice", {},
                ExitCode::data);
  --borrowed_;
}

}  // namespace doorbell::net
