// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The packets of a responder, and how it treats duplicates and unreliable packets.
#include "rdma/roce/responder.hpp"

namespace doorbell::roce {

/// A request that was carried out before: its answer has been lost, or the network made two of it.
void Responder::duplicate(const Decoded& packet) {
  const Headers& h = packet.headers;
  count(c_.counters.duplicates);
  const bool read = h.operation == Operation::read_request;
  const bool write = h.operation == Operation::atomic_write;
  const Answer answer = read ? Answer::data : write ? Answer::none : Answer::value;
  if (!read && !write && !packet.shape.atomic) {
    // An ACK carries the newest PSN, whichever was asked for again. A refusal that waits says as much.
    if (reply_ == Reply::none) say(Reply::ack, 0, psn_after(expected_, kMask24));
    return;
  }
  // An answer that has not left yet is on its way.
  for (u32 i = first_job_; i != end_job_; ++i) {
    const Job& job = jobs_[i % jobs_.size()];
    const int within = psn_difference(h.psn, job.psn);
    if (within >= static_cast<int>(job.sent) && within < static_cast<int>(job.packets)) return;
  }
  const u32 depth = std::clamp<u32>(c_.attributes.reads_as_responder, 1, kMostReads);
  const u32 held = std::min(remembered_count_, depth);
  for (u32 i = 0; i < held; ++i) {
    const Remembered& entry = remembered_[i];
    const int within = psn_difference(h.psn, entry.psn);
    if (entry.answer != answer || within < 0 || within >= static_cast<int>(entry.packets)) continue;
    if (waiting_jobs() == jobs_.size()) return;
    if (!read) {
      if (entry.range.address != h.range.address || entry.range.key != h.range.key) return;
      count(c_.counters.replayed_atomics);
      push_job() = {
          .atomic = !write, .psn = h.psn, .packets = 1, .msn = msn_, .range = {}, .original = entry.original};
      return;
    }
    const u64 offset = u64{static_cast<u32>(within)} * c_.attributes.mtu;
    if (h.range.key != entry.range.key || h.range.address != entry.range.address + offset ||
        h.range.length > entry.range.length - offset)
      return;
    push_job() = {.psn = h.psn,
                  .packets = packets_of(h.range.length, c_.attributes.mtu),
                  .msn = msn_,
                  .range = h.range,
                  .protection_domain = entry.protection_domain};
    return;
  }
}

/// UC: what does not fit is dropped without a word, up to the next message.
void Responder::unreliable(const Decoded& packet) {
  const Headers& h = packet.headers;
  if (h.psn != expected_ || (packet.shape.starts && message_ != Message::none)) {
    count(c_.counters.out_of_order);
    message_ = Message::none;
    skipping_ = true;
  }
  expected_ = psn_after(h.psn, 1);
  if (packet.shape.starts) skipping_ = false;
  if (skipping_) {
    count(c_.counters.dropped);
    return;
  }
  const bool done = h.operation >= Operation::write_first && h.operation <= Operation::write_only_immediate
                        ? write_packet(packet)
                        : message_packet(packet);
  if (done) return;
  count(c_.counters.dropped);
  message_ = Message::none;
  skipping_ = true;
}

void Responder::datagram(const Decoded& packet, const Endpoint& source) {
  constexpr std::size_t kGrh = 40;
  if (packet.headers.queue_key != c_.attributes.queue_key) {
    count(c_.counters.dropped_queue_key);
    return;
  }
  if (!receive_.taken && !take_receive()) {
    count(c_.counters.dropped_no_receive);
    return;
  }
  const std::size_t bytes = packet.payload.size();
  // The receive stays for the next one.
  if (kGrh + bytes > receive_.bytes) {
    count(c_.counters.dropped);
    return;
  }
  // The second half of the place for InfiniBand's global header has IPv4's.
  u8 grh[kGrh] = {};
  u8* ip = grh + 20;
  const auto store16 = [&](std::size_t at, u32 value) {
    ip[at] = static_cast<u8>(value >> 8);
    ip[at + 1] = static_cast<u8>(value);
  };
  const auto store32 = [&](std::size_t at, u32 value) {
    store16(at, value >> 16);
    store16(at + 2, value);
  };
  constexpr std::size_t kIpAndUdp = 28;
  ip[0] = 0x45;
  store16(2,
          static_cast<u32>(kIpAndUdp + header_bytes(packet.shape) + bytes + packet.headers.pad + kIcrcBytes));
  store16(6, 0x4000);
  ip[8] = 64;
  ip[9] = 17;
  store32(12, source.address);
  store32(16, c_.carrier.self().address);
  u32 sum = 0;
  for (std::size_t i = 0; i < 20; i += 2) sum += static_cast<u32>(ip[i] << 8 | ip[i + 1]);
  while (sum >> 16 != 0) sum = (sum & 0xFFFF) + (sum >> 16);
  store16(10, ~sum & 0xFFFF);
  receive_.at = {};
  if (!scatter(c_.keys, target_.protection_domain, receive_.pieces(), receive_.at, 0, grh) ||
      !scatter(c_.keys, target_.protection_domain, receive_.pieces(), receive_.at, kGrh, packet.payload)) {
    fail_receive(Status::local_protection);
    return;
  }
  count(c_.counters.bytes_received, bytes);
  complete_receive(packet, WcOpcode::receive, kGrh + bytes, kHasGrh);
}

bool Responder::send() {
  blocked_ = false;
  if (!unfinished()) return false;
  bool did = false;
  for (u32 turn = 0; turn < kTurn; ++turn) {
    if (waiting_jobs() > 0) {
      Job& job = jobs_[first_job_ % jobs_.size()];
      if (!send_job(job)) break;
      if (waiting_jobs() > 0 && job.sent == job.packets) {
        ++first_job_;
        // The answer acknowledges all before it.
        if (reply_ == Reply::ack && psn_difference(reply_psn_, psn_after(job.psn, job.packets)) < 0)
          reply_ = Reply::none;
      }
    } else {
      if (reply_ == Reply::none || !send_reply()) break;
    }
    did = true;
  }
  return did;
}

/// One packet of an answer. False: the path is full.
bool Responder::send_job(Job& job) {
  Headers h;
  h.service = c_.service;
  h.queue_pair = c_.attributes.destination;
  h.psn = psn_after(job.psn, job.sent);
  h.ack.msn = job.msn;
  Packet packet;
  if (job.atomic) {
    h.operation = Operation::atomic_acknowledge;
    h.original = job.original;
    if (!packet.begin(*c_.path, h, 0)) {
      blocked_ = true;
      return false;
    }
  } else {
    const bool first = job.sent == 0, last = job.sent + 1 == job.packets;
    using enum Operation;
    h.operation = first ? (last ? read_response_only : read_response_first)
                        : (last ? read_response_last : read_response_middle);
    const u64 offset = u64{job.sent} * c_.attributes.mtu;
    const std::size_t bytes = std::min<u64>(c_.attributes.mtu, job.range.length - offset);
    const u8* from = nullptr;
    // The memory may have been given back since the request came.
    if (bytes != 0)
      from = c_.keys.find(job.range.key, job.protection_domain, c_.number, job.range.address + offset, bytes,
                          kRemoteRead);
    if (bytes != 0 && from == nullptr) {
      first_job_ = end_job_;
      refuse(NakCode::remote_access);
      reply_psn_ = h.psn;
      return true;
    }
    if (!packet.begin(*c_.path, h, bytes)) {
      blocked_ = true;
      return false;
    }
    if (bytes != 0) std::memcpy(packet.payload, from, bytes);
    count(c_.counters.bytes_sent[static_cast<std::size_t>(WrOpcode::read)], bytes);
  }
  packet.end(*c_.path, c_.counters);
  ++job.sent;
  return true;
}

bool Responder::send_reply() {
  Headers h;
  h.service = c_.service;
  h.operation = Operation::acknowledge;
  h.queue_pair = c_.attributes.destination;
  h.ack.msn = msn_;
  // A refusal says what was expected then; an acknowledgement is as new as it can be.
  h.psn = reply_ == Reply::ack ? psn_after(expected_, kMask24) : reply_psn_;
  if (reply_ != Reply::ack) {
    h.ack.kind = reply_ == Reply::rnr ? Acknowledge::Kind::rnr : Acknowledge::Kind::nak;
    h.ack.value = reply_value_;
  }
  Packet packet;
  if (!packet.begin(*c_.path, h, 0)) {
    blocked_ = true;
    return false;
  }
  packet.end(*c_.path, c_.counters);
  if (reply_ == Reply::rnr) count(c_.counters.rnr_sent);
  if (reply_ == Reply::nak) count(c_.counters.naks_sent[reply_value_]);
  reply_ = Reply::none;
  return true;
}

}  // namespace doorbell::roce
