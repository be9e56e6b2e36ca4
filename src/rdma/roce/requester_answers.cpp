// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The answers to a requester: acknowledgements, data of READs and atomics, refusals; and nothing.
#include "rdma/roce/requester.hpp"

namespace doorbell::roce {

namespace {
constexpr u32 kLeastWindow = 4, kLargestWindow = 64;
}

bool Requester::in_flight(u32 psn) const {
  return psn_difference(psn, oldest_psn_) >= 0 && psn_difference(psn, end_psn_) < 0;
}

void Requester::answered(const Decoded& packet) {
  switch (packet.headers.operation) {
    case Operation::acknowledge:
      if (packet.headers.ack.kind == Acknowledge::Kind::ack) acknowledge(packet.headers);
      else negative(packet.headers);
      return;
    case Operation::atomic_acknowledge:
      atomic_response(packet.headers);
      return;
    default:
      read_response(packet);
  }
}

/// Takes all before `psn`, which is in flight or the end of it, as acknowledged. False: a READ or an atomic
/// lies in between whose answer has not come, so it is lost; or the queue pair is in error since.
bool Requester::acknowledge_before(u32 psn) {
  const u32 before = oldest_psn_;
  bool complete = true;
  for (u64 index = queue_.oldest(); psn_difference(psn, oldest_psn_) > 0; ++index) {
    SendSlot& slot = queue_.at(index);
    if (slot.packets == 0) continue;
    if (slot.answered()) {
      complete = false;
      break;
    }
    oldest_psn_ = psn_difference(psn, slot.end_psn()) < 0 ? psn : slot.end_psn();
  }
  if (oldest_psn_ != before) progress();
  return complete && c_.trouble == Connection::Trouble::none;
}

void Requester::progress() {
  retries_ = rnr_retries_ = 0;
  recovering_ = false;
  measure_round_trip();
  if (++window_credit_ >= window_) {
    window_credit_ = 0;
    if (window_ < kLargestWindow) ++window_;
  }
  // An answer to what was sent before the requester went back makes sending it again needless.
  if (psn_difference(oldest_psn_, next_psn_) > 0) go_back(oldest_psn_);
  restart_timer();
  retire();
}

void Requester::acknowledge(const Headers& headers) {
  if (!in_flight(headers.psn)) return;
  if (!acknowledge_before(psn_after(headers.psn, 1))) implied_loss();
}

void Requester::negative(const Headers& headers) {
  const Acknowledge& ack = headers.ack;
  if (!in_flight(headers.psn) || ack.kind == Acknowledge::Kind::reserved) return;
  if (!acknowledge_before(headers.psn)) {
    // The answer in between comes first; whoever refused refuses again.
    implied_loss();
    return;
  }
  if (ack.kind == Acknowledge::Kind::rnr) {
    count(c_.counters.rnr_received);
    constexpr u8 kForEver = 7;
    if (c_.attributes.rnr_retries != kForEver && rnr_retries_ >= c_.attributes.rnr_retries) {
      fail_oldest(Status::rnr_retry_exceeded);
      return;
    }
    ++rnr_retries_;
    go_back(headers.psn);
    waits_for_receiver_ = true;
    set_deadline(c_.clock.ran_ns + rnr_timer_ns(ack.value));
    return;
  }
  if (ack.value > static_cast<u8>(NakCode::invalid_rd)) return;
  count(c_.counters.naks_received[ack.value]);
  switch (static_cast<NakCode>(ack.value)) {
    case NakCode::sequence:
      retry(headers.psn);
      return;
    case NakCode::remote_access:
      fail_oldest(Status::remote_access);
      return;
    case NakCode::remote_operation:
      fail_oldest(Status::remote_operation);
      return;
    default:
      fail_oldest(Status::remote_invalid_request);
  }
}

void Requester::read_response(const Decoded& packet) {
  const u32 psn = packet.headers.psn;
  if (!in_flight(psn)) return;
  if (psn != oldest_psn_ && !acknowledge_before(psn)) {
    implied_loss();
    return;
  }
  const u64 index = queue_.oldest();
  SendSlot& slot = queue_.at(index);
  const int number = psn_difference(psn, slot.first_psn);
  if (!slot.reads() || number < 0 || psn_difference(psn, slot.end_psn()) >= 0) {
    count(c_.counters.dropped);
    return;
  }
  const u64 offset = u64{static_cast<u32>(number)} * c_.attributes.mtu;
  const u64 expected = std::min<u64>(c_.attributes.mtu, slot.bytes - offset);
  if (packet.payload.size() != expected) {
    fail_oldest(Status::bad_response);
    return;
  }
  if (expected != 0 &&
      !scatter(c_.keys, c_.protection_domain, queue_.sges(index), slot.at, offset, packet.payload)) {
    fail_oldest(Status::local_protection);
    return;
  }
  count(c_.counters.bytes_received, expected);
  oldest_psn_ = psn_after(psn, 1);
  progress();
}

void Requester::atomic_response(const Headers& headers) {
  if (!in_flight(headers.psn)) return;
  if (headers.psn != oldest_psn_ && !acknowledge_before(headers.psn)) {
    implied_loss();
    return;
  }
  const u64 index = queue_.oldest();
  SendSlot& slot = queue_.at(index);
  if (!slot.answered() || slot.reads() || slot.first_psn != headers.psn) {
    count(c_.counters.dropped);
    return;
  }
  u8 original[8];
  std::memcpy(original, &headers.original, sizeof original);
  if (!scatter(c_.keys, c_.protection_domain, queue_.sges(index), slot.at, 0, original)) {
    fail_oldest(Status::local_protection);
    return;
  }
  oldest_psn_ = psn_after(headers.psn, 1);
  progress();
}

void Requester::go_back(u32 psn) {
  next_psn_ = psn;
  timed_ = false;
  u64 index = queue_.oldest();
  for (; index != queue_.posted(); ++index) {
    SendSlot& slot = queue_.at(index);
    if (!slot.started) break;
    if (slot.packets != 0 && psn_difference(psn, slot.end_psn()) < 0) break;
    // A request without packets that has not had its turn yet is the next one.
    if (slot.packets == 0 && index == current_) break;
  }
  packet_ = index != queue_.posted() && queue_.at(index).started
                ? static_cast<u32>(psn_difference(psn, queue_.at(index).first_psn))
                : 0;
  current_ = index;
  since_asked_ = 0;
}

void Requester::retry(u32 psn) {
  // Behind the packet that the receiver was not ready for, a peer may still refuse those that were under way
  // with it (Linux's soft-RoCE does: out of sequence). They are sent again with it.
  if (waits_for_receiver_) return;
  if (retries_ >= c_.attributes.retries) {
    fail_oldest(Status::retry_exceeded);
    return;
  }
  ++retries_;
  window_ = std::max(window_ / 2, kLeastWindow);
  window_credit_ = 0;
  go_back(psn);
  restart_timer();
}

/// Something behind the oldest answer has come, so that answer is lost. Once: what was sent before the
/// requester went back is still answered.
void Requester::implied_loss() {
  if (recovering_ || c_.trouble != Connection::Trouble::none) return;
  recovering_ = true;
  retry(oldest_psn_);
}

/// The peer acknowledges again what it has, executes the packet that it lacks, or says which it lacks.
void Requester::probe() {
  count(c_.counters.probes);
  ++probes_;
  go_back(oldest_psn_);
  set_probe();
}

void Requester::expire() {
  if (probe_at_ != 0 && c_.clock.ran_ns < deadline_) {
    probe();
    return;
  }
  set_deadline(0);
  if (holds_) {
    holds_ = false;
    return;
  }
  if (waits_for_receiver_) {
    waits_for_receiver_ = false;
    restart_timer();
    return;
  }
  count(c_.counters.timeouts);
  recovering_ = false;
  retry(oldest_psn_);
}

}  // namespace doorbell::roce
