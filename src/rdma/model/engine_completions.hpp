// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Engine: writes each completion entry when it is due, and never before the data that it announces.
#pragma once

#include "rdma/model/engine.hpp"

namespace doorbell::rdma {

template <class F, class Parts>
DOORBELL_HD CqeFields Engine<F, Parts>::request_fields(const Qp& q, const DecodedWqe& d,
                                                       Status status) const {
  CqeFields f;
  f.op = d.request.op;
  f.qpn = q.qpn;
  f.qp_handle = Index::named(q.device_memory);
  f.wr_id = d.wr_id;
  f.ring_units = q.sq.at.units;
  f.completion.status = status;
  f.completion.bytes = status == Status::ok ? d.request.bytes : 0;
  f.completion.mark = F::kMark == Mark::unit ? q.sq.at.running : q.sq.next_mark();
  return f;
}

/// A queue pair's completions keep their order, even if one of them is held back.
template <class F, class Parts>
DOORBELL_GPU_NOINLINE void Engine<F, Parts>::complete(Qp& q, const LateCompletion& c) {
  if (c.due_ns != 0 || !q.late.empty()) [[unlikely]] {
    if (c.ends_read) ++q.reads_outstanding;
    q.late.push(c);
  } else if (!c.silent) {
    write_cqe(q, q.cq, c.fields);
  }
}

template <class F, class Parts>
DOORBELL_GPU_NOINLINE void Engine<F, Parts>::complete_receive(Qp& q, const CqeFields& f, u64 due_ns) {
  if (due_ns != 0 || !q.late_receives.empty()) [[unlikely]]
    q.late_receives.push({.due_ns = due_ns, .fields = f});
  else write_cqe(q, q.recv_cq, f);
}

template <class F, class Parts>
DOORBELL_GPU_NOINLINE bool Engine<F, Parts>::release_late(Qp& q) {
  bool any = false;
  for (; !q.late.empty() && q.late.front().due_ns <= now(); any = true) {
    const LateCompletion c = q.late.front();
    q.late.pop();
    if (c.ends_read) --q.reads_outstanding;
    if (!c.silent) write_cqe(q, q.cq, c.fields);
  }
  for (; !q.late_receives.empty() && q.late_receives.front().due_ns <= now(); any = true) {
    write_cqe(q, q.recv_cq, q.late_receives.front().fields);
    q.late_receives.pop();
  }
  return any;
}

/// Makes sure that an entry is free. False: the queue overflowed, which ends it and its queue pair.
template <class F, class Parts>
DOORBELL_GPU_NOINLINE bool Engine<F, Parts>::room(Qp& q, CompletionRing& cq) {
  if (cq.held < cq.capacity) [[likely]]
    return true;
  take_consumer(cq);
  if (cq.held < cq.capacity) return true;
  cq.broken = true;
  parts_.counters.cq_overflows += 1;
  q.enter(QpState::error);
  return false;
}

/// Takes the consumer's index: entries that it has given back are free.
template <class F, class Parts>
DOORBELL_GPU_NOINLINE void Engine<F, Parts>::take_consumer(CompletionRing& cq) {
  DoorbellValue v;
  bool consumer_known = Index::kConsumerByRecord;
  if constexpr (!Index::kConsumerByRecord) {
    consumer_known = read_doorbell(cq.doorbell, v);
    if (consumer_known && !addressed(v, DoorbellValue::Queue::completion, cq.number)) {
      note(WorkRing::Update::invalid);
      consumer_known = false;
    }
  }
  if (!consumer_known) return;
  // The acquire inside orders the initiator's reads of freed entries before the NIC's new stores to them.
  const u32 freed = distance(cq.consumed, Index::kConsumer, Index::consumer(cq.record, v, cq.at.units));
  if (freed > cq.held) {
    note(WorkRing::Update::invalid);
  } else if (freed > 0) {
    cq.consumed = advance(cq.consumed, 1, freed, 0);
    cq.held -= freed;
  }
}

template <class F, class Parts>
DOORBELL_GPU_NOINLINE void Engine<F, Parts>::write_cqe(Qp& q, CompletionRing& cq, const CqeFields& f) {
  if (cq.broken || !room(q, cq)) return;
  if (f.completion.status != Status::ok) parts_.counters.error_completions += 1;
  const u64 at = u64{cq.at.slot} * F::kCqeParts;
  const u32 pass = cq.at.pass;
  cq.at = advance(cq.at, 1, 1, 0);
  ++cq.held;
  if constexpr (F::kCqByIndex) {
    cq.unpublished = any_unpublished_ = true;
  }
  if (cq.memory.host != nullptr) {
    Word16* const to = cq.memory.host + at;
    if (!parts_.transport.pending()) F::encode_cqe(f, pass, to);
    else hold({.host = to, .pass = pass, .fields = f});
    return;
  }
  Word16 out[F::kCqeParts];
  F::encode_cqe(f, pass, out);
  const Iova to = cq.memory.iova + at * sizeof(Word16);
  constexpr u32 owner = F::kCqePartB;
  bool ok = parts_.dma.deliver(to, out, owner * sizeof(Word16));
  if constexpr (owner + 1 < F::kCqeParts)
    ok = ok && parts_.dma.deliver(to + (owner + 1) * sizeof(Word16), out + owner + 1,
                                  (F::kCqeParts - owner - 1) * sizeof(Word16));
  if (ok) hold({.owner_part = to + owner * sizeof(Word16), .owner = out[owner]});
}

/// Keeps an entry until the data that it announces is there.
template <class F, class Parts>
DOORBELL_HD void Engine<F, Parts>::hold(const Held& h) {
  if (held_count_ == Parts::kHeld && !release_held()) return;
  held_[held_count_++] = h;
}

/// Shows the entries written so far, in formats whose initiators look at the ring's state for them.
template <class F, class Parts>
DOORBELL_HD void Engine<F, Parts>::publish(CompletionRing& cq) {
  if (!cq.unpublished) return;
  cq.unpublished = false;
  store_release(cq.record + 2, published(cq.at, Counts::two_turns).value);
}

template <class F, class Parts>
DOORBELL_HD bool Engine<F, Parts>::settle() {
  return parts_.transport.settle();
}

/// Writes the data first, then the entries that announce it.
template <class F, class Parts>
DOORBELL_GPU_NOINLINE bool Engine<F, Parts>::release_held() {
  if (!settle()) return false;
  for (u32 i = 0; i < held_count_; ++i) {
    const Held& h = held_[i];
    if (h.host != nullptr) F::encode_cqe(h.fields, h.pass, h.host);
    else if (!parts_.dma.deliver(h.owner_part, &h.owner, sizeof h.owner)) return false;
  }
  held_count_ = 0;
  return settle();
}

template <class F, class Parts>
DOORBELL_HD bool Engine<F, Parts>::end_round() {
  if (!release_held()) return false;
  if (!any_unpublished_) return true;
  any_unpublished_ = false;
  for (u32 i = 0; i < parts_.qps(); ++i) {
    publish(parts_.qp(i).cq);
    publish(parts_.qp(i).recv_cq);
  }
  return true;
}

}  // namespace doorbell::rdma
