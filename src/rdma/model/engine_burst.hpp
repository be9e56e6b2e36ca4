// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Engine: several requests of one queue pair at a time, a lane of a warp each.
#pragma once

#include "model/apart.hpp"
#include "model/kernel_mover.hpp"
#include "rdma/model/engine.hpp"

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

  const u32 each = units * F::kUnitParts;
  const u32 here = smaller(smaller(Warp::size, kStage / each), q.sq.announced / units);
  const u32 first = q.sq.at.slot * F::kUnitParts, ring_parts = q.sq.at.units * F::kUnitParts;
  model::gather_words(warp, stage, here * each, [&](u32 i) {
    const u32 part = first + i;
    return q.sq.memory.host + (part < ring_parts ? part : part - ring_parts);
  });
  warp.sync();

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
    plain = plain && table_agrees(q, d.request, at);
  }
  u32 n = leading_run(warp.ballot(plain));
  if (n > Warp::size) n = Warp::size;
  n = model::apart(warp, mine.to, mine.from, mine.bytes, n);
  const bool signalled = d.request.signalled || q.signal_all;
  n = with_room(warp, q, signalled, n);
  if (n == 0) return 0;

  const bool taken = lane < n;
  parts_.transport.mover().copy_all(warp, mine.to, mine.from, taken ? mine.bytes : 0, mine.to_gpu);
  const u64 reported = warp.ballot(taken && signalled);
  if (taken && signalled) {
    CqeFields f = request_fields(q, d, Status::ok);
    f.completion.mark = F::kMark == Mark::unit ? at.running : q.sq.mark_after(lane);
    const RingPosition cq = advance(q.cq.at, rank_in(warp, reported), 1, 0);
    F::encode_cqe(f, cq.pass, q.cq.memory.host + u64{cq.slot} * F::kCqeParts);
  }
  const u32 all_packets = warp.shfl(through, n - 1);
  count(warp, d, n, all_packets);
  warp.sync();  // all lanes have used what lane 0 changes now
  if (lane == 0) {
    const u32 entries = count_bits(reported);
    q.sq.take_several(n, units, all_packets);
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
    if (d.sges != 1 || near.lkey == 0 || near.lkey != wr.lkey ||
        !near.lets(wr.local, wr.bytes, reads ? access::local_write : 0))
      return false;
    local = near.at(wr.local).address;
    local_on_gpu = near.on_gpu;
  }
  if (far.lkey == 0 || far.rkey != wr.rkey || !far.lets(wr.remote, wr.bytes, right)) return false;
  u8* const remote = far.at(wr.remote).address;
  out = reads ? Plain{local, remote, wr.bytes, local_on_gpu} : Plain{remote, local, wr.bytes, far.on_gpu};
  return true;
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
