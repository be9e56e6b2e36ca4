// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/roce/queue_pair.hpp"

#include <cerrno>

#include "rdma/roce/engine.hpp"
#include "rdma/roce/states.hpp"

namespace doorbell::roce {

ModelledQueuePair::ModelledQueuePair(NicEngine& nic, const QueuePairOptions& options, u32 number)
    : nic_(nic),
      c_(nic.keys(), nic.carrier(), nic.clock()),
      inline_bytes_(options.inline_bytes),
      sends_(options.send_requests, options.send_sges, options.inline_bytes, nic.faults() != nullptr),
      receives_(options.shared_receives != nullptr ? 0 : options.receive_requests, options.receive_sges),
      shared_(static_cast<SharedReceives*>(options.shared_receives)),
      requester_(c_, sends_),
      responder_(c_, receives_, nic.xrc_receives()) {
  c_.service = options.service;
  c_.half = options.half;
  c_.xrc_domain = options.xrc_domain;
  c_.number = number;
  c_.protection_domain = options.protection_domain;
  c_.signal_all = options.signal_all;
  // The connection manager's own messages are not the program's.
  if (number != NicEngine::kManagement) c_.faults = nic.faults();
  c_.send_completions = static_cast<CompletionRing*>(options.send_completions);
  c_.receive_completions = static_cast<CompletionRing*>(options.receive_completions);
  c_.attributes = {};
  responder_.aim({shared_, c_.receive_completions, c_.protection_domain});
}

ModelledQueuePair::~ModelledQueuePair() {
  const auto lock = nic_.engine();
  // An acknowledgement that is due leaves: the peer may wait for it, and nobody else answers any more.
  if (c_.state != State::reset && responder_.send()) nic_.carrier().flush();
  nic_.forget(*this);
  forget_completions();
}

/// Those of XRC's receives stay: they are of a queue that goes on.
void ModelledQueuePair::forget_completions() {
  for (CompletionRing* queue : {c_.send_completions, c_.receive_completions})
    if (queue != nullptr) queue->forget(c_.number);
}

void ModelledQueuePair::enter(State state) {
  c_.state = state;
  c_.attributes.state = c_.attributes.current = state;
  state_.store(state, std::memory_order_release);
}

/// Flushes; what the responder still has to say, it says.
void ModelledQueuePair::enter_error() {
  if (c_.state == State::error) return;
  enter(State::error);
  std::atomic_thread_fence(std::memory_order_seq_cst);  // see post_receive()
  requester_.flush();
  responder_.flush();
  c_.trouble = Connection::Trouble::none;
  if (shared_ != nullptr && nic_.listener().queue_pair)
    nic_.listener().queue_pair(*this, Event::last_wqe_reached);
}

/// Carries out what the halves found to be wrong, and keeps the timer.
void ModelledQueuePair::settle() {
  if (c_.trouble != Connection::Trouble::none) {
    const auto trouble = c_.trouble;
    const auto event = c_.event;
    c_.trouble = Connection::Trouble::none;
    c_.event.reset();
    if (trouble == Connection::Trouble::queue_pair) {
      enter_error();
    } else if (c_.state == State::rts || c_.state == State::sqd) {
      enter(State::sqe);
      requester_.flush();
    }
    if (event && nic_.listener().queue_pair) nic_.listener().queue_pair(*this, *event);
    nic_.activate(*this);
  }
  if (requester_.deadline() != 0) nic_.watch(*this);
}

Errno ModelledQueuePair::post(const SendRequest& request, std::span<const Sge> sges) {
  const State state = state_.load(std::memory_order_acquire);
  if (state == State::reset || state == State::init || state == State::rtr) return EINVAL;
  if (c_.half == Half::responder || request.shared_receives > kMask24) return EINVAL;
  const WrOpcode opcode = request.opcode;
  const bool inlined = (request.flags & kInline) != 0;
  const u64 bytes = bytes_of(sges);
  switch (opcode) {
    case WrOpcode::send:
    case WrOpcode::send_immediate:
      break;
    case WrOpcode::write:
    case WrOpcode::write_immediate:
      if (c_.service == Service::ud) return EINVAL;
      break;
    case WrOpcode::local_invalidate:
    case WrOpcode::bind_window:
      if (c_.service == Service::ud || !sges.empty() || inlined) return EINVAL;
      break;
    case WrOpcode::send_invalidate:
      if (!reliable(c_.service)) return EINVAL;
      break;
    case WrOpcode::read:
    case WrOpcode::compare_swap:
    case WrOpcode::fetch_add:
    case WrOpcode::atomic_write:
      if (!reliable(c_.service) || inlined || !may_read_.load(std::memory_order_relaxed)) return EINVAL;
      if (opcode == WrOpcode::read) break;
      // The bytes of an atomic write are in the request.
      if (bytes != (opcode == WrOpcode::atomic_write ? 0U : 8U) || request.remote_address % 8 != 0)
        return EINVAL;
      break;
    default:
      return EINVAL;
  }
  if (bytes > nic_.limits().message_bytes || (inlined && bytes > inline_bytes_)) return EINVAL;
  const Errno refused = sends_.post(request, sges);
  if (refused == 0) nic_.ring(*this);
  return refused;
}

void ModelledQueuePair::fail(u64 id, Status status) {
  SendRequest request;
  request.id = id;
  if (state() != State::reset && c_.half != Half::responder && sends_.post(request, {}, status) == 0)
    nic_.ring(*this);
}

Errno ModelledQueuePair::post_receive(u64 id, std::span<const Sge> sges) {
  const State state = state_.load(std::memory_order_acquire);
  if (shared_ != nullptr || c_.half != Half::both || state == State::reset) return EINVAL;
  const Errno refused = receives_.post(id, sges);
  // The receive is in the queue before the state is read, and the state is written before the queue is
  // flushed: one of the two sides sees the other's.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (refused == 0 && state_.load(std::memory_order_relaxed) == State::error) nic_.ring(*this);
  return refused;
}

bool ModelledQueuePair::sensible(const QueuePairAttributes& a, u32 bits) const {
  if ((bits & kSetMtu) != 0 &&
      ((a.mtu & (a.mtu - 1)) != 0 || a.mtu < 256 || a.mtu > kLargestMtu || a.mtu > c_.carrier.largest_mtu()))
    return false;
  if ((bits & kSetReadsAsRequester) != 0 && a.reads_as_requester > nic_.limits().reads) return false;
  if ((bits & kSetReadsAsResponder) != 0 &&
      (a.reads_as_responder > nic_.limits().reads || a.reads_as_responder > Responder::kMostReads))
    return false;
  if ((bits & kSetRnrTimer) != 0 && a.rnr_timer > 31) return false;
  if ((bits & kSetTimeout) != 0 && a.timeout > 31) return false;
  if ((bits & kSetRetries) != 0 && a.retries > 7) return false;
  if ((bits & kSetRnrRetries) != 0 && a.rnr_retries > 7) return false;
  return (bits & kSetDestination) == 0 || a.destination <= kMask24;
}

QueuePairAttributes ModelledQueuePair::merged(const QueuePairAttributes& a, u32 bits, State to) const {
  QueuePairAttributes all = c_.attributes;
  const auto take = [&](u32 bit, auto member) {
    if ((bits & bit) != 0) all.*member = a.*member;
  };
  using A = QueuePairAttributes;
  take(kSetAccess, &A::access);
  take(kSetQueueKey, &A::queue_key);
  take(kSetPeer, &A::peer);
  take(kSetMtu, &A::mtu);
  take(kSetTimeout, &A::timeout);
  take(kSetRetries, &A::retries);
  take(kSetRnrRetries, &A::rnr_retries);
  take(kSetReceivePsn, &A::receive_psn);
  take(kSetReadsAsRequester, &A::reads_as_requester);
  take(kSetReadsAsResponder, &A::reads_as_responder);
  take(kSetRnrTimer, &A::rnr_timer);
  take(kSetSendPsn, &A::send_psn);
  take(kSetDestination, &A::destination);
  all.receive_psn &= kMask24;
  all.send_psn &= kMask24;
  all.state = all.current = to;
  return all;
}

Errno ModelledQueuePair::modify(const QueuePairAttributes& a, u32 bits) {
  const auto lock = nic_.engine();
  const State from = c_.state;
  if ((bits & kSetCurrent) != 0 && a.current != from) return EINVAL;
  const State to = (bits & kSetState) != 0 ? a.state : from;
  if (to > State::error || to == State::sqe || !may_change(c_.service, c_.half, from, to, bits) ||
      !sensible(a, bits))
    return EINVAL;
  if (to == State::error) {
    responder_.stop();
    enter_error();
    return 0;
  }
  if (to == State::reset) {
    enter(State::reset);
    sends_.clear();
    receives_.clear();
    c_.attributes = {};
    c_.path = nullptr;
    c_.trouble = Connection::Trouble::none;
    c_.event.reset();
    may_read_.store(false, std::memory_order_relaxed);
    requester_.reset();
    responder_.reset();
    drain_told_ = true;
    established_told_ = false;
    forget_completions();
    return 0;
  }
  c_.attributes = merged(a, bits, to);
  if (c_.service == Service::ud) c_.attributes.mtu = c_.carrier.largest_mtu();
  if ((bits & kSetPeer) != 0) c_.path = &c_.carrier.path(c_.attributes.peer);
  if (from == State::init && to == State::rtr) responder_.reset();
  if (from == State::rtr && to == State::rts) requester_.reset();
  may_read_.store(c_.attributes.reads_as_requester > 0, std::memory_order_relaxed);
  constexpr u32 kNotifyDrained = 1 << 2;
  if (to == State::sqd && from != State::sqd) drain_told_ = (bits & kNotifyDrained) == 0;
  enter(to);
  nic_.activate(*this);
  return 0;
}

QueuePairAttributes ModelledQueuePair::attributes() const {
  const auto lock = nic_.engine();
  return c_.attributes;
}

Counters ModelledQueuePair::counters() const {
  Counters all;
  add(all, c_.counters);
  return all;
}

void ModelledQueuePair::arrived(const Decoded& packet, const Endpoint& source) {
  const bool receives = c_.state >= State::rtr && c_.state != State::error && c_.half != Half::requester;
  const bool sends = c_.state >= State::rts && c_.state != State::error && c_.half != Half::responder;
  const bool request = packet.shape.request;
  if (packet.headers.service != c_.service || !(request ? receives : sends) ||
      // A stranger's packet: the peer's address is all that a sender cannot choose.
      (c_.service != Service::ud && source.address != c_.attributes.peer.address)) {
    count(c_.counters.dropped);
    return;
  }
  count(c_.counters.packets_received);
  if (!established_told_ && c_.state == State::rtr) {
    established_told_ = true;
    if (nic_.listener().queue_pair) nic_.listener().queue_pair(*this, Event::communication_established);
  }
  if (!request) requester_.answered(packet);
  else if (c_.service == Service::ud) responder_.datagram(packet, source);
  else responder_.arrived(packet);
  settle();
  nic_.activate(*this);
}

bool ModelledQueuePair::advance() {
  bool did = false;
  if (c_.state == State::reset) return false;
  if (c_.state == State::error || c_.state == State::sqe) {
    // Posted since.
    if (!requester_.idle()) requester_.flush();
    if (c_.state == State::error) responder_.flush();
  }
  did = responder_.send();
  if (c_.state == State::rts || c_.state == State::sqd) did = requester_.send() || did;
  if (c_.state == State::sqd && !drain_told_ && requester_.drained()) {
    drain_told_ = true;
    if (nic_.listener().queue_pair) nic_.listener().queue_pair(*this, Event::send_queue_drained);
  }
  settle();
  return did;
}

void ModelledQueuePair::expire() {
  requester_.expire();
  settle();
  nic_.activate(*this);
}

}  // namespace doorbell::roce
