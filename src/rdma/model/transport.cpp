// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/model/transport.hpp"

#include <algorithm>
#include <cstring>

#include "model/deliberate_race.hpp"

namespace doorbell::rdma {

using model::DmaPlace;
using model::Fault;

namespace {

// Ethernet preamble and gap 20, header 14, IPv4 20, UDP 8, base transport header 12, ICRC 4, FCS 4.
constexpr u32 kPacketOverhead = 82;
constexpr u32 kRemoteHeader = 16;  // address, key, length
constexpr u32 kAtomicHeader = 28;
constexpr u32 kAckHeader = 4;
constexpr u32 kImmediate = 4;

u32 right_for(Op op) {
  if (is_atomic(op)) return access::remote_atomic;
  return op == Op::read ? access::remote_read : access::remote_write;
}

/// Walks two lists side by side: calls fn(to, from, bytes) for each piece that lies within one segment of
/// both.
template <class Fn>
bool side_by_side(const SegmentList& to, const SegmentList& from, u32 bytes, Fn&& fn) {
  u32 t = 0, f = 0, t_done = 0, f_done = 0;
  while (bytes > 0) {
    if (t == to.count || f == from.count) return false;
    const u32 n = std::min({bytes, to.list[t].bytes - t_done, from.list[f].bytes - f_done});
    if (n > 0 && !fn(to.list[t].place + t_done, from.list[f].place + f_done, n)) return false;
    bytes -= n;
    if ((t_done += n) == to.list[t].bytes) ++t, t_done = 0;
    if ((f_done += n) == from.list[f].bytes) ++f, f_done = 0;
  }
  return true;
}

/// Makes a list for the same bytes in another place of the same memory: `bytes` further on, or `bytes`
/// before.
bool displaced(const SegmentList& to, u32 bytes, SegmentList& out) {
  if (to.count != 1 || to.list[0].memory == nullptr) return false;
  const Segment& s = to.list[0];
  const MemoryTable::Entry& m = *s.memory;
  const auto other =
      model::InjectedFault::elsewhere(static_cast<u64>(s.place.address - m.base.address), bytes, m.bytes);
  if (!other) return false;
  out = {};
  out.add({m.base + *other, bytes, s.memory});
  return true;
}

}  // namespace

u64 rnr_timer_ns(u32 code) {
  constexpr std::array<u32, 32> kHundredthsOfMs = {
      65536, 1,   2,   3,   4,    6,    8,    12,   16,   24,   32,   48,    64,    96,    128,   192,
      256,   384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};
  return u64{kHundredthsOfMs[code & 31]} * 10'000;
}

u64 wire_bytes(Op op, u32 bytes, u32 packets) {
  u64 n = u64{packets} * kPacketOverhead + bytes;
  if (op == Op::read) return n + u64{packets} * kAckHeader + kPacketOverhead + kRemoteHeader;
  if (is_atomic(op)) return n + kAtomicHeader + kPacketOverhead + kAckHeader + kAtomicBytes;
  if (op == Op::write || op == Op::write_imm) n += kRemoteHeader;
  if (has_imm(op)) n += kImmediate;
  return n;
}

Status Transport::violation(Status s) {
  violations_ += 1;
  return s;
}

Status Transport::find_local(const DecodedWqe& d, bool written, SegmentList& out) {
  for (u32 i = 0; i < d.sges; ++i) {
    const DecodedWqe::Sge& sge = d.sge[i];
    if (sge.bytes == 0) continue;
    const MemoryTable::Entry* m = table_.local(sge.lkey);
    if (m == nullptr || !m->covers(sge.address, sge.bytes) ||
        (written && (m->access & access::local_write) == 0))
      return violation(Status::local_protection);
    out.add({m->at(sge.address), sge.bytes, m});
  }
  return Status::ok;
}

Status Transport::find_remote(const WorkRequest& wr, const Qp& responder, Segment& out) {
  const u32 right = right_for(wr.op);
  if ((responder.options.access & right) == 0) return violation(Status::remote_access);
  if (wr.bytes == 0) return Status::ok;  // neither key nor address is checked
  if (is_atomic(wr.op) && wr.remote % kAtomicBytes != 0) return violation(Status::remote_invalid_request);
  const MemoryTable::Entry* m = table_.remote(wr.rkey);
  if (m == nullptr || !m->covers(wr.remote, wr.bytes) || (m->access & right) == 0)
    return violation(Status::remote_access);
  out = {m->at(wr.remote), wr.bytes, m};
  return Status::ok;
}

bool Transport::move(const SegmentList& to, const SegmentList& from, u32 bytes,
                     const model::InjectedFault& injected) {
  if (injected.fault != Fault::none && bytes > 0) [[unlikely]]
    return move_with_fault(to, from, bytes, injected);
  if (to.count == 1 && from.count == 1) [[likely]]
    return copier_.copy(to.list[0].place, from.list[0].place, bytes);
  return side_by_side(to, from, bytes,
                      [this](const DmaPlace& t, const DmaPlace& f, u32 n) { return copier_.copy(t, f, n); });
}

bool Transport::move_with_fault(const SegmentList& to, const SegmentList& from, u32 bytes,
                                const model::InjectedFault& injected) {
  const model::InjectedFault none;
  switch (injected.fault) {
    case Fault::stale:
      faults_.count(injected.fault);
      return true;
    case Fault::misplace: {
      SegmentList other;
      if (!displaced(to, bytes, other)) return move(to, from, bytes, none);
      faults_.count(injected.fault);
      const model::DeliberateRace race;
      return move(other, from, bytes, none);
    }
    case Fault::corrupt: {
      scratch_.resize(bytes);
      SegmentList wire;
      wire.add({DmaPlace{scratch_.data(), nullptr, false}, bytes, nullptr});
      if (!move(wire, from, bytes, none) || !settle()) return false;
      injected.corrupt(scratch_.data(), bytes);
      faults_.count(injected.fault);
      return move(to, wire, bytes, none);
    }
    default:
      return move(to, from, bytes, none);
  }
}

bool Transport::atomic(const WorkRequest& wr, const Segment& at, u64& old) {
  const bool adds = wr.op == Op::fetch_add;
  if (!at.place.gpu) {
    const std::atomic_ref<u64> word(*reinterpret_cast<u64*>(at.place.address));
    if (adds) {
      old = word.fetch_add(wr.operand);
    } else {
      old = wr.compare;
      word.compare_exchange_strong(old, wr.operand);
    }
    return true;
  }
  // A device thread has no atomics on GPU memory, so all engines take turns.
  const std::scoped_lock lock(atomics_);
  u64 now = 0;
  const DmaPlace here{reinterpret_cast<u8*>(&now), nullptr, false};
  if (!copier_.copy(here, at.place, sizeof now) || !settle()) return false;
  old = now;
  if (!adds && old != wr.compare) return true;
  now = adds ? old + wr.operand : wr.operand;
  return copier_.copy(at.place, here, sizeof now) && settle();
}

}  // namespace doorbell::rdma
