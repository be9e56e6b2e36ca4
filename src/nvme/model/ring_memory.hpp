// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Where a ring lies: queues of a driver behind an IOMMU are contiguous for the device alone, and every page
// may be another mapping.
#pragma once

#include <algorithm>

#include "model/dma.hpp"

namespace doorbell::nvme {

struct RingMemory {
  bool reachable = false;  ///< all of its pages allow the access
  bool pages = false;      ///< of host memory, but not in one piece: no access may cross a page
  u8* host = nullptr;      ///< where it lies in one piece; null: entries are fetched or delivered
};

/// `iova` is at the start of a page. A look, at each change of the memory too: what is not there is no fault.
[[nodiscard]] inline RingMemory find_ring(model::DmaEngine& dma, Iova iova, u64 bytes, Access access) {
  constexpr u64 kPage = 4096;
  RingMemory ring;
  bool whole = true;
  for (u64 at = 0; at < bytes; at += kPage) {
    const u64 here = std::min(kPage, bytes - at);
    const auto page = dma.look(iova + at, here, access);
    if (iova + at < iova || !page.reachable) return {};
    if (at == 0) ring.host = page.host;
    whole = whole && page.host != nullptr && page.host == ring.host + at;
  }
  ring.reachable = true;
  ring.pages = !whole && ring.host != nullptr;
  if (!whole) ring.host = nullptr;
  return ring;
}

}  // namespace doorbell::nvme
