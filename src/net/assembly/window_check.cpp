// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/assembly/window_check.hpp"

#include <doorbell/net/packet.hpp>

#include <algorithm>
#include <cstring>

namespace doorbell::net {

namespace {

/// Compared with itself a byte further on: at the speed of memory. Where most packets are lost, most of what
/// is checked is zeros.
bool is_zero(const u8* data, u64 bytes) {
  return bytes == 0 || (data[0] == 0 && std::memcmp(data, data + 1, bytes - 1) == 0);
}

bool has(const std::vector<u64>& bits, u32 slot) {
  return (bits[slot / 64] >> (slot % 64) & 1) != 0;
}

}  // namespace

void WindowCheck::take(const Window& w) {
  // A window that is passed through is neither converted nor has it slots.
  if (!w.arrived.empty()) {
    Buffer& b = buffer_of(w);
    std::ranges::fill(b.look, 0);
    if (!w.slot_crcs.empty()) {
      choose(w, b);
      ++checked_;
      if (w.host == nullptr && r_.gatherer) r_.gatherer->wait(r_.gatherer->launch(), r_.wait_ns);
      if (!good(&w, b, w.packets)) {
        ++failed_;
        // Nothing that is known of this buffer is certain.
        std::ranges::fill(b.zero, 0);
        std::ranges::fill(b.look, 0);
      }
    }
    for (u32 i = 0; i < b.zero.size(); ++i) b.zero[i] = (b.zero[i] | b.look[i]) & ~w.arrived[i];
  }
  next_.take(w);
}

void WindowCheck::finish() {
  for (Buffer& b : buffers_) {
    if (!b.left) continue;
    b.left = false;
    b.look = b.zero;
    if (!good(nullptr, b, static_cast<u32>(b.zero.size() * 64))) ++failed_;
  }
  next_.finish();
}

WindowCheck::Buffer& WindowCheck::buffer_of(const Window& w) {
  for (Buffer& b : buffers_)
    if (b.host == w.host && b.device == w.device) return b;
  const std::size_t words = w.arrived.size();
  buffers_.push_back({w.host, w.device, std::vector<u64>(words), std::vector<u64>(words), 0, false});
  return buffers_.back();
}

void WindowCheck::choose(const Window& w, Buffer& b) {
  const std::span<const u64> arrived = w.arrived;
  const auto words = static_cast<u32>(b.look.size());
  const u64 zeros = r_.missing == Missing::zero ? w.missing * r_.slot_bytes : 0;
  credit_ += kZerosPerByte * (w.packets - w.missing) * r_.slot_bytes;
  const bool all = zeros <= credit_;
  credit_ = std::min(credit_ - (all ? zeros : 0), r_.most_zeros);
  const u32 step = (w.packets + kInTurn - 1) / kInTurn;
  b.turn = (b.turn + 1) % kInTurn;
  const u32 first = b.turn * step, end = first + step;
  bool in_part = false;
  for (u32 i = 0; i < words; ++i) {
    u64& look = b.look[i];
    const u32 left = w.packets > i * 64 ? w.packets - i * 64 : 0;
    const u64 within = left >= 64 ? ~u64{0} : (u64{1} << left) - 1;
    look = arrived[i];
    if (r_.missing == Missing::zero) {
      if (all) look = ~u64{0};
      look |= ~b.zero[i] | arrived[i] << 1 | arrived[i] >> 1;
      if (i > 0) look |= arrived[i - 1] >> 63;
      if (i + 1 < words) look |= arrived[i + 1] << 63;
      for (u32 s = std::max(first, i * 64); s < std::min(end, i * 64 + 64); ++s) look |= u64{1} << s % 64;
    }
    look &= within;
    in_part = in_part || (r_.missing == Missing::zero && (look & within) != within);
  }
  in_part_ += in_part ? 1 : 0;
  b.left = b.left || in_part;
}

bool WindowCheck::good(const Window* w, const Buffer& b, u32 packets) {
  for (u32 s = 0; s < packets;) {
    if (!has(b.look, s)) {
      ++s;
      continue;
    }
    u32 end = s + 1;
    while (end < packets && has(b.look, end)) ++end;
    const u8* bytes = b.host + s * r_.slot_bytes;
    if (b.host == nullptr) {
      copy_.resize(std::max<u64>(copy_.size(), (end - s) * r_.slot_bytes));
      r_.gpu->copy(copy_.data(), b.device + s * r_.slot_bytes, (end - s) * r_.slot_bytes);
      bytes = copy_.data();
    }
    for (; s < end; ++s, bytes += r_.slot_bytes)
      if (!slot_good(w, s, bytes)) return false;
  }
  return true;
}

bool WindowCheck::slot_good(const Window* w, u32 slot, const u8* bytes) const {
  if (w != nullptr && (w->arrived[slot / 64] >> (slot % 64) & 1) != 0)
    return crc32c(bytes, r_.slot_bytes) == w->slot_crcs[slot];
  return r_.missing == Missing::mark || is_zero(bytes, r_.slot_bytes);
}

}  // namespace doorbell::net
