// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/dropin/cm/connection.hpp"

#include <algorithm>
#include <cerrno>

namespace doorbell::cm {

Message Connection::about(Kind kind) const {
  Message message;
  message.kind = kind;
  message.transaction = transaction_;
  message.local_id = local_id_;
  message.remote_id = remote_id_;
  return message;
}

void Connection::send(Message message) {
  surroundings_.send(*this, message);
}

void Connection::send_and_wait(const Message& message, u64 now) {
  last_ = message;
  tries_ = 1;
  wait_until(now + kFirstWaitNs);
  send(message);
}

void Connection::wait_until(u64 deadline) {
  deadline_ = gone_until_ == 0 ? deadline : deadline == 0 ? gone_until_ : std::min(deadline, gone_until_);
}

void Connection::enter(State state, u64 now) {
  state_ = state;
  tries_ = 0;
  if (state == State::forgotten) deadline_ = 0;
  else wait_until(state == State::closed ? now + kClosedNs : 0);
}

void Connection::say(Happening what, int status, const Message* message) {
  if (told_) surroundings_.happened(*this, what, status, message);
}

void Connection::close(u64 now, Happening what, int status, const Message* message) {
  enter(State::closed, now);
  say(what, status, message);
}

bool Connection::call(Message request, u64 now) {
  if (state_ != State::idle) return false;
  active_ = true;
  datagram_ = request.kind == Kind::datagram_request;
  request.local_id = local_id_;
  if (datagram_) request.remote_id = local_id_;
  transaction_ = request.transaction;
  state_ = State::calling;
  send_and_wait(request, now);
  return true;
}

void Connection::called(const Message& request) {
  datagram_ = request.kind == Kind::datagram_request;
  remote_id_ = datagram_ ? request.remote_id : request.local_id;
  remote_queue_pair_ = request.queue_pair;
  transaction_ = request.transaction;
  state_ = State::called;
}

bool Connection::accept(Message reply, u64 now) {
  if (state_ != State::called) return false;
  if (gone_until_ != 0) {
    close(now, Happening::unreachable, -ETIMEDOUT);
    return true;
  }
  reply.kind = datagram_ ? Kind::datagram_reply : Kind::reply;
  reply.transaction = transaction_;
  reply.local_id = local_id_;
  reply.remote_id = remote_id_;
  if (datagram_) {
    last_ = reply;
    enter(State::closed, now);
    send(reply);
    return true;
  }
  state_ = State::accepting;
  send_and_wait(reply, now);
  return true;
}

bool Connection::reject(u16 reason, std::span<const u8> data, u64 now) {
  Message message = about(datagram_ ? Kind::datagram_reply : Kind::reject);
  message.reason = reason;
  message.status = kDatagramRejected;
  set_private(message, data);
  return reject(message, now);
}

bool Connection::reject(Message message, u64 now) {
  if (state_ != State::called && state_ != State::answered) return false;
  const Kind kind = message.kind;
  message.about = state_ == State::answered ? About::reply : About::request;
  message.kind = kind;
  message.transaction = transaction_;
  message.local_id = local_id_;
  message.remote_id = remote_id_;
  last_ = message;
  enter(State::closed, now);
  send(message);
  return true;
}

bool Connection::ready(u64 now) {
  if (state_ != State::answered) return false;
  enter(State::established, now);
  last_ = about(Kind::ready);
  send(last_);
  return true;
}

bool Connection::established_by_data() {
  if (state_ != State::accepting) return false;
  enter(State::established, 0);
  say(Happening::established, 0, nullptr);
  return true;
}

bool Connection::disconnect(u64 now) {
  if (datagram_ || (state_ != State::established && state_ != State::accepting)) return false;
  Message message = about(Kind::disconnect);
  message.queue_pair = remote_queue_pair_;
  // A transaction of its own, which no other of this connection has.
  message.transaction = transaction_ ^ u64 { 1 } << 31;
  state_ = State::leaving;
  send_and_wait(message, now);
  return true;
}

void Connection::leave(u64 now) {
  told_ = false;
  switch (state_) {
    case State::called:
    case State::answered:
      (void)reject(kConsumer, {}, now);
      break;
    case State::calling: {
      // The peer's program need not answer any more.
      if (!datagram_) {
        Message message = about(Kind::reject);
        message.about = About::request;
        message.reason = kTimeout;
        send(message);
      }
      enter(State::closed, now);
      break;
    }
    case State::accepting:
    case State::established:
      (void)disconnect(now);
      break;
    case State::idle:
      state_ = State::forgotten;
      break;
    default:
      break;
  }
}

void Connection::peer_has_gone(u64 now) {
  if (state_ == State::idle || state_ == State::closed || state_ == State::forgotten || gone_until_ != 0)
    return;
  gone_until_ = now + kLastWordsNs;
  if (state_ != State::called) wait_until(deadline_);  // of one that is called, accept() says it
}

void Connection::give_up(u64 now) {
  switch (state_) {
    case State::calling:
    case State::accepting:
    case State::answered:
      close(now, Happening::unreachable, -ETIMEDOUT);
      break;
    case State::established:
    case State::leaving:
      close(now, Happening::disconnected, 0);
      break;
    case State::closed:
      enter(State::forgotten, now);
      break;
    default:
      deadline_ = 0;
      break;
  }
}

void Connection::expire(u64 now) {
  if (deadline_ == 0 || deadline_ > now) return;
  const bool repeats = state_ == State::calling || state_ == State::accepting || state_ == State::leaving;
  if (!repeats || gone_until_ != 0 || tries_ >= kTries) {
    give_up(now);
    return;
  }
  wait_until(now + std::min(kFirstWaitNs << tries_, kLongestWaitNs));
  ++tries_;
  send(last_);
}

void Connection::arrived(const Message& m, u64 now) {
  const State was = state_;
  switch (m.kind) {
    case Kind::request:
    case Kind::datagram_request:
      // Sent again by a peer that has no answer yet.
      if (was == State::called && !datagram_) {
        Message patience = about(Kind::patience);
        patience.about = About::request;
        patience.service_timeout = kServiceTimeout;
        send(patience);
      } else if (was == State::accepting || (was == State::closed && !active_)) {
        if (last_.kind == Kind::reply || last_.kind == Kind::reject || last_.kind == Kind::datagram_reply)
          send(last_);
      }
      break;
    case Kind::patience:
      if (was != State::calling && was != State::accepting) break;
      if (was == State::calling) remote_id_ = m.local_id;
      tries_ = 1;
      wait_until(now + std::min(u64{4096} << m.service_timeout, kLongestPatienceNs));
      break;
    case Kind::reply:
      if (!active_) break;
      if (was == State::calling && !datagram_) {
        remote_id_ = m.local_id;
        remote_queue_pair_ = m.queue_pair;
        enter(State::answered, now);
        say(Happening::replied, 0, &m);
      } else if (was == State::answered) {
        Message patience = about(Kind::patience);
        patience.about = About::reply;
        patience.service_timeout = kServiceTimeout;
        send(patience);
      } else if (was == State::established && last_.kind == Kind::ready) {
        send(last_);
      } else if (was == State::closed) {
        // The program ended it before the peer had answered.
        Message rejection = about(Kind::reject);
        rejection.remote_id = m.local_id;
        rejection.about = About::reply;
        rejection.reason = kTimeout;
        send(rejection);
      }
      break;
    case Kind::ready:
      if (was != State::accepting) break;
      enter(State::established, now);
      say(Happening::established, 0, &m);
      break;
    case Kind::reject:
      if (was == State::calling || was == State::answered || was == State::accepting)
        close(now, Happening::rejected, m.reason, &m);
      else if (was == State::called) gone_until_ = now;
      else if (was == State::established || was == State::leaving) close(now, Happening::disconnected, 0, &m);
      break;
    case Kind::disconnect: {
      if (was == State::idle || was == State::calling || was == State::called) break;
      Message answer = about(Kind::disconnected);
      answer.transaction = m.transaction;
      send(answer);
      if (was == State::accepting || was == State::established || was == State::leaving ||
          was == State::answered)
        close(now, Happening::disconnected, 0, &m);
      break;
    }
    case Kind::disconnected:
      if (was == State::leaving) close(now, Happening::disconnected, 0, &m);
      break;
    case Kind::datagram_reply:
      if (was != State::calling || !datagram_) break;
      if (m.status == kDatagramOk) close(now, Happening::established, 0, &m);
      else close(now, Happening::unreachable, m.status, &m);
      break;
  }
}

}  // namespace doorbell::cm
