// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Requests into rings and out of them again, for whoever tests a wire format.
#pragma once

#include <doorbell/rdma/format.hpp>

#include <string>
#include <vector>

namespace doorbell::rdma {

/// Writes a request where a queue pair would, round the ring's end.
template <class F>
void build_wqe(std::vector<Word16>& ring, const WorkRequest& wr, const RingPosition& at,
               const QueuePairMemory& m) {
  for (u32 p = 0; p < F::parts(wr); ++p)
    ring[(at.slot * F::kUnitParts + p) % ring.size()] = F::part(wr, at, m, p);
}

[[nodiscard]] inline PartReader reader_of(const std::vector<Word16>& ring, u32 first) {
  return {ring.data(), static_cast<u32>(ring.size()), first};
}

/// The payload that lies in a WQE. Empty when it is inlined by a flag alone (ernic).
[[nodiscard]] inline std::vector<u8> inlined_payload(const DecodedWqe& d, const PartReader& read) {
  std::vector<u8> out;
  if (!d.request.inlined || d.sges != 0) return out;
  for (u32 i = 0; i < d.request.bytes; ++i) {
    const u32 at = d.inline_offset + i;
    const Word16& part = read(d.inline_part + at / 16);
    out.push_back(static_cast<u8>(part.w[at % 16 / 4] >> (at % 4 * 8)));
  }
  return out;
}

/// The difference between a request and what was decoded, or nothing. `solicited` means something only where
/// a receive is taken, and a request without bytes has no buffer and nothing inlined.
[[nodiscard]] inline std::string difference(const WorkRequest& a, const WorkRequest& b) {
  if (a.op != b.op) return "op";
  if (a.signalled != b.signalled) return "signalled";
  if (a.fence != b.fence) return "fence";
  if (takes_receive(a.op) && a.solicited != b.solicited) return "solicited";
  if (a.bytes != b.bytes) return "bytes";
  if (has_imm(a.op) && a.imm != b.imm) return "imm";
  if (a.op != Op::send && a.op != Op::send_imm && (a.remote != b.remote || a.rkey != b.rkey)) return "remote";
  if (is_atomic(a.op) && a.operand != b.operand) return "operand";
  if (a.op == Op::compare_swap && a.compare != b.compare) return "compare";
  if (a.bytes == 0) return "";
  if (a.inlined != b.inlined) return "inlined";
  if (!a.inlined && (a.local != b.local || a.lkey != b.lkey)) return "buffer";
  return "";
}

inline WorkRequest with_bytes(Op op, u32 bytes) {
  WorkRequest wr;
  wr.op = op;
  wr.bytes = bytes;
  return wr;
}

}  // namespace doorbell::rdma
