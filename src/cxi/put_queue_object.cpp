// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <doorbell/cxi/cassini.hpp>

#include <algorithm>

#include "cxi/put_queue_sizes.hpp"

namespace doorbell::cxi {

namespace {
constexpr u64 kEventBytes = 64;  // the most that one event takes
}  // namespace

u32 slots_for(const PutQueueShape& shape) {
  const u32 each = shape.max_inline > 112 ? 4 : shape.max_inline > 48 ? 2 : 1;
  return std::min(2 * each * shape.requests + 2 * kStatusSlots, kMaxSlots);
}

u64 event_bytes_for(const PutQueueShape& shape) {
  return (u64{shape.requests} + 2) * kEventBytes;
}

PutQueueObject::PutQueueObject(Endpoint& endpoint, const PutQueueShape& shape)
    : endpoint_(endpoint), shape_(shape) {
  create();
}

PutQueueState PutQueueObject::start(Initiator initiator, const Address& to) {
  if (!fresh_) create();
  fresh_ = false;
  PutQueueState s;
  s.commands = initial_state(*commands_, initiator);
  s.events = initial_state(*events_, initiator);
  s.counter = counter_->memory(initiator);
  if (asks_ != nullptr) s.asks = initial_state(*asks_, initiator);
  s.nid = to.nid;
  s.pid = to.pid;
  s.pid_bits = to.pid_bits;
  s.requests = shape_.requests;
  s.restricted = shape_.restricted;
  // For a window, commands are copied out of the ring and the device's status is read: for a GPU that is
  // two more PCIe round trips.
  s.low_latency = shape_.requests == 1 && initiator == Initiator::cpu;
  return s;
}

void PutQueueObject::create() {
  asks_.reset();
  commands_.reset();
  counter_.reset();
  events_.reset();
  events_ =
      endpoint_.create_event_queue(event_bytes_for(shape_), endpoint_.event_queue_place(shape_.queue_memory));
  counter_ = endpoint_.create_counter(true, shape_.queue_memory);
  commands_ = endpoint_.create_command_queue(
      {.slots = slots_for(shape_), .events = events_.get(), .queue_memory = shape_.queue_memory});
  if (endpoint_.counts_on_request())
    asks_ = endpoint_.create_command_queue({.kind = CommandQueueKind::triggered,
                                            .slots = kMinSlots,
                                            .events = events_.get(),
                                            .queue_memory = shape_.queue_memory});
  fresh_ = true;
}

}  // namespace doorbell::cxi
