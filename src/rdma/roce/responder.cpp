// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/roce/responder.hpp"

#include <atomic>

namespace doorbell::roce {

namespace {

bool is_write(Operation operation) {
  return operation >= Operation::write_first && operation <= Operation::write_only_immediate;
}

/// Copies data that a program may poll for: the last bytes become visible last, as a NIC's do.
void write_last(u8* to, std::span<const u8> from) {
  constexpr std::size_t kWord = 8;
  const std::size_t before = from.size() > kWord ? from.size() - kWord : 0;
  std::memcpy(to, from.data(), before);
  std::atomic_thread_fence(std::memory_order_release);
  std::memcpy(to + before, from.data() + before, from.size() - before);
}

}  // namespace

void Responder::reset() {
  expected_ = c_.attributes.receive_psn & kMask24;
  msn_ = 0;
  refused_ = skipping_ = blocked_ = false;
  message_ = Message::none;
  receive_.taken = false;
  remembered_count_ = 0;
  stop();
}

void Responder::say(Reply reply, u8 value, u32 psn) {
  reply_ = reply;
  reply_value_ = value;
  reply_psn_ = psn;
}

/// Refuses the expected packet for good.
bool Responder::refuse(NakCode code) {
  say(Reply::nak, static_cast<u8>(code), expected_);
  refused_ = true;
  if (code == NakCode::remote_access) c_.fail(Connection::Trouble::queue_pair, Event::qp_access_error);
  else if (code == NakCode::invalid_request)
    c_.fail(Connection::Trouble::queue_pair, Event::qp_request_error);
  else c_.fail(Connection::Trouble::queue_pair);
  return false;
}

void Responder::arrived(const Decoded& packet) {
  if (c_.service == Service::uc) return unreliable(packet);
  const int ahead = psn_difference(packet.headers.psn, expected_);
  if (ahead == 0) return execute(packet);
  if (ahead < 0) return duplicate(packet);
  count(c_.counters.out_of_order);
  // One refusal until the expected packet comes; an acknowledgement that is due is part of it.
  if (refused_) return;
  refused_ = true;
  say(Reply::nak, static_cast<u8>(NakCode::sequence), expected_);
}

void Responder::execute(const Decoded& packet) {
  const Headers& h = packet.headers;
  // A refusal that has not left yet is overtaken.
  if (reply_ != Reply::ack) reply_ = Reply::none;
  u32 packets = 1;
  bool done = false;
  if (packet.shape.xrceth && !aim_at(h.shared_receives)) return;
  if (h.operation == Operation::read_request) {
    packets = packets_of(h.range.length, c_.attributes.mtu);
    done = read_request(h);
  } else if (packet.shape.atomic) {
    done = atomic_request(h);
  } else if (h.operation == Operation::atomic_write) {
    done = atomic_write(packet);
  } else if (is_write(h.operation)) {
    done = write_packet(packet);
  } else {
    done = message_packet(packet);
  }
  if (!done) return;
  refused_ = false;
  expected_ = psn_after(expected_, packets);
  // READs and atomics are acknowledged by their answers.
  if (h.wants_ack && packet.shape.payload && h.operation != Operation::atomic_write)
    say(Reply::ack, 0, h.psn);
}

/// XRC: whom the packet is for. False: it has been refused.
bool Responder::aim_at(u32 shared_receives) {
  SharedReceives* named = xrc_.find(shared_receives);
  if (named == nullptr || named->xrc_domain() != c_.xrc_domain) return refuse(NakCode::remote_access);
  // A message is for one.
  if (message_ != Message::none && named != target_.shared) return refuse(NakCode::invalid_request);
  target_ = {named, named->completions(), named->protection_domain()};
  return true;
}

void Responder::forget(const SharedReceives& receives) {
  if (target_.shared != &receives) return;
  // A receive that a message has taken goes with its queue; the rest of the message finds none.
  receive_.taken = false;
  target_ = {};
}

bool Responder::fits(const Decoded& packet, Message kind) const {
  const bool starts = packet.shape.starts, ends = packet.shape.ends;
  if (message_ != (starts ? Message::none : kind)) return false;
  const std::size_t bytes = packet.payload.size();
  if (!ends) return bytes == c_.attributes.mtu;
  return bytes <= c_.attributes.mtu && (starts || bytes > 0);
}

bool Responder::take_receive() {
  return target_.shared != nullptr ? target_.shared->take(receive_) : own_.take(receive_);
}

/// RC, XRC: the peer tries again later. Nothing has been taken.
bool Responder::no_receive() {
  if (!reliable(c_.service)) {
    count(c_.counters.dropped_no_receive);
    return false;
  }
  refused_ = true;
  say(Reply::rnr, c_.attributes.rnr_timer & 0x1F, expected_);
  return false;
}

/// The receive ends badly, and the queue pair with it; the peer of RC and XRC is told.
void Responder::fail_receive(Status status) {
  Completion completion;
  completion.id = receive_.id;
  completion.status = status;
  completion.opcode = WcOpcode::receive;
  receive_.taken = false;
  message_ = Message::none;
  c_.complete(*target_.completions, completion, true);
  if (reliable(c_.service)) {
    say(Reply::nak,
        static_cast<u8>(status == Status::local_length ? NakCode::invalid_request
                                                       : NakCode::remote_operation),
        expected_);
    refused_ = true;
  }
  c_.fail(Connection::Trouble::queue_pair);
}

void Responder::complete_receive(const Decoded& packet, WcOpcode opcode, u64 bytes, u8 flags) {
  Completion completion;
  completion.id = receive_.id;
  completion.opcode = opcode;
  completion.bytes = static_cast<u32>(bytes);
  completion.flags = flags;
  if (packet.shape.immediate) {
    completion.flags |= kHasImmediate;
    completion.immediate_or_key = packet.headers.immediate;
  } else if (packet.shape.invalidate) {
    completion.flags |= kHasInvalidated;
    completion.immediate_or_key = packet.headers.invalidate_key;
  }
  completion.source_queue_pair =
      packet.shape.deth ? packet.headers.source_queue_pair : c_.attributes.destination;
  receive_.taken = false;
  c_.complete(*target_.completions, completion, packet.headers.solicited);
}

/// A packet of a SEND. True: it has been carried out.
bool Responder::message_packet(const Decoded& packet) {
  if (!fits(packet, Message::send)) return reliable(c_.service) && refuse(NakCode::invalid_request);
  if (packet.shape.starts) {
    // UC: a receive whose message broke off serves the next one.
    if (!receive_.taken && !take_receive()) return no_receive();
    receive_.at = {};
    done_ = 0;
  }
  const std::size_t bytes = packet.payload.size();
  if (done_ + bytes > receive_.bytes) {
    fail_receive(Status::local_length);
    return false;
  }
  if (!scatter(c_.keys, target_.protection_domain, receive_.pieces(), receive_.at, done_, packet.payload)) {
    fail_receive(Status::local_protection);
    return false;
  }
  if (packet.shape.invalidate &&
      !c_.keys.invalidate(packet.headers.invalidate_key, target_.protection_domain, c_.number))
    return refuse(NakCode::remote_access);
  count(c_.counters.bytes_received, bytes);
  done_ += bytes;
  message_ = packet.shape.ends ? Message::none : Message::send;
  if (packet.shape.ends) {
    msn_ = psn_after(msn_, 1);
    complete_receive(packet, WcOpcode::receive, done_, 0);
  }
  return true;
}

bool Responder::write_packet(const Decoded& packet) {
  const std::size_t bytes = packet.payload.size();
  if (!fits(packet, Message::write)) return reliable(c_.service) && refuse(NakCode::invalid_request);
  const RemoteRange range = packet.shape.starts ? packet.headers.range : write_;
  const u64 before = packet.shape.starts ? 0 : done_;
  // The sum is what RETH said: the last packet ends it, and no other one does.
  if (packet.shape.ends ? before + bytes != range.length : before + bytes >= range.length)
    return reliable(c_.service) && refuse(NakCode::invalid_request);
  if ((c_.attributes.access & kRemoteWrite) == 0)
    return reliable(c_.service) && refuse(NakCode::remote_access);
  u8* to = nullptr;
  if (range.length != 0) {
    // The first packet asks for the whole range, so that a message which cannot end does not begin; each
    // other one asks again, because the key may have gone meanwhile.
    to = c_.keys.find(range.key, target_.protection_domain, c_.number, range.address + before,
                      packet.shape.starts ? range.length : bytes, kRemoteWrite);
    if (to == nullptr) return reliable(c_.service) && refuse(NakCode::remote_access);
  }
  if (packet.shape.immediate && !receive_.taken && !take_receive()) return no_receive();
  if (to != nullptr && bytes != 0) {
    if (packet.shape.ends) write_last(to, packet.payload);
    else std::memcpy(to, packet.payload.data(), bytes);
    count(c_.counters.bytes_received, bytes);
  }
  write_ = range;
  done_ = before + bytes;
  message_ = packet.shape.ends ? Message::none : Message::write;
  if (packet.shape.ends) {
    msn_ = psn_after(msn_, 1);
    if (packet.shape.immediate) complete_receive(packet, WcOpcode::receive_write_immediate, done_, 0);
  }
  return true;
}

Responder::Remembered& Responder::remember(Answer answer, const Headers& headers, u32 packets) {
  const u32 depth = std::clamp<u32>(c_.attributes.reads_as_responder, 1, kMostReads);
  Remembered& entry = remembered_[remembered_count_++ % depth];
  entry = {.answer = answer,
           .psn = headers.psn,
           .packets = packets,
           .range = headers.range,
           .protection_domain = target_.protection_domain};
  return entry;
}

bool Responder::read_request(const Headers& h) {
  if (message_ != Message::none || c_.attributes.reads_as_responder == 0 || h.range.length > u64{1} << 31)
    return refuse(NakCode::invalid_request);
  if ((c_.attributes.access & kRemoteRead) == 0) return refuse(NakCode::remote_access);
  if (h.range.length != 0 && c_.keys.find(h.range.key, target_.protection_domain, c_.number, h.range.address,
                                          h.range.length, kRemoteRead) == nullptr)
    return refuse(NakCode::remote_access);
  // More than there is room for: as if it had been lost.
  if (waiting_jobs() == jobs_.size()) return false;
  const u32 packets = packets_of(h.range.length, c_.attributes.mtu);
  remember(Answer::data, h, packets);
  msn_ = psn_after(msn_, 1);
  push_job() = {.psn = h.psn,
                .packets = packets,
                .msn = msn_,
                .range = h.range,
                .protection_domain = target_.protection_domain};
  return true;
}

bool Responder::atomic_request(const Headers& h) {
  constexpr u64 kBytes = 8;
  if (message_ != Message::none || c_.attributes.reads_as_responder == 0 || h.range.address % kBytes != 0)
    return refuse(NakCode::invalid_request);
  if ((c_.attributes.access & kRemoteAtomic) == 0) return refuse(NakCode::remote_access);
  u8* memory =
      c_.keys.find(h.range.key, target_.protection_domain, c_.number, h.range.address, kBytes, kRemoteAtomic);
  if (memory == nullptr) return refuse(NakCode::remote_access);
  // An address of the peer may be aligned where the memory is not.
  if (reinterpret_cast<u64>(memory) % kBytes != 0) return refuse(NakCode::invalid_request);
  if (waiting_jobs() == jobs_.size()) return false;
  const std::atomic_ref<u64> word(*reinterpret_cast<u64*>(memory));
  u64 original = h.compare;
  if (h.operation == Operation::fetch_add)
    original = word.fetch_add(h.swap_or_add, std::memory_order_seq_cst);
  else word.compare_exchange_strong(original, h.swap_or_add, std::memory_order_seq_cst);
  remember(Answer::value, h, 1).original = original;
  msn_ = psn_after(msn_, 1);
  push_job() = {.atomic = true, .psn = h.psn, .packets = 1, .msn = msn_, .range = {}, .original = original};
  return true;
}

bool Responder::atomic_write(const Decoded& packet) {
  const Headers& h = packet.headers;
  u64 value = 0;
  if (message_ != Message::none || c_.attributes.reads_as_responder == 0 ||
      packet.payload.size() != sizeof value || h.range.length != sizeof value ||
      h.range.address % sizeof value != 0)
    return refuse(NakCode::invalid_request);
  if ((c_.attributes.access & kRemoteWrite) == 0) return refuse(NakCode::remote_access);
  u8* memory = c_.keys.find(h.range.key, target_.protection_domain, c_.number, h.range.address, sizeof value,
                            kRemoteWrite);
  if (memory == nullptr) return refuse(NakCode::remote_access);
  if (reinterpret_cast<u64>(memory) % sizeof value != 0) return refuse(NakCode::invalid_request);
  if (waiting_jobs() == jobs_.size()) return false;
  std::memcpy(&value, packet.payload.data(), sizeof value);
  // Whoever sees the value sees all that was written before.
  std::atomic_ref<u64>(*reinterpret_cast<u64*>(memory)).store(value, std::memory_order_release);
  count(c_.counters.bytes_received, sizeof value);
  remember(Answer::none, h, 1);
  msn_ = psn_after(msn_, 1);
  push_job() = {.psn = h.psn, .packets = 1, .msn = msn_, .range = {}};
  return true;
}

void Responder::flush() {
  const auto flushed = [&] {
    Completion completion;
    completion.id = receive_.id;
    completion.status = Status::flushed;
    completion.opcode = WcOpcode::receive;
    receive_.taken = false;
    c_.complete(*target_.completions, completion, true);
  };
  message_ = Message::none;
  if (receive_.taken) flushed();
  if (target_.shared != nullptr) return;
  while (own_.take(receive_)) flushed();
}

}  // namespace doorbell::roce
