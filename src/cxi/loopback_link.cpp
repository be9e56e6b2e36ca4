// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "cxi/loopback_link.hpp"

#include <doorbell/cxi/cassini.hpp>
#include <doorbell/cxi/commands.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "cxi/names.hpp"
#include "measure/stop.hpp"
#include "system/clock.hpp"

namespace doorbell::cxi {

namespace {

constexpr OneLane lane;
constexpr u64 kSetUpNs = 1'000'000'000;  // time limit for the events of SETSTATE and APPEND
constexpr u32 kPollsPerLook = 64;        // polls between two looks at the clock
constexpr u64 kAskNs = 250'000'000;      // interval between requests for the counts while nothing happens
constexpr u64 kSettleNs = 20'000'000;
constexpr u64 kDrainNs = 1'000'000'000;
constexpr u64 kQuietNs = 50'000'000;
constexpr u64 kEventBytes = 64;
constexpr u32 kSlotsPerPut = 4;

Dfa own_address(const Endpoint& endpoint) {
  const Address a = endpoint.address();
  return make_dfa(a.nid, a.pid, a.pid_bits, 0);
}

Region allocate(CassiniDevice& device, const LoopbackBuffer& buffer, u64 bytes) {
  return device.allocate(buffer.place, bytes, buffer.gpu);
}

/// The time without progress, for loops that poll.
class IdleTimer {
 public:
  /// True at intervals: it is time to look at the clock.
  [[nodiscard]] bool look() {
    if (++polls_ % kPollsPerLook != 0) {
      cpu_relax();
      return false;
    }
    std::this_thread::yield();
    now_ = wall_ns();
    return true;
  }
  [[nodiscard]] u64 idle_ns() const { return now_ - since_; }
  [[nodiscard]] bool every(u64 interval_ns) {
    if (now_ - asked_ < interval_ns) return false;
    asked_ = now_;
    return true;
  }
  void progress() { since_ = now_; }
  [[nodiscard]] u64 polls() const { return polls_; }

