// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/assembly/window_check.hpp"

#include <doorbell/net/crc32c.hpp>

#include <algorithm>

namespace doorbell::net {

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
    } else if (r_.missing == Missing::zero &&
               !std::all_of(slot, slot + r_.slot_bytes, [](u8 b) { return b == 0; })) {
      return false;
    }
  }
  return true;
}

}  // namespace doorbell::net
