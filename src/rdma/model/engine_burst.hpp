// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Engine: several requests of one queue pair at a time, a lane of a warp each.
#pragma once

#include "rdma/model/engine.hpp"
#include "rdma/model/kernel_mover.hpp"

namespace doorbell::rdma {

/// Executes the next requests of `q` together, as far as they are plain: WRITEs and READs of one buffer that
/// need no second look, each of q.burst_units ring units, none of which touches what an earlier one moves.
/// Returns their number; 0: serve() goes on. All lanes call it together, between two calls of other functions
/// by lane 0. The data of several WRITEs becomes visible in any order, their completions behind all of it.
template <class F, class Parts>
template <class Warp>
DOORBELL_HD u32 Engine<F, Parts>::burst(const Warp& warp, Qp& q, Word16* stage) {
  Qp* const p = peer(q);
  if (careful_ || q.state != QpState::rts || q.sq.announced == 0 || q.wait_until_ns != 0 || q.started ||
      p == nullptr || !p->answers() || p->remote_qpn != q.qpn || q.cq.broken || parts_.transport.pending())
    return 0;
  const u32 lane = warp.lane();
  const u32 units = q.burst_units;

  // All entries in one way to the memory and back, 16 bytes a lane.
  const u32 each = units * F::kUnitParts;
  const u32 here = smaller(smaller(Warp::size, kStage / each), q.sq.announced / units);
  fetch(warp, q.sq, stage, here * each);

  Plain mine;
  DecodedWqe d;
  RingPosition at = advance(q.sq.at, lane, units, 0);
  bool plain = lane < here;
  if (plain) {
    const PartReader reader{stage, kStage, lane * each};
    d = F::decode_wqe(reader, at.pass);
    plain = d.units == units && is_plain(q, *p, d, at, reader, mine);
  }
  // A warp that is wrong about the first request's length tries again next time.
  const u32 first_units = warp.shfl(d.units, 0);
  const bool first_owned = warp.shfl(d.owned ? 1u : 0u, 0) != 0;
  warp.sync();
  if (lane == 0 && first_owned && first_units > 0) q.burst_units = first_units;
  const u32 packets = packets_of(d.request.bytes, q.mtu);
  // Up to this lane's request.
  const u32 through = warp.ballot(packets != 1) == 0 ? lane + 1 : sum_to(warp, packets);
  if constexpr (F::kHasTable) {
    at.psn = (at.psn + through - packets) & 0xffffff;
    const u64* const table = q.device_memory.sq_table;
    plain = plain && load64_relaxed(table + F::table_index(at, q.device_memory)) ==
                         F::table_entry(d.request, at, q.device_memory);
  }
  u32 n = leading_run(warp.ballot(plain));
  if (n > Warp::size) n = Warp::size;
  n = apart(warp, mine, n);
  const bool signalled = d.request.signalled || q.signal_all;
  n = with_room(warp, q, signalled, n);
  if (n == 0) return 0;

  const bool taken = lane < n;
  parts_.transport.mover().copy_all(warp, mine.to, mine.from, taken ? mine.bytes : 0, mine.to_gpu);
  const u64 reported = warp.ballot(taken && signalled);
  if (taken && signalled) {
    CqeFields f = request_fields(q, d, Status::ok);
    f.completion.mark = F::kMark == Mark::unit ? at.running : mark_after(q.sq, lane);
    const RingPosition cq = advance(q.cq.at, rank_in(warp, reported), 1, 0);
    F::encode_cqe(f, cq.pass, q.cq.memory.host + u64{cq.slot} * F::kCqeParts);
  }
  const u32 all_packets = warp.shfl(through, n - 1);
  count(warp, d, n, all_packets);
  warp.sync();  // all lanes have used what lane 0 changes now
  if (lane == 0) {
    const u32 entries = count_bits(reported);
    q.sq.mark = mark_after(q.sq, n - 1);
    q.sq.at = advance(q.sq.at, n, units, 0);
    q.sq.at.psn = (q.sq.at.psn + all_packets) & 0xffffff;
    q.sq.announced -= n * units;
    q.serial += n;
    q.cq.at = advance(q.cq.at, entries, 1, 0);
    q.cq.held += entries;
    if constexpr (F::kCqByIndex) {
      store_release(q.cq.record + 2, published(q.cq.at, Counts::two_turns).value);
      store_relaxed(q.sq.record + 1, published(q.sq.at, Index::kSend).value);
    }
  }
  warp.sync();
  return n;
}

/// The next `parts` parts of a ring, which may continue at its beginning. Eight loads of a lane are under way
/// together.
template <class F, class Parts>
template <class Warp>
DOORBELL_HD void Engine<F, Parts>::fetch(const Warp& warp, const WorkRing& ring, Word16* to, u32 parts) {
  constexpr u32 kTogether = 8;
  const u32 first = ring.at.slot * F::kUnitParts, all = ring.at.units * F::kUnitParts;
  Word16 words[kTogether];
  for (u32 base = warp.lane(); base < parts; base += kTogether * Warp::size) {
    DOORBELL_UNROLL
    for (u32 k = 0; k < kTogether; ++k) {
      const u32 i = base + k * Warp::size;
      const u32 at = first + i < all ? first + i : first + i - all;
      if (i < parts) words[k] = load16(ring.memory.host + at);
    }
    DOORBELL_UNROLL
    for (u32 k = 0; k < kTogether; ++k)
      if (base + k * Warp::size < parts) to[base + k * Warp::size] = words[k];
  }
  warp.sync();
}

/// Whether one request is plain, and what it moves.
template <class F, class Parts>
DOORBELL_HD bool Engine<F, Parts>::is_plain(const Qp& q, const Qp& p, const DecodedWqe& d,
                                            const RingPosition& at, const PartReader& reader, Plain& out) {
  const WorkRequest& wr = d.request;
  const bool reads = wr.op == Op::read;
  if (!d.owned || !d.valid || !Index::claims(d, at) || (!reads && wr.op != Op::write)) return false;
  if (reads && (q.options.max_rd_atomic == 0 || p.options.max_rd_atomic == 0)) return false;
  const u32 right = right_for(wr.op);
  if ((p.options.access & right) == 0) return false;
  if (wr.bytes == 0) return true;
  const MemoryEntry far = parts_.transport.keys().seen(wr.rkey);
  u8* local = nullptr;
  bool local_on_gpu = false;
  if (wr.inlined && d.sges == 0) {
    SegmentList payload;
    inlined(d, reader, payload);
    if (payload.count != 1) return false;
    local = payload.list[0].place.address;
  } else {
    const MemoryEntry near = parts_.transport.keys().seen(wr.lkey);
    if (d.sges != 1 || near.lkey == 0 || near.lkey != wr.lkey || !near.covers(wr.local, wr.bytes) ||
        (reads && (near.access & access::local_write) == 0))
      return false;
    local = near.at(wr.local).address;
    local_on_gpu = near.on_gpu;
  }
  if (far.lkey == 0 || far.rkey != wr.rkey || !far.covers(wr.remote, wr.bytes) || (far.access & right) == 0)
    return false;
  u8* const remote = far.at(wr.remote).address;
  out = reads ? Plain{local, remote, wr.bytes, local_on_gpu} : Plain{remote, local, wr.bytes, far.on_gpu};
  return true;
}

/// The mark of the request `n` behind the oldest.
template <class F, class Parts>
DOORBELL_HD u32 Engine<F, Parts>::mark_after(const WorkRing& sq, u32 n) {
  // A ring has fewer marks than two turns of it.
  const u64 mark = u64{sq.mark} + 1 + n;
  return static_cast<u32>(sq.marks != 0 && mark >= sq.marks ? mark - sq.marks : mark);
}

/// The sum of the lanes' values up to this lane's.
template <class F, class Parts>
template <class Warp>
DOORBELL_HD u32 Engine<F, Parts>::sum_to(const Warp& warp, u32 v) {
  DOORBELL_NO_UNROLL
  for (u32 step = 1; step < Warp::size; step *= 2) {
    const u32 before = warp.shfl(v, warp.lane() >= step ? warp.lane() - step : warp.lane());
    if (warp.lane() >= step) v += before;
  }
  return v;
}

/// True if no request touches what another one moves, as far as a quick look can tell: each goes behind the
/// one before, and all sources lie on one side of all destinations.
template <class F, class Parts>
template <class Warp>
DOORBELL_HD bool Engine<F, Parts>::in_order(const Warp& warp, u64 to, u64 from, u64 bytes, u32 n) {
  const bool counts = warp.lane() < n && bytes > 0;
  const u64 next = warp.shfl(to, warp.lane() + 1 < Warp::size ? warp.lane() + 1 : warp.lane());
  if (warp.ballot(counts && warp.lane() + 1 < n && to + bytes > next) != 0) return false;
  // Ascending: the first and the last destination are the ends of all.
  const u64 to_begin = warp.shfl(to, 0), to_end = warp.shfl(to + bytes, n > 0 ? n - 1 : 0);
  const bool before = warp.ballot(counts && from + bytes > to_begin) == 0;
  return before || warp.ballot(counts && from < to_end) == 0;
}

/// The number of requests before the first that touches what an earlier one moves.
template <class F, class Parts>
template <class Warp>
DOORBELL_HD u32 Engine<F, Parts>::apart(const Warp& warp, const Plain& mine, u32 n) {
  const u64 to = reinterpret_cast<u64>(mine.to), from = reinterpret_cast<u64>(mine.from);
  if (in_order(warp, to, from, mine.bytes, n)) return n;
  const auto meet = [](u64 a, u64 a_bytes, u64 b, u64 b_bytes) { return a < b + b_bytes && b < a + a_bytes; };
  bool met = false;
  DOORBELL_NO_UNROLL
  for (u32 k = 0; k + 1 < n; ++k) {
    const u64 other_to = warp.shfl(to, k), other_from = warp.shfl(from, k);
    const u64 bytes = warp.shfl(mine.bytes, k);
    if (warp.lane() > k)
      met = met || meet(to, mine.bytes, other_to, bytes) || meet(to, mine.bytes, other_from, bytes) ||
            meet(from, mine.bytes, other_to, bytes);
  }
  const u32 free = leading_run(~warp.ballot(met));
  return free < n ? free : n;
}

/// The number of requests whose completions find room.
template <class F, class Parts>
template <class Warp>
DOORBELL_HD u32 Engine<F, Parts>::with_room(const Warp& warp, Qp& q, bool signalled, u32 n) {
  const u64 wanted = warp.ballot(signalled && warp.lane() < n);
  // For a full queue serve() looks once, and ends it if nothing has been given back.
  if (count_bits(wanted) > q.cq.capacity - q.cq.held && q.cq.held < q.cq.capacity) {
    warp.sync();
    if (warp.lane() == 0) take_consumer(q.cq);
    warp.sync();
  }
  const u32 free = q.cq.capacity - q.cq.held;
  const bool fits = warp.lane() >= n || rank_in(warp, wanted) + (signalled ? 1 : 0) <= free;
  const u32 run = leading_run(warp.ballot(fits));
  return run < n ? run : n;
}

template <class F, class Parts>
template <class Warp>
DOORBELL_HD void Engine<F, Parts>::count(const Warp& warp, const DecodedWqe& d, u32 n, u32 packets) {
  const bool taken = warp.lane() < n;
  const u32 reads = count_bits(warp.ballot(taken && d.request.op == Op::read));
  const u32 first = warp.shfl(d.request.bytes, 0);
  const bool equal = warp.ballot(taken && d.request.bytes != first) == 0;
  const u64 bytes = equal ? u64{first} * n : reduce_add(warp, u64{taken ? d.request.bytes : 0});
  if (warp.lane() != 0) return;
  EngineCounters& c = parts_.counters;
  c.requests[static_cast<u32>(Op::read)] += reads;
  c.requests[static_cast<u32>(Op::write)] += n - reads;
  if (n > 1) c.in_bursts += n;
  c.bytes += bytes;
  c.packets += packets;
}

}  // namespace doorbell::rdma
