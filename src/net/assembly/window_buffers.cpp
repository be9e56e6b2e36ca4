// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/assembly/window_buffers.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "system/clock.hpp"
#include "system/running_time.hpp"

namespace doorbell::net {
namespace {

// A page, so that buffers do not share one, and enough for any device's alignment within a window.
constexpr u64 kBufferAlignment = 4096;
constexpr u64 kMaxBufferBytes = u64{1} << 40;

u64 round_up_to(u64 n, u64 step) {
  return (n + step - 1) / step * step;
}

u64 checked_stride(u64 bytes, u32 count) {
  if (bytes == 0 || bytes > kMaxBufferBytes)
    throw Error(fmt::format("windows of {} bytes", bytes),
                fmt::format("a window has 1 to {} bytes", kMaxBufferBytes));
  if (count == 0) throw Error("windows", "there must be at least one buffer for them");
  return round_up_to(bytes, kBufferAlignment);
}

}  // namespace

WindowBuffers::WindowBuffers(Place place, std::shared_ptr<gpu::Gpu> gpu, u32 count, u64 bytes, u32 packets)
    : bytes_(bytes),
      stride_(checked_stride(bytes, count)),
      packets_(packets),
      words_((packets + 63) / 64),
      note_stride_(round_up_to(u64{words_} * 8 + u64{packets} * 4, 64)),
      data_(place, stride_ * count, gpu),
      notes_(gpu != nullptr ? Place::pinned : Place::pageable, note_stride_ * count, gpu),
      out_(count),
      written_(u64{words_} * count) {
  // Page faults belong to the set-up.
  if (place != Place::gpu) data_.populate();
  notes_.populate();
  free_.reserve(count);
  for (u32 i = count; i > 0; --i) free_.push_back(i - 1);
}

u32 WindowBuffers::acquire() {
  // The buffer that came back last is the one that a cache still holds.
  const u32 buffer = free_.back();
  free_.pop_back();
  out_[buffer] = true;
  return buffer;
}

void WindowBuffers::give_back(const Window& window) {
  if (window.buffer >= count() || !out_[window.buffer])
    throw Error(fmt::format("window {}", window.index), "its buffer was given back twice", {},
                ExitCode::data);
  out_[window.buffer] = false;
  free_.push_back(window.buffer);
}

Window WindowBuffers::describe(u32 buffer, const ClosedWindow& closed, u64 slot_bytes) {
  u64* const bits = this->bits(buffer);
  u32* const list = this->list(buffer);
  std::memcpy(bits, closed.bits, u64{words_} * 8);
  u32 missing = 0;
  for (u32 first = 0, i = 0; first < closed.packets && closed.missing() != 0; first += 64, ++i) {
    u64 absent = ~bits[i];
    if (closed.packets - first < 64) absent &= (u64{1} << (closed.packets - first)) - 1;
    for (; absent != 0; absent &= absent - 1)
      list[missing++] = first + static_cast<u32>(std::countr_zero(absent));
  }
  Window w;
  w.index = closed.index;
  w.first_packet = closed.first_packet;
  w.bytes = closed.packets * slot_bytes;
  w.packets = closed.packets;
  w.missing = missing;
  w.why = closed.why;
  w.first_arrival_ns = closed.first_arrival_ns;
  locate(buffer, w);
  return w;
}

Window WindowBuffers::describe(u32 buffer, const Window& copied) {
  // A window that was passed through has no notes.
  std::copy(copied.arrived.begin(), copied.arrived.end(), bits(buffer));
  std::copy(copied.missing_slots.begin(), copied.missing_slots.end(), list(buffer));
  Window w = copied;
  locate(buffer, w);
  if (copied.arrived.empty()) {
    w.arrived = {};
    w.device_arrived = nullptr;
  }
  return w;
}

void WindowBuffers::locate(u32 buffer, Window& w) {
  w.host = host(buffer);
  w.device = device(buffer);
  w.arrived = {bits(buffer), words_};
  w.missing_slots = {list(buffer), w.missing};
  w.device_arrived = nullptr;
  w.device_missing_slots = nullptr;
  if (notes_.device() != nullptr) {
    const u8* const note = notes_.device() + buffer * note_stride_;
    w.device_arrived = reinterpret_cast<const u64*>(note);
    w.device_missing_slots = reinterpret_cast<const u32*>(note + u64{words_} * 8);
  }
  w.owner = this;
  w.buffer = buffer;
}

void wait_for_buffer(const WindowBuffers& buffers, WindowConsumer& consumer, u64 limit_ns) {
  RunningTime time(wall_ns());
  while (!buffers.available()) {
    const u64 ran_ns = time.look(wall_ns());
    if (ran_ns >= limit_ns)
      throw Error(fmt::format("{} windows", buffers.out()),
                  fmt::format("what takes them has given none back within {:.1f} s",
                              static_cast<double>(limit_ns) * 1e-9),
                  {}, ExitCode::data);
    consumer.wait(std::min(limit_ns - ran_ns, RunningTime::kMostNs / 2));
  }
}

}  // namespace doorbell::net
