// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "model/copier.hpp"

#include <algorithm>

namespace doorbell::model {

namespace {
// Each copy is compared with every open one; a commit of 128 copies has paid for its round trip.
constexpr u32 kOpenExtents = 256;
}  // namespace

/// Copies of one commit happen in any order, so one that meets what another writes waits for it.
bool Copier::order(const u8* at, u64 bytes, bool written) {
  const auto meets = [&](const Extent& e) {
    return (written || e.written) && at < e.end && e.begin < at + bytes;
  };
  if (open_.size() < kOpenExtents && std::none_of(open_.begin(), open_.end(), meets)) return true;
  return settle();
}

bool Copier::copy_gpu(const DmaPlace& to, const DmaPlace& from, u64 bytes) {
  if (!order(from.address, bytes, false) || !order(to.address, bytes, true)) return false;
  if (!dma_.copy(to, from, bytes)) return false;
  open_.push_back({from.address, from.address + bytes, false});
  open_.push_back({to.address, to.address + bytes, true});
  return true;
}

}  // namespace doorbell::model