 private:
  u64 now_ = wall_ns();
  u64 since_ = now_;
  u64 asked_ = now_;
  u64 polls_ = 0;
};

std::string why(const LoopbackFailure& f) {
  switch (f.kind) {
    case LoopbackFailure::Kind::timeout:
      return "it did not come in time";
    case LoopbackFailure::Kind::unexpected_event:
      return fmt::format("{} came instead, with {}", name(f.got), name(f.code));
    case LoopbackFailure::Kind::bad_return_code:
      return fmt::format("its return code is {}", name(f.code));
    case LoopbackFailure::Kind::queue_full:
      return "the command queue stays full";
    case LoopbackFailure::Kind::removed:
      return "the device went away";
  }
  return {};
}

}  // namespace

LoopbackError::LoopbackError(const LoopbackFailure& failure)
    : Error(fmt::format("waiting for the event {}", name(failure.expected)), why(failure)),
      failure_(failure) {}

LoopbackLink::LoopbackLink(CassiniDevice& device, Endpoint& endpoint, const LoopbackOptions& o)
    : o_(o),
      alive_(device.alive(Initiator::cpu)),
      own_address_(own_address(endpoint)),
      tx_events_object_(endpoint.create_event_queue((u64{o.puts} + 1) * kEventBytes, Place::pageable)),
      source_(allocate(device, o.source, o.bytes)),
      source_md_(endpoint.map(source_, Access::read)),
      tx_object_(endpoint.create_command_queue({.kind = CommandQueueKind::transmit,
                                                .slots = kSlotsPerPut * o.puts + 1,
                                                .events = tx_events_object_.get()})),
      counter_object_(endpoint.create_counter(true, Place::pageable)),
      triggered_object_(endpoint.create_command_queue(
          {.kind = CommandQueueKind::triggered, .slots = 1, .events = tx_events_object_.get()})),
      rx_events_object_(endpoint.create_event_queue(kEventBytes, Place::pageable)),
      destination_(allocate(device, o.destination, o.bytes)),
      destination_md_(endpoint.map(destination_, Access::write)),
      portals_object_(endpoint.create_command_queue(
          {.kind = CommandQueueKind::target, .slots = 1, .events = rx_events_object_.get()})),
      entry_(endpoint.create_portals_entry(*rx_events_object_, 0)),
      tx_events_(initial_state(*tx_events_object_, Initiator::cpu)),
      rx_events_(initial_state(*rx_events_object_, Initiator::cpu)),
      tx_(initial_state(*tx_object_, Initiator::cpu)),
      triggered_(initial_state(*triggered_object_, Initiator::cpu)),
      portals_queue_(initial_state(*portals_object_, Initiator::cpu)),
      counter_(counter_object_->memory(Initiator::cpu)) {
  put_.to(own_address_);
  put_.lac = source_md_->lac();
  put_.local_addr = source_md_->iova();
  put_.request_len = o.bytes;
  put_.ct = counter_.index();
  put_.eq = tx_events_.index();
  put_.flags.event_send_disable = true;
  put_.flags.event_success_disable = true;
  put_.flags.event_ct_ack = true;
  put_.flags.restricted = true;
  enable();
}

// --- set-up ------------------------------------------------------------------------------------------------

void LoopbackLink::enable() {
  (void)portals_queue_.post(lane, enabling(*entry_));
  (void)portals_queue_.ring(lane);
  expect(EventType::state_change);
  (void)portals_queue_.post(lane, exposing(*entry_, *destination_md_, append_flag::op_put));
  (void)portals_queue_.ring(lane);
  expect(EventType::link);
}

void LoopbackLink::expect(EventType type) {
  LoopbackFailure f;
  f.expected = type;
  IdleTimer timer;
  Events::Polled event = rx_events_.poll(lane);
  while (event.bytes == 0) {
    if (timer.look() && timer.idle_ns() > kSetUpNs) {
      f.queue = portals_queue_.status(lane);
      throw LoopbackError(f);
    }
    event = rx_events_.poll(lane);
  }
  f.got = event.type;
  f.code = event.return_code;
  (void)rx_events_.ack(lane);
  if (event.type != type) f.kind = LoopbackFailure::Kind::unexpected_event;
  else if (event.return_code != ReturnCode::ok) f.kind = LoopbackFailure::Kind::bad_return_code;
  else return;
  throw LoopbackError(f);
}

// --- puts --------------------------------------------------------------------------------------------------

template <class Ready>
bool LoopbackLink::wait_for_room(Commands& queue, const Ready& ready) {
  IdleTimer timer;
  const auto timeout_ns = static_cast<u64>(o_.timeout_s * 1e9);
  u32 read = queue.state().rp32;
  while (!ready()) {
    if (!timer.look()) continue;
    if (removed()) return fail(LoopbackFailure::Kind::removed);
    (void)queue.status(lane);
    if (queue.state().rp32 != read) {
      read = queue.state().rp32;
      timer.progress();
    }
    if (timer.idle_ns() > timeout_ns || measure::stop_gave_up())
      return fail(LoopbackFailure::Kind::queue_full);
  }
  return true;
}

bool LoopbackLink::arm() {
  const auto command = CounterCommand::trig_event(counter_.index(), threshold_, tx_events_.index());
  if (!wait_for_room(triggered_, [&] { return triggered_.post(lane, command); })) return false;
  doorbells_ += triggered_.ring(lane);
  armed_[armed_count_++] = threshold_;
  return true;
}

bool LoopbackLink::post(u32 puts) {
  threshold_ += puts;
  if (!arm()) return false;
  if (!wait_for_room(tx_, [&] { return tx_.room(lane, puts) >= puts; })) return false;
  tx_.post_puts(lane, puts, [this](u32) { return put_; });
  doorbells_ += tx_.ring(lane);
  return true;
}

bool LoopbackLink::wait() {
  IdleTimer timer;
  const auto timeout_ns = static_cast<u64>(o_.timeout_s * 1e9);
  CounterCounts seen = counter_.read();
  Events::Polled event = tx_events_.poll(lane);
  while (event.bytes == 0) {
    if (timer.look()) {
      const CounterCounts now = counter_.read();
      if (now.success != seen.success || now.failure != seen.failure) {
        seen = now;
        timer.progress();
      }
      if (removed()) return fail(LoopbackFailure::Kind::removed);
      if (timer.idle_ns() > timeout_ns || measure::stop_gave_up())
        return fail(LoopbackFailure::Kind::timeout);
      if (timer.every(kAskNs)) ask_for_counts();
    }
    event = tx_events_.poll(lane);
  }
  polls_ += timer.polls() + 1;
  const bool good = check_event(event);
  doorbells_ += tx_events_.ack(lane);
  return good;
}

bool LoopbackLink::check_event(const Events::Polled& event) {
  TriggeredEvent triggered;
  const bool expected =
      event.type == EventType::triggered_op &&
      (event.bytes != 16 || (decode_event(event.words, triggered) && triggered.threshold == armed_.front()));
  if (expected && event.return_code == ReturnCode::ok) {
    armed_.front() = armed_.back();
    --armed_count_;
    return true;
  }
  if (event.type == EventType::ack) refused_.push_back(event.return_code);
  fail(expected ? LoopbackFailure::Kind::bad_return_code : LoopbackFailure::Kind::unexpected_event);
  failure_->got = event.type;
  failure_->code = event.return_code;
  return false;
}

bool LoopbackLink::fail(LoopbackFailure::Kind kind) {
  LoopbackFailure f;
  f.kind = kind;
  f.counting = true;
  f.counts = kind == LoopbackFailure::Kind::removed ? counter_.read() : settle();
  f.threshold = armed_count_ > 0 ? armed_.front() : threshold_;
  f.events_dropped = tx_events_.status(lane).unackd_dropped;
  f.queue = tx_.status(lane);
  failure_ = f;
  return false;
}

// --- the counter -------------------------------------------------------------------------------------------

/// Asks the device for the counts, because it need not write back each count by itself.
void LoopbackLink::ask_for_counts() {
  CounterCommand get;
  get.opcode = CounterOpcode::get;
  get.ct = counter_.index();
  if (triggered_.post(lane, get)) doorbells_ += triggered_.ring(lane);
}

CounterCounts LoopbackLink::settle() {
  ask_for_counts();
  IdleTimer timer;
  // Surplus acknowledgements come after the last one that is due.
  while (timer.idle_ns() < kSettleNs) (void)timer.look();
  return counter_.read();
}

void LoopbackLink::drain(LoopbackResult& into) {
  const u64 begin = wall_ns();
  u64 last = begin;
  for (u64 now = begin; now - last < kQuietNs && now - begin < kDrainNs; now = wall_ns()) {
    const Events::Polled event = tx_events_.poll(lane);
    if (event.bytes == 0) continue;
    last = now;
    if (event.type == EventType::ack) refused_.push_back(event.return_code);
    else if (event.type != EventType::triggered_op) into.unexpected += 1;
    (void)tx_events_.ack(lane);
  }
  for (const ReturnCode code : refused_) into.statuses[name(code)] += 1;
  into.refused = refused_.size();
}

}  // namespace doorbell::cxi
