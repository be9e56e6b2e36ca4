// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Engine: doorbells, the requests that they announce, and what happens to these when a queue pair fails.
#pragma once

#include "rdma/model/engine.hpp"

namespace doorbell::rdma {

template <class F, class Parts>
DOORBELL_HD void Engine<F, Parts>::note(WorkRing::Update update) {
  if (update == WorkRing::Update::invalid) parts_.counters.invalid_doorbell_values += 1;
}

/// Takes the value that was stored to a doorbell since the last look; false if there is none.
template <class F, class Parts>
DOORBELL_HD bool Engine<F, Parts>::read_doorbell(u64* word, DoorbellValue& v) {
  if (load64_relaxed(word) == 0) return false;
  // Unlike a register, memory keeps its value: clearing it makes the same value visible again. The acquire
  // orders the entries and records, which the initiator wrote earlier, before the loads that follow.
  v = F::decode_doorbell(exchange64(word, 0));
  parts_.counters.doorbells += 1;
  return true;
}

template <class F, class Parts>
DOORBELL_GPU_NOINLINE void Engine<F, Parts>::poll_send_doorbell(Qp& q) {
  DoorbellValue v;
  if (!read_doorbell(q.sq.doorbell, v)) return;
  const QpState s = q.state;
  const bool takes_sends = s == QpState::rts || s == QpState::sqd || s == QpState::error;
  if (!addressed(v, DoorbellValue::Queue::send, Index::named(q.device_memory)) || !takes_sends) {
    note(WorkRing::Update::invalid);
    return;
  }
  note(q.sq.announce(Index::kSend, Index::send(q.sq.record, v, q.sq.at.units)));
}

template <class F, class Parts>
DOORBELL_GPU_NOINLINE void Engine<F, Parts>::poll_receive_doorbell(Qp& q) {
  DoorbellValue v;
  if constexpr (Index::kReceiveByRecord) {
    note(q.rq.announce(Index::kReceive, Index::receive(q.rq.record, v, q.rq.at.units)));
  }
  if (!read_doorbell(q.rq.doorbell, v)) return;
  if (!addressed(v, DoorbellValue::Queue::receive, Index::named(q.device_memory)))
    note(WorkRing::Update::invalid);
  else if constexpr (!Index::kReceiveByRecord)
    note(q.rq.announce(Index::kReceive, Index::receive(q.rq.record, v, q.rq.at.units)));
}

/// Fetches the next WQEs from a ring in GPU memory, and their entries in the MSN table.
template <class F, class Parts>
DOORBELL_GPU_NOINLINE bool Engine<F, Parts>::stage(Qp& q) {
  q.staged_units = 0;
  if (q.state != QpState::error && q.wait_until_ns > now()) return true;
  const WorkRing& r = q.sq;
  const u32 units = smaller(r.announced, kStageParts / F::kUnitParts);
  const u32 before_end = smaller(units, r.at.units - r.at.slot);
  constexpr u64 unit_bytes = u64{F::kUnitParts} * sizeof(Word16);
  Word16* const to = q.staged;
  if (!parts_.dma.fetch(r.memory.iova + r.at.slot * unit_bytes, to, before_end * unit_bytes)) return false;
  if (units > before_end && !parts_.dma.fetch(r.memory.iova, to + u64{before_end} * F::kUnitParts,
                                              (units - before_end) * unit_bytes))
    return false;
  q.staged_units = units;
  return true;
}

template <class F, class Parts>
DOORBELL_HD bool Engine<F, Parts>::next_wqe(Qp& q, u32 staged_done, PartReader& out) const {
  const WorkRing& r = q.sq;
  if (r.memory.host != nullptr) {
    out = {r.memory.host, r.at.units * F::kUnitParts, r.at.slot * F::kUnitParts};
    return true;
  }
  out = {q.staged, q.staged_units * F::kUnitParts, staged_done * F::kUnitParts};
  return staged_done < q.staged_units;
}

/// True if the MSN table's entry for this request, in formats that have the table, agrees with the NIC's own
/// counts.
template <class F, class Parts>
DOORBELL_HD bool Engine<F, Parts>::table_agrees(const Qp& q, const WorkRequest& wr,
                                                const RingPosition& at) const {
  if constexpr (F::kHasTable) {
    const u64* const table = q.device_memory.sq_table;
    if (table == nullptr) return true;  // in GPU memory, where reading it would cost a round trip
    return load64_relaxed(table + F::table_index(at, q.device_memory)) ==
           F::table_entry(wr, at, q.device_memory);
  }
  return true;
}

/// Reads the oldest receive, if one is posted, and leaves it in the ring.
template <class F, class Parts>
DOORBELL_GPU_NOINLINE bool Engine<F, Parts>::next_receive(Qp& q, Receive& out) {
  if (q.rq.announced == 0) poll_receive_doorbell(q);
  WorkRing& r = q.rq;
  if (r.announced == 0) return false;
  constexpr u32 parts = F::kReceiveParts;
  PartReader reader{r.memory.host, r.at.units * parts, r.at.slot * parts};
  if (r.memory.host == nullptr) {
    if (q.receives_left == 0) {
      const u32 n = smaller(smaller(r.announced, kStageReceives), r.at.units - r.at.slot);
      constexpr u64 bytes = u64{parts} * sizeof(Word16);
      if (!parts_.dma.fetch(r.memory.iova + r.at.slot * bytes, q.staged_receives, n * bytes) || !settle())
        return false;
      q.receives_left = n;
      q.receives_taken = 0;
    }
    reader = {q.staged_receives, (q.receives_left + q.receives_taken) * parts, q.receives_taken * parts};
  }
  out.wqe = F::decode_receive(reader);
  out.position = r.at.running;
  return true;
}

template <class F, class Parts>
DOORBELL_HD void Engine<F, Parts>::take_receive(Qp& q) {
  q.rq.take(1);
  if (q.receives_left > 0) {
    --q.receives_left;
    ++q.receives_taken;
  }
  if constexpr (F::kCqByIndex) store_release(q.rq.record + 3, published(q.rq.at, Index::kReceive).value);
}

template <class F, class Parts>
DOORBELL_GPU_NOINLINE bool Engine<F, Parts>::serve(Qp& q) {
  const QpState state = q.state;
  if (state == QpState::error) [[unlikely]] {
    const bool work = q.sq.announced > 0;
    flush(q);
    return work;
  }
  if (q.sq.announced == 0 || (state != QpState::rts && !(state == QpState::sqd && q.started))) return false;
  if (q.wait_until_ns != 0) {
    if (q.wait_until_ns > now()) return false;
    q.wait_until_ns = 0;
  }
  const u32 first = q.sq.at.running;
  PartReader reader;
  for (u32 n = 0; n < Parts::kInARow && q.sq.announced > 0 && next_wqe(q, q.sq.at.running - first, reader);
       ++n) {
    if (!q.has_room() || !peer_has_room(q)) break;
#if !defined(DOORBELL_ON_GPU)
    if (q.sq.memory.host != nullptr) {
      // An initiator has just written these lines, so each load would miss. Prefetching past the ring's end
      // is harmless.
      __builtin_prefetch(q.sq.memory.host + u64{q.sq.at.slot + kPrefetch} * F::kUnitParts);
    }
#endif
    const DecodedWqe d = F::decode_wqe(reader, q.sq.at.pass);
    if (!d.owned) {  // announced, but not written: the following entries wait too
      note(WorkRing::Update::invalid);
      q.sq.announced = 0;
      break;
    }
    const u32 staged_left = q.sq.memory.host != nullptr ? ~0u : q.staged_units - (q.sq.at.running - first);
    if (d.units > staged_left && d.units <= q.sq.announced) break;
    if (!run(q, d, reader) || state == QpState::sqd || parts_.transport.full()) break;
  }
  if constexpr (F::kCqByIndex) store_release(q.sq.record + 1, published(q.sq.at, Index::kSend).value);
  return true;
}

template <class F, class Parts>
DOORBELL_GPU_NOINLINE void Engine<F, Parts>::flush(Qp& q) {
  CqeFields all;
  all.qpn = q.qpn;
  all.qp_handle = q.qpn;
  all.ring_units = q.sq.at.units;
  all.completion.status = Status::flushed;
  if constexpr (!Index::kFlushesEach) {
    // One CQE ends the whole queue: the driver knows which requests it had posted.
    if (!q.flush_reported && q.has_room()) {
      q.flush_reported = true;
      all.completion.flush_all = true;
      complete(q, {.fields = all});
      all.completion.receive = true;
      complete_receive(q, all, 0);
    }
    q.sq.take(q.sq.announced);
    poll_receive_doorbell(q);
    q.rq.take(q.rq.announced);
    q.receives_left = 0;
    return;
  }
  const u32 first = q.sq.at.running;
  PartReader reader;
  for (u32 n = 0; n < Parts::kInARow && q.sq.announced > 0 && q.has_room() &&
                  next_wqe(q, q.sq.at.running - first, reader);
       ++n) {
    const DecodedWqe d = F::decode_wqe(reader, q.sq.at.pass);
    complete(q, {.fields = request_fields(q, d, Status::flushed)});
    q.sq.take(d.units > 1 ? d.units : 1);
    ++q.serial;
  }
  if constexpr (F::kCqByIndex) store_release(q.sq.record + 1, published(q.sq.at, Index::kSend).value);
  flush_receives(q);
}

template <class F, class Parts>
DOORBELL_GPU_NOINLINE void Engine<F, Parts>::flush_receives(Qp& q) {
  Receive r;
  for (u32 n = 0; n < Parts::kInARow && q.has_room() && next_receive(q, r); ++n) {
    CqeFields f;
    f.op = Op::send;
    f.qpn = q.qpn;
    f.qp_handle = q.qpn;
    f.wr_id = r.wqe.wr_id;
    f.completion.receive = true;
    f.completion.status = Status::flushed;
    f.completion.mark = r.position;
    take_receive(q);
    complete_receive(q, f, 0);
  }
}

}  // namespace doorbell::rdma
