// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/roce/requester.hpp"

namespace doorbell::roce {

namespace {

/// Packets in flight at the most; PSNs are compared modulo 2^24.
constexpr u32 kMostInFlight = 1 << 22;
/// Packets of a long message without a request for an acknowledgement, where no window asks for more.
constexpr u32 kAskAfter = 64;

/// The operation of a packet of a message, by its place.
Operation operation_of(WrOpcode opcode, bool first, bool last) {
  const auto plain = [&](Operation begin, Operation middle, Operation end, Operation only) {
    return first ? (last ? only : begin) : (last ? end : middle);
  };
  using enum Operation;
  switch (opcode) {
    case WrOpcode::write:
      return plain(write_first, write_middle, write_last, write_only);
    case WrOpcode::write_immediate:
      return plain(write_first, write_middle, write_last_immediate, write_only_immediate);
    case WrOpcode::send_immediate:
      return plain(send_first, send_middle, send_last_immediate, send_only_immediate);
    case WrOpcode::send_invalidate:
      return plain(send_first, send_middle, send_last_invalidate, send_only_invalidate);
    default:
      return plain(send_first, send_middle, send_last, send_only);
  }
}

WcOpcode reported_as(WrOpcode opcode) {
  switch (opcode) {
    case WrOpcode::write:
    case WrOpcode::write_immediate:
      return WcOpcode::write;
    case WrOpcode::send:
    case WrOpcode::send_immediate:
    case WrOpcode::send_invalidate:
      return WcOpcode::send;
    case WrOpcode::read:
      return WcOpcode::read;
    case WrOpcode::compare_swap:
      return WcOpcode::compare_swap;
    case WrOpcode::fetch_add:
      return WcOpcode::fetch_add;
    case WrOpcode::local_invalidate:
      return WcOpcode::local_invalidate;
    case WrOpcode::bind_window:
      return WcOpcode::bind_window;
    case WrOpcode::atomic_write:
      return WcOpcode::atomic_write;
  }
  return {};
}

Completion completion_of(const SendSlot& slot, Status status) {
  Completion completion;
  completion.id = slot.request.id;
  completion.status = status;
  completion.opcode = reported_as(slot.request.opcode);
  completion.bytes = static_cast<u32>(slot.bytes);
  return completion;
}

}  // namespace

void Requester::reset() {
  oldest_psn_ = next_psn_ = end_psn_ = c_.attributes.send_psn & kMask24;
  current_ = queue_.oldest();
  packet_ = reads_ = since_asked_ = window_credit_ = retries_ = rnr_retries_ = 0;
  window_ = 32;
  set_deadline(0);
  round_trip_ns_ = 0;
  waits_for_receiver_ = holds_ = timed_ = recovering_ = unfinished_ = blocked_ = false;
}

bool Requester::send() {
  unfinished_ = blocked_ = false;
  if (c_.service != Service::ud) lossless_ = c_.path->lossless();
  bool did = false;
  for (u32 turn = 0; turn < kTurn; ++turn) {
    const Step now = step();
    if (now == Step::wait) return did;
    if (now == Step::full) {
      blocked_ = unfinished_ = true;
      return did;
    }
    did = true;
    if (c_.trouble != Connection::Trouble::none) return did;
  }
  unfinished_ = true;
  return did;
}

Requester::Step Requester::step() {
  if (waits_for_receiver_ || current_ == queue_.posted()) return Step::wait;
  SendSlot& slot = queue_.at(current_);
  if (c_.faults != nullptr && !slot.started && held_by_fault(slot)) return Step::wait;
  if (!slot.started && !begin(slot)) return Step::wait;
  if (slot.status != Status::success) {
    // Those before it complete first.
    if (current_ == queue_.oldest()) fail_oldest(slot.status);
    return Step::wait;
  }
  if (slot.packets == 0) {
    ++current_;
    retire();
    return Step::done;
  }
  if (c_.service == Service::ud) return send_datagram(slot);
  switch (slot.request.opcode) {
    case WrOpcode::read:
      return send_read(slot);
    case WrOpcode::compare_swap:
    case WrOpcode::fetch_add:
    case WrOpcode::atomic_write:
      return send_atomic(slot);
    default:
      return send_message_packet(slot);
  }
}

/// Completes a request early that is to be: when it is the oldest, because completions come in order. Its
/// packets leave after a while, so that the program sees the completion first.
bool Requester::held_by_fault(SendSlot& slot) {
  if (c_.state != State::rts || slot.status != Status::success) return false;
  if (!slot.drawn) {
    slot.drawn = true;
    slot.fault = c_.faults->draw();
    if (slot.fault == CompletionFault::early && !wants(slot, Status::success))
      slot.fault = CompletionFault::none;
  }
  if (slot.fault != CompletionFault::early || slot.reported) return holds_;
  if (current_ != queue_.oldest()) return true;
  injected(slot);
  holds_ = true;
  set_deadline(c_.clock.ran_ns + c_.faults->early_ns());
  slot.reported = true;
  Completion completion = completion_of(slot, Status::success);
  queue_.lend();
  c_.complete(*c_.send_completions, completion, false);
  return true;
}

void Requester::injected(const SendSlot& slot) {
  count(c_.counters.injected[static_cast<std::size_t>(slot.fault)]);
  c_.faults->carried_out(slot.fault, c_.number, slot.request.id);
}

/// False: not yet.
bool Requester::begin(SendSlot& slot) {
  if (c_.state != State::rts) return false;  // SQD: what has begun goes on, and nothing new begins
  const SendRequest& request = slot.request;
  if ((request.flags & kFence) != 0 && reads_ > 0) return false;
  slot.first_psn = next_psn_;
  slot.packets = 0;
  if (slot.status == Status::success) {
    switch (request.opcode) {
      case WrOpcode::local_invalidate:
        // A request before it may have to be sent again, which needs the key.
        if (current_ != queue_.oldest()) return false;
        if (!c_.keys.invalidate(request.immediate_or_key, c_.protection_domain, c_.number))
          slot.status = Status::window_bind;
        break;
      case WrOpcode::bind_window:
        if (!c_.keys.bind(request.window, request.bind, c_.protection_domain, c_.number))
          slot.status = Status::window_bind;
        break;
      default:
        slot.packets = packets_of(slot.bytes, c_.attributes.mtu);
        if (c_.service == Service::ud && slot.packets > 1) slot.status = Status::local_length;
    }
  }
  slot.started = true;
  packet_ = 0;
  return true;
}

Headers Requester::headers(const SendRequest& request) const {
  Headers h;
  h.service = c_.service;
  h.queue_pair = c_.attributes.destination;
  h.psn = next_psn_;
  h.shared_receives = request.shared_receives;
  return h;
}

u32 Requester::room_in_window() const {
  if (!reliable(c_.service)) return kMostInFlight;
  const u32 most = lossless_ ? kMostInFlight : window_;
  const u32 flying = static_cast<u32>(psn_difference(next_psn_, oldest_psn_));
  return flying < most ? most - flying : 0;
}

bool Requester::fill(SendSlot& slot, u64 offset, std::size_t bytes, u8* to) {
  if (bytes == 0) return true;
  if ((slot.request.flags & kInline) != 0) {
    std::memcpy(to, queue_.inline_data(current_) + offset, bytes);
    return true;
  }
  return gather(c_.keys, c_.protection_domain, queue_.sges(current_), slot.at, offset, bytes, to);
}

Requester::Step Requester::send_message_packet(SendSlot& slot) {
  if (room_in_window() == 0) return Step::wait;
  const SendRequest& request = slot.request;
  const u32 mtu = c_.attributes.mtu;
  const bool first = packet_ == 0, last = packet_ + 1 == slot.packets;
  const u64 offset = u64{packet_} * mtu;
  const std::size_t bytes = std::min<u64>(mtu, slot.bytes - offset);
  Headers h = headers(request);
  h.operation = operation_of(request.opcode, first, last);
  h.range = {
      .address = request.remote_address, .key = request.remote_key, .length = static_cast<u32>(slot.bytes)};
  if (last) {
    h.solicited = (request.flags & kSolicited) != 0;
    h.immediate = h.invalidate_key = request.immediate_or_key;
  }
  if (reliable(c_.service)) {
    const u32 most = lossless_ ? kAskAfter : std::max(window_ / 4, 1U);
    h.wants_ack = last || since_asked_ + 1 >= most;
  }
  Packet packet;
  if (!packet.begin(*c_.path, h, bytes)) return Step::full;
  if (!fill(slot, offset, bytes, packet.payload)) {
    // The room is not used: the next packet is written over it.
    slot.status = Status::local_protection;
    return Step::done;
  }
  packet.end(*c_.path, c_.counters);
  since_asked_ = h.wants_ack ? 0 : since_asked_ + 1;
  packet_sent(slot, 1, bytes);
  return Step::sent;
}

/// Of a READ or an atomic, whose answer takes `packets` numbers.
void Requester::question_sent(SendSlot& slot, u32 packets, u64 payload) {
  since_asked_ = 0;
  if (!slot.counted) ++reads_;
  slot.counted = true;
  packet_sent(slot, packets, payload);
}

Requester::Step Requester::send_read(SendSlot& slot) {
  if (!slot.counted && reads_ >= c_.attributes.reads_as_requester) return Step::wait;
  const u32 room = room_in_window();
  if (room == 0) return Step::wait;
  // A long one is asked for in parts that begin and end at fixed places, whatever the window is at the time:
  // the responder remembers each part by itself, answers no request that goes beyond one, and which of them
  // it has seen is not known here. It may have to remember only one, so the next part waits.
  if (slot.part == 0) slot.part = lossless_ ? kMostInFlight : kReadPart;
  const bool alone = oldest_psn_ == next_psn_;
  const u32 packets = std::min(slot.packets - packet_, slot.part - packet_ % slot.part);
  if (!alone && (packet_ != 0 || packets > room)) return Step::wait;
  const u32 mtu = c_.attributes.mtu;
  const u64 offset = u64{packet_} * mtu;
  Headers h = headers(slot.request);
  h.operation = Operation::read_request;
  h.wants_ack = true;
  h.range = {.address = slot.request.remote_address + offset,
             .key = slot.request.remote_key,
             .length = static_cast<u32>(std::min<u64>(slot.bytes - offset, u64{packets} * mtu))};
  Packet packet;
  if (!packet.begin(*c_.path, h, 0)) return Step::full;
  packet.end(*c_.path, c_.counters);
  question_sent(slot, packets);
  return Step::sent;
}

Requester::Step Requester::send_atomic(SendSlot& slot) {
  if (!slot.counted && reads_ >= c_.attributes.reads_as_requester) return Step::wait;
  if (room_in_window() == 0) return Step::wait;
  const SendRequest& request = slot.request;
  const bool swap = request.opcode == WrOpcode::compare_swap;
  Headers h = headers(request);
  const bool write = request.opcode == WrOpcode::atomic_write;
  h.operation = write ? Operation::atomic_write : swap ? Operation::compare_swap : Operation::fetch_add;
  h.wants_ack = true;
  const u32 bytes = write ? sizeof request.swap : 0;
  h.range = {.address = request.remote_address, .key = request.remote_key, .length = bytes};
  h.swap_or_add = swap ? request.swap : request.compare_or_add;
  h.compare = swap ? request.compare_or_add : 0;
  Packet packet;
  if (!packet.begin(*c_.path, h, bytes)) return Step::full;
  if (write) std::memcpy(packet.payload, &request.swap, sizeof request.swap);
  packet.end(*c_.path, c_.counters);
  question_sent(slot, 1, bytes);
  return Step::sent;
}

Requester::Step Requester::send_datagram(SendSlot& slot) {
  const SendRequest& request = slot.request;
  if (datagram_path_ == nullptr || datagram_path_->peer() != request.to)
    datagram_path_ = &c_.carrier.path(request.to);
  constexpr u32 kUseOwn = 1U << 31;
  Headers h = headers(request);
  h.operation = operation_of(request.opcode, true, true);
  h.queue_pair = request.to_queue_pair & kMask24;
  h.queue_key = (request.queue_key & kUseOwn) != 0 ? c_.attributes.queue_key : request.queue_key;
  h.source_queue_pair = c_.number;
  h.solicited = (request.flags & kSolicited) != 0;
  h.immediate = request.immediate_or_key;
  Packet packet;
  if (!packet.begin(*datagram_path_, h, slot.bytes)) return Step::full;
  if (!fill(slot, 0, slot.bytes, packet.payload)) {
    slot.status = Status::local_protection;
    return Step::done;
  }
  packet.end(*datagram_path_, c_.counters);
  packet_sent(slot, 1, slot.bytes);
  return Step::sent;
}

void Requester::packet_sent(SendSlot& slot, u32 packets, u64 payload) {
  const auto opcode = static_cast<std::size_t>(slot.request.opcode);
  const bool again = psn_difference(end_psn_, next_psn_) > 0;
  if (again) {
    count(c_.counters.retransmitted_packets);
  } else {
    count(c_.counters.bytes_sent[opcode], payload);
    if (packet_ == 0) count(c_.counters.messages_sent[opcode]);
  }
  next_psn_ = psn_after(next_psn_, packets);
  if (psn_difference(next_psn_, end_psn_) > 0) {
    end_psn_ = next_psn_;
    if (!timed_ && !lossless_) {
      timed_ = true;
      timed_psn_ = next_psn_;
      timed_at_ = c_.clock.ran_ns;
    }
  }
  packet_ += packets;
  if (packet_ >= slot.packets) {
    ++current_;
    packet_ = 0;
  }
  if (!reliable(c_.service)) {
    // Nothing comes back: sent is done.
    oldest_psn_ = next_psn_;
    retire();
  } else if (deadline_ == 0) {
    restart_timer();
  }
}

u64 Requester::patience() const {
  const u64 asked = timeout_ns(c_.attributes.timeout);
  return asked != 0 && lossless_ ? std::max(asked, kPatienceNs) : asked;
}

void Requester::restart_timer() {
  if (waits_for_receiver_ || holds_) return;
  const u64 patience_ns = patience();
  set_deadline(patience_ns == 0 || oldest_psn_ == end_psn_ ? 0 : c_.clock.ran_ns + patience_ns);
  probes_ = 0;
  set_probe();
}

void Requester::set_probe() {
  probe_at_ = 0;
  if (lossless_ || deadline_ == 0 || round_trip_ns_ == 0) return;
  const u64 at = c_.clock.ran_ns + (std::max(kLeastProbeNs, 4 * round_trip_ns_) << probes_);
  if (at < deadline_) probe_at_ = at;
}

/// After progress: of packets that were sent once, because the answer to another may be the first one's.
void Requester::measure_round_trip() {
  if (!timed_ || psn_difference(oldest_psn_, timed_psn_) < 0) return;
  const u64 took = std::max<u64>(c_.clock.ran_ns - timed_at_, 1);
  round_trip_ns_ = round_trip_ns_ == 0 ? took : (7 * round_trip_ns_ + took) / 8 + 1;
  timed_ = false;
}

bool Requester::drained() {
  return oldest_psn_ == end_psn_ && packet_ == 0 && current_ == queue_.oldest() &&
         (idle() || !queue_.at(current_).started);
}

bool Requester::wants(const SendSlot& slot, Status status) const {
  return status != Status::success || c_.signal_all || (slot.request.flags & kSignaled) != 0;
}

void Requester::finish(SendSlot& slot, Status status) {
  if (slot.counted) --reads_;
  const bool wanted = !slot.reported && wants(slot, status);
  Completion completion = completion_of(slot, status);
  // Who sees the completion may post the next request at once.
  queue_.release();
  if (wanted) c_.complete(*c_.send_completions, completion, false);
}

void Requester::retire() {
  while (queue_.oldest() != current_) {
    SendSlot& slot = queue_.at(queue_.oldest());
    if (psn_difference(oldest_psn_, slot.end_psn()) < 0) return;
    if (slot.fault == CompletionFault::error) {
      injected(slot);
      fail_oldest(Status::remote_operation);
      return;
    }
    finish(slot, Status::success);
  }
}

void Requester::fail_oldest(Status status) {
  SendSlot& slot = queue_.at(queue_.oldest());
  if (current_ == queue_.oldest()) ++current_;
  finish(slot, status);
  set_deadline(0);
  c_.fail(reliable(c_.service) ? Connection::Trouble::queue_pair : Connection::Trouble::send_queue);
}

void Requester::flush() {
  while (!idle()) finish(queue_.at(queue_.oldest()), Status::flushed);
  current_ = queue_.oldest();
  packet_ = reads_ = 0;
  oldest_psn_ = next_psn_ = end_psn_;
  set_deadline(0);
  waits_for_receiver_ = holds_ = timed_ = recovering_ = unfinished_ = blocked_ = false;
}

}  // namespace doorbell::roce
