// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Engine: one request from its WQE to its completion. A request that cannot go on stays in the ring and is
// decoded again when its time has come.
#pragma once

#include <doorbell/pattern.hpp>

#include "rdma/model/engine.hpp"

namespace doorbell::rdma {

using model::Fault;

/// Executes a request. True: the next request may follow at once.
template <class F, class Parts>
DOORBELL_GPU_NOINLINE bool Engine<F, Parts>::run(Qp& q, const DecodedWqe& d, const PartReader& reader) {
  const WorkRequest& wr = d.request;
  if (!d.valid || !Index::claims(d, q.sq.at) || d.units > q.sq.announced || !table_agrees(q, wr, q.sq.at))
      [[unlikely]]
    return fail(q, d, wr.bytes > kMaxMessage ? Status::local_length : Status::local_qp_op);
  Work w;
  w.wqe = &d;
  if (wr.inlined && d.sges == 0) {
    inlined(d, reader, w.local);
  } else if (const Status s = parts_.transport.find_local(d, returns_data(wr.op), w.local); s != Status::ok) {
    return fail(q, d, s);
  }
  if (returns_data(wr.op) && q.options.max_rd_atomic == 0) return fail(q, d, Status::local_qp_op);
  if (!may_start(q, wr)) return false;
  if (q.retries > q.options.retry_count) return fail(q, d, Status::retry_exceeded);
  const u32 packets = packets_of(wr.bytes, q.mtu);
  if (q.resend) parts_.counters.retransmissions += packets - q.packets_through;
  q.resend = false;
  if (careful_ && !apply_fault(q, w)) return false;
  if (w.injected.fault == Fault::error) return fail(q, d, Status::remote_operation);

  Qp* const p = peer(q);
  if (p == nullptr || !p->answers() || p->remote_qpn != q.qpn) return try_again(q, false);
  const bool lossy = parts_.rule.loss > 0;
  if (!q.executed) {
    bool resend_requested = false;
    if (lossy && !packets_arrive(q, packets, resend_requested)) return try_again(q, resend_requested);
    const Verdict v = execute(q, *p, w);
    if (v.not_ready) return not_ready(q, d);
    if (v.status != Status::ok) return fail(q, d, v.status);
  } else if (lost(q)) {
    return try_again(q, false);
  }
  if (lossy && lost(q)) {  // lost acknowledgement: done, but the requester does not know
    q.executed = true;
    return try_again(q, false);
  }
  finish(q, w);
  return true;
}

template <class F, class Parts>
DOORBELL_HD bool Engine<F, Parts>::may_start(Qp& q, const WorkRequest& wr) {
  if (q.reads_outstanding == 0) return true;
  return !wr.fence && (!returns_data(wr.op) || q.reads_outstanding < q.options.max_rd_atomic);
}

/// Decides which fault applies to this request. False: the request does not go on now.
template <class F, class Parts>
DOORBELL_GPU_NOINLINE bool Engine<F, Parts>::apply_fault(Qp& q, Work& w) {
  const WorkRequest& wr = w.wqe->request;
  if (parts_.faults.active()) {
    const bool data = wr.bytes > 0 && !is_atomic(wr.op);
    w.injected =
        parts_.faults.draw(q.ordinal, q.serial, data ? model::Direction::both : model::Direction::none);
  }
  switch (w.injected.fault) {
    case Fault::removal:
      parts_.remove_device();
      return false;
    case Fault::reorder:
      if (q.held_serial == q.serial) return true;
      q.held_serial = q.serial;
      // Completions keep their order, so the whole request is held.
      q.wait_until_ns =
          parts_.faults.apply_to_completion(w.injected, 0, [] { return Parts::wall_ns(); }).due_ns;
      return false;
    case Fault::error:
      parts_.faults.count(w.injected.fault);
      return true;
    default:
      return true;
  }
}

/// A copy by a device thread must not overtake copies that the DMA agent still has to do.
template <class F, class Parts>
DOORBELL_HD void Engine<F, Parts>::order(Qp& q, bool gpu) {
  if (q.gpu_copies && !gpu) (void)settle();
  q.gpu_copies = gpu;
}

template <class F, class Parts>
DOORBELL_HD auto Engine<F, Parts>::refuse(Qp& p, Status requester) -> Verdict {
  p.enter(QpState::error);
  return {requester, false};
}

template <class F, class Parts>
DOORBELL_GPU_NOINLINE auto Engine<F, Parts>::execute(Qp& q, Qp& p, Work& w) -> Verdict {
  const WorkRequest& wr = w.wqe->request;
  const bool send_op = wr.op == Op::send || wr.op == Op::send_imm;
  if (!send_op)
    if (const Status s = parts_.transport.find_remote(wr, p, w.remote); s != Status::ok) return refuse(p, s);
  if (returns_data(wr.op) && q.reads_outstanding >= p.options.max_rd_atomic)
    return refuse(p, Status::remote_invalid_request);
  Receive r;
  const bool takes = takes_receive(wr.op);
  if (takes && (q.rnr_tries < parts_.rule.rnr_tries || !next_receive(p, r))) return {Status::ok, true};
  if (wr.fence && parts_.transport.pending()) (void)settle();
  if (parts_.rule.limited)
    w.due_ns = parts_.finish_time(now(), wire_bytes(wr.op, wr.bytes, packets_of(wr.bytes, q.mtu)));

  const Verdict v = is_atomic(wr.op) ? exchange(q, w) : send_op ? send(q, p, w, r) : transfer(q, p, w);
  if (takes && !send_op) received(p, w, r, v.status);
  return v;
}

template <class F, class Parts>
DOORBELL_GPU_NOINLINE auto Engine<F, Parts>::transfer(Qp& q, Qp& p, Work& w) -> Verdict {
  const WorkRequest& wr = w.wqe->request;
  if (wr.bytes == 0) return {};
  order(q, w.local.gpu || w.remote.place.gpu);
  SegmentList remote;
  remote.add(w.remote);
  const bool moved = wr.op == Op::read ? parts_.transport.move(w.local, remote, wr.bytes, w.injected)
                                       : parts_.transport.move(remote, w.local, wr.bytes, w.injected);
  return moved ? Verdict{} : refuse(p, Status::remote_operation);
}

template <class F, class Parts>
DOORBELL_GPU_NOINLINE auto Engine<F, Parts>::send(Qp& q, Qp& p, Work& w, const Receive& r) -> Verdict {
  const WorkRequest& wr = w.wqe->request;
  Status here = Status::ok;
  SegmentList to;
  u64 space = 0;
  for (u32 i = 0; i < r.wqe.sges; ++i) space += r.wqe.sge[i].bytes;
  if (!r.wqe.valid) here = Status::local_qp_op;
  else if (space < wr.bytes) here = Status::local_length;
  else if (wr.bytes > 0) here = parts_.transport.find_local(r.wqe, true, to);
  if (here == Status::ok && wr.bytes > 0) {
    order(q, w.local.gpu || to.gpu);
    if (!parts_.transport.move(to, w.local, wr.bytes, w.injected)) here = Status::local_qp_op;
  }
  received(p, w, r, here);
  if (here == Status::ok) return {};
  return refuse(p, here == Status::local_length ? Status::remote_invalid_request : Status::remote_operation);
}

template <class F, class Parts>
DOORBELL_GPU_NOINLINE auto Engine<F, Parts>::exchange(Qp& q, Work& w) -> Verdict {
  u64 old = 0;
  order(q, false);
  if (!parts_.transport.atomic(w.wqe->request, w.remote, old)) return {Status::remote_operation, false};
  SegmentList result;
  result.add({{reinterpret_cast<u8*>(&old), nullptr, false}, sizeof old, nullptr});
  order(q, w.local.gpu);
  return {
      parts_.transport.move(w.local, result, sizeof old, w.injected) ? Status::ok : Status::remote_operation,
      false};
}

/// Takes away the receive that the message has used.
template <class F, class Parts>
DOORBELL_GPU_NOINLINE void Engine<F, Parts>::received(Qp& p, const Work& w, const Receive& r, Status status) {
  const WorkRequest& wr = w.wqe->request;
  CqeFields f;
  f.op = wr.op;
  f.qpn = p.qpn;
  f.source_qpn = p.remote_qpn;
  f.qp_handle = Index::named(p.device_memory);
  f.wr_id = r.wqe.wr_id;
  f.completion.receive = true;
  f.completion.status = status;
  f.completion.mark = r.position;
  if (status == Status::ok) {
    f.completion.bytes = wr.bytes;
    f.completion.with_imm = has_imm(wr.op);
    f.completion.imm = f.completion.with_imm ? wr.imm : 0;
  }
  take_receive(p);
  complete_receive(p, f, w.due_ns);
}

/// Inlined payload lies in the ring itself, and may continue at the ring's beginning.
template <class F, class Parts>
DOORBELL_GPU_NOINLINE void Engine<F, Parts>::inlined(const DecodedWqe& d, const PartReader& reader,
                                                     SegmentList& out) const {
  auto* const ring = reinterpret_cast<u8*>(const_cast<Word16*>(reader.ring));
  const u32 ring_bytes = reader.parts * static_cast<u32>(sizeof(Word16));
  u32 at = (reader.first + d.inline_part) * static_cast<u32>(sizeof(Word16)) + d.inline_offset;
  if (at >= ring_bytes) at -= ring_bytes;
  const u32 before_end = smaller(d.request.bytes, ring_bytes - at);
  out.add({{ring + at, nullptr, false}, before_end, nullptr});
  if (before_end < d.request.bytes) out.add({{ring, nullptr, false}, d.request.bytes - before_end, nullptr});
}

/// True if the next packet of this queue pair is lost.
template <class F, class Parts>
DOORBELL_HD bool Engine<F, Parts>::lost(Qp& q) {
  const u64 draw =
      pattern::mix64(parts_.rule.seed ^ pattern::mix64(u64{q.ordinal} << 40 ^ ++q.packets_drawn));
  return static_cast<double>(draw >> 11) * 0x1p-53 < parts_.rule.loss;
}

/// Sends the packets that have not arrived yet. `resend_requested`: a packet behind the lost one arrived, so
/// the responder asks for the lost one and no time-out is needed.
template <class F, class Parts>
DOORBELL_GPU_NOINLINE bool Engine<F, Parts>::packets_arrive(Qp& q, u32 packets, bool& resend_requested) {
  const u32 before = q.packets_through;
  for (; q.packets_through < packets; ++q.packets_through) {
    if (!lost(q)) continue;
    for (u32 i = q.packets_through + 1; i < packets && !resend_requested; ++i) resend_requested = !lost(q);
    if (q.packets_through > before) q.retries = 0;  // packets were acknowledged
    return false;
  }
  return true;
}

template <class F, class Parts>
DOORBELL_GPU_NOINLINE bool Engine<F, Parts>::not_ready(Qp& q, const DecodedWqe& d) {
  parts_.counters.rnr_naks += 1;
  q.started = true;
  if (++q.rnr_tries > q.options.rnr_retry && q.options.rnr_retry != 7)
    return fail(q, d, Status::rnr_retry_exceeded);
  const u64 pause_ns = rnr_timer_ns(peer(q)->options.min_rnr_timer);
  parts_.counters.rnr_wait_ns += pause_ns;
  q.wait_until_ns = Parts::wall_ns() + pause_ns;
  return false;
}

template <class F, class Parts>
DOORBELL_GPU_NOINLINE bool Engine<F, Parts>::try_again(Qp& q, bool at_once) {
  q.started = q.resend = true;
  ++q.retries;
  const u32 code = q.options.timeout;
  if (!at_once) q.wait_until_ns = code == 0 ? kForEver : Parts::wall_ns() + (u64{4096} << code);
  return false;
}

template <class F, class Parts>
DOORBELL_GPU_NOINLINE bool Engine<F, Parts>::fail(Qp& q, const DecodedWqe& d, Status status) {
  q.enter(QpState::error);  // before the completion that reports it can be seen
  complete(q, {.fields = request_fields(q, d, status)});
  q.sq.take(d.units == 0 ? 1 : smaller(d.units, q.sq.announced), 1);
  ++q.serial;
  q.next_request();
  return false;
}

template <class F, class Parts>
DOORBELL_GPU_NOINLINE void Engine<F, Parts>::finish(Qp& q, const Work& w) {
  const WorkRequest& wr = w.wqe->request;
  const u32 packets = packets_of(wr.bytes, q.mtu);
  parts_.counters.requests[static_cast<u32>(wr.op)] += 1;
  parts_.counters.bytes += wr.bytes;
  parts_.counters.packets += packets;
  const bool timed_read = w.due_ns != 0 && returns_data(wr.op);
  const bool signalled = wr.signalled || q.signal_all;
  if (signalled || timed_read) {
    LateCompletion c{.due_ns = w.due_ns,
                     .ends_read = timed_read,
                     .silent = !signalled,
                     .fields = request_fields(q, *w.wqe, Status::ok)};
    u32 times = 1;
    if (careful_ && signalled && w.injected.fault != Fault::reorder) {
      const model::CompletionReport t =
          parts_.faults.apply_to_completion(w.injected, w.due_ns, [] { return Parts::wall_ns(); });
      times = t.times;
      c.silent = times == 0;
      c.due_ns = t.due_ns;
    }
    complete(q, c);
    if (times > 1) {
      c.ends_read = false;
      complete(q, c);
    }
  }
  q.sq.take(w.wqe->units, packets);
  ++q.serial;
  q.next_request();
}

}  // namespace doorbell::rdma
