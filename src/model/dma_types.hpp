// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The ring between a model's DMA engine (a CPU thread) and the DMA agent (a GPU kernel that copies
// for it). Lies in pinned host memory; both sides compile this file.
#pragma once

#include <doorbell/memory_order.hpp>

namespace doorbell::model {

/// One copy. `ticket` is written last, with release. A descriptor is valid if its ticket equals its position
/// plus one, where positions count on without wrapping at the ring's end.
struct alignas(32) CopyDescriptor {
  u64 to = 0;
  u64 from = 0;
  u64 bytes = 0;
  u32 kind = 0;  ///< 0 copy, 1 leave
  u32 ticket = 0;
};
static_assert(sizeof(CopyDescriptor) == 32);

inline constexpr u32 kCopyRing = 1024;  ///< descriptors
inline constexpr u32 kLeave = 1;

struct DmaRing {
  CopyDescriptor descriptors[kCopyRing];
  alignas(128) u32 done;   ///< copies finished, written by the agent with release
  alignas(128) u32 abort;  ///< non-zero: the agent leaves at once
};

}  // namespace doorbell::model
