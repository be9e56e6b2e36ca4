// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/assembly/window_check.hpp"

#include <doorbell/net/crc32c.hpp>

#include <cstring>

namespace doorbell::net {

namespace {

/// Compared with itself a byte further on: at the speed of memory. Where most packets are lost, most of what
/// is checked is zeros.
bool is_zero(const u8* data, u64 bytes) {
  return bytes == 0 || (data[0] == 0 && std::memcmp(data, data + 1, bytes - 1) == 0);
}

}  // namespace

void WindowCheck::take(const Window& w) {
  if (!w.slot_crcs.empty()) {
    const u8* bytes = w.host;
    if (bytes == nullptr) {
      if (r_.gatherer) r_.gatherer->wait(r_.gatherer->launch(), r_.wait_ns);
      copy_.resize(w.bytes);
      r_.gpu->copy(copy_.data(), w.device, w.bytes);
      bytes = copy_.data();
    }
    ++checked_;
    failed_ += good(w, bytes) ? 0 : 1;
  }
  next_.take(w);
}

bool WindowCheck::good(const Window& w, const u8* bytes) const {
  for (u32 s = 0; s < w.packets; ++s) {
    const u8* const slot = bytes + s * r_.slot_bytes;
    if ((w.arrived[s / 64] >> (s % 64) & 1) != 0) {
      if (crc32c(slot, r_.slot_bytes) != w.slot_crcs[s]) return false;
    } else if (r_.missing == Missing::zero && !is_zero(slot, r_.slot_bytes)) {
      return false;
    }
  }
  return true;
}

}  // namespace doorbell::net
