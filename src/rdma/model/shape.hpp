// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The facts about a queue format that set-up code, which is not a template, must know.
#pragma once

#include <functional>
#include <memory>

#include "model/dma.hpp"
#include "rdma/model/engine_base.hpp"
#include "rdma/nic_device.hpp"

namespace doorbell::rdma {

class PolledEngine;
struct ServerJob;

struct FormatShape {
  const char* name;
  u32 unit_parts;
  u32 receive_parts;
  u32 cqe_parts;
  u32 max_inline;
  bool has_table;
  u32 max_sq_units;
  // Entries that stay free, because the slot numbers of a full and of an empty ring are equal.
  u32 sq_hole, rq_hole, cq_hole;
  Mark mark;
  u32 (*mark_modulo)(const QueuePairMemory& m);
  u32 (*sq_units)(u32 requests, u32 max_inline);
  u32 (*rq_entries)(u32 receives);
  u32 (*cq_entries)(u32 completions);
  Word16 (*cqe_initial)(u32 part);
  std::unique_ptr<PolledEngine> (*engine)(ModelShared&, const SoftwareAddressSpace&, model::DmaAgent*,
                                          u32 index);
  // For engines in a kernel: a block's shared memory, and what a CPU thread calls that runs the kernel's
  // code.
  u32 served_bytes;
  std::function<bool()> (*serve)(const ServerJob& job, u32 server);
};

/// Throws Error for Provider::verbs, which is not a format.
[[nodiscard]] const FormatShape& shape_of(Provider p);

/// The places of a queue pair's parts in its memory.
struct QueueLayout {
  u32 sq_units = 0, rq_entries = 0, cq_entries = 0, recv_cq_entries = 0;
  u64 table = 0, rq = 0, cq = 0, recv_cq = 0, bytes = 0;  ///< offsets; the send ring is at 0
  u32 track_entries = 0;  ///< QueuePairMemory::track_entries, in the initiator's own memory
};
[[nodiscard]] QueueLayout layout_of(const FormatShape& f, const QueuePairShape& shape);

}  // namespace doorbell::rdma
