// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Engine: counting events, and the commands that wait for them.
#pragma once

#include "cxi/model/engine.hpp"

namespace doorbell::cxi {

template <class Parts>
DOORBELL_GPU_NOINLINE void Engine<Parts>::add(const CountingEvent& created) {
  CountingEvent& ct = parts_.objects.counters[created.index];
  ct = created;
  ct.exists = true;
  counters_.add(ct.index);
  store64_relaxed(ct.doorbell + Counter::kResetSuccess, kUnwritten);
  store64_relaxed(ct.doorbell + Counter::kResetFailure, kUnwritten);
  if (!ct.on_request) write_back(ct);
}

template <class Parts>
DOORBELL_GPU_NOINLINE void Engine<Parts>::remove_counter(u32 index) {
  CountingEvent& ct = parts_.objects.counters[index];
  while (!ct.waiting.empty()) (void)take_trigger(ct);
  // Only a device that has gone still has something to count here.
  Chain dirty;
  dirty.first = dirty_.first;
  dirty_ = {};
  for (u32 i = dirty.first; i != kNobody;) {
    CountingEvent& other = parts_.objects.counters[i];
    const u32 next = other.next_dirty;
    other.dirty = false;
    if (i != index) count(i, 0, 0);
    i = next;
  }
  ct = {};
  counters_.remove(index);
  // Acknowledgements that are still on their way to it are not for the next counter of its number.
  parts_.late.erase_if([index](const Acknowledgement& a) { return a.ct == index; });
}

template <class Parts>
DOORBELL_GPU_NOINLINE ReturnCode Engine<Parts>::execute_counter(WorkQueue& q, const CommandHeader& h,
                                                                const u64* words) {
  const auto opcode = static_cast<CounterOpcode>(h.opcode);
  if (opcode == CounterOpcode::noop) return ReturnCode::ok;
  Trigger trigger;
  trigger.opcode = opcode;
  trigger.queue = q.index;
  trigger.owner = q.owner;
  if (opcode == CounterOpcode::trig_dma) {
    TrigDma dma;
    if (!decode(words, dma)) return ReturnCode::cmd_invalid_arg;
    trigger.fields = dma.when;
    trigger.dma = dma.dma;
    return arm(trigger);
  }
  CounterCommand c;
  if (!decode(words, c)) return ReturnCode::cmd_invalid_arg;
  trigger.fields = c;
  if (opcode == CounterOpcode::trig_event || opcode == CounterOpcode::trig_set ||
      opcode == CounterOpcode::trig_increment)
    return arm(trigger);

  CountingEvent* const ct = counting_event(q.owner, c.ct);
  if (ct == nullptr) return ReturnCode::cmd_invalid_arg;
  switch (opcode) {
    case CounterOpcode::set:
    case CounterOpcode::increment:
      fire(trigger);
      return ReturnCode::ok;
    case CounterOpcode::get:
      (void)poll_doorbell(*ct);  // what was stored there before the command counts
      bring_up_to_date(*ct);
      write_back(*ct);
      return ReturnCode::ok;
    case CounterOpcode::cancel:
      cancel(*ct);
      return ReturnCode::ok;
    default:
      return ReturnCode::illegal_op;
  }
}

template <class Parts>
DOORBELL_GPU_NOINLINE void Engine<Parts>::cancel(CountingEvent& ct) {
  bring_up_to_date(ct);
  while (!ct.waiting.empty()) report(ct.owner, take_trigger(ct).fields, ReturnCode::canceled);
}

/// Tells the initiator what became of a triggered command.
template <class Parts>
DOORBELL_HD void Engine<Parts>::report(u32 owner, const CounterFields& f, ReturnCode code) {
  TriggeredEvent e;
  e.type = EventType::triggered_op;
  e.return_code = code;
  e.threshold = f.threshold;
  e.ct_handle = f.trig_ct;
  if (f.eq != 0) write_event(owner, f.eq, e);
}

/// Removes the trigger that fires first.
template <class Parts>
DOORBELL_HD Trigger Engine<Parts>::take_trigger(CountingEvent& ct) {
  const u32 place = ct.waiting.first;
  Trigger& t = parts_.trigger(place);
  const Trigger taken = t;
  ct.waiting.first = t.next;
  t.next = free_trigger_;
  free_trigger_ = place;
  --waiting_;
  return taken;
}

/// Makes a trigger wait for its count, or fires it if the count has been reached.
template <class Parts>
DOORBELL_GPU_NOINLINE ReturnCode Engine<Parts>::arm(const Trigger& trigger) {
  const CounterFields& f = trigger.fields;
  CountingEvent* const ct = counting_event(trigger.owner, f.trig_ct);
  if (ct == nullptr) return ReturnCode::cmd_invalid_arg;
  const bool event = trigger.opcode == CounterOpcode::trig_event;
  if (event && (f.eq == 0 || !has_event_queue(trigger.owner, f.eq))) return ReturnCode::cmd_invalid_arg;
  const bool counts =
      trigger.opcode == CounterOpcode::trig_set || trigger.opcode == CounterOpcode::trig_increment;
  if (counts && counting_event(trigger.owner, f.ct) == nullptr) return ReturnCode::cmd_invalid_arg;
  if (ct->success >= f.threshold) {
    fire(trigger);
    return ReturnCode::ok;
  }
  if (waiting_ >= kMaxTriggers) return ReturnCode::no_space;
  ++waiting_;
  u32 place = free_trigger_;
  if (place != kNobody) free_trigger_ = parts_.trigger(place).next;
  else place = fresh_trigger_++;
  Trigger& t = parts_.trigger(place);
  t = trigger;
  Chain& waiting = ct->waiting;
  // Behind all that fire before it; thresholds mostly come in order.
  u32* link = &waiting.first;
  if (!waiting.empty() && parts_.trigger(waiting.last).fields.threshold <= f.threshold)
    link = &parts_.trigger(waiting.last).next;
  while (*link != kNobody && parts_.trigger(*link).fields.threshold <= f.threshold)
    link = &parts_.trigger(*link).next;
  t.next = *link;
  *link = place;
  if (t.next == kNobody) waiting.last = place;
  return ReturnCode::ok;
}

template <class Parts>
DOORBELL_GPU_NOINLINE void Engine<Parts>::fire(const Trigger& t) {
  const CounterFields& f = t.fields;
  switch (t.opcode) {
    case CounterOpcode::trig_event:
      parts_.counters.triggered += 1;
      report(t.owner, f, ReturnCode::ok);
      return;
    case CounterOpcode::trig_dma: {
      parts_.counters.triggered += 1;
      WorkQueue* q = nullptr;
      for (u32 i = 0; i < queues_.count && q == nullptr; ++i)
        if (queue(i).index == t.queue) q = &queue(i);
      if (q == nullptr || q->owner != t.owner) return;
      Operation op;
      op.fields = &t.dma;
      op.opcode = t.dma.opcode;
      op.bytes = t.dma.request_len;
      if (const ReturnCode code = operate(*q, op); code != ReturnCode::ok) report(t.owner, f, code);
      return;
    }
    case CounterOpcode::trig_set:
      parts_.counters.triggered += 1;
      [[fallthrough]];
    case CounterOpcode::set: {
      CountingEvent* const ct = counting_event(t.owner, f.ct);
      if (ct == nullptr) return;
      if (f.set_ct_success) ct->success = f.ct_success, ct->new_success = 0;
      if (f.set_ct_failure) ct->failure = f.ct_failure, ct->new_failure = 0;
      ct->replaced = true;
      count(f.ct, 0, 0);
      return;
    }
    case CounterOpcode::trig_increment:
      parts_.counters.triggered += 1;
      [[fallthrough]];
    case CounterOpcode::increment:
      if (counting_event(t.owner, f.ct) == nullptr) return;
      count(f.ct, f.set_ct_success ? f.ct_success : 0, f.set_ct_failure ? f.ct_failure : 0);
      return;
    default:
      return;
  }
}

/// Adds to a counter; the new count becomes visible when the round's data is in place.
template <class Parts>
DOORBELL_GPU_NOINLINE void Engine<Parts>::count(u32 index, u64 success, u32 failure) {
  CountingEvent* const ct = counting_event(index);
  if (ct == nullptr) return;
  ct->new_success += success;
  ct->new_failure += failure;
  if (ct->dirty) return;
  ct->dirty = true;
  ct->next_dirty = kNobody;
  (dirty_.empty() ? dirty_.first : parts_.objects.counters[dirty_.last].next_dirty) = index;
  dirty_.last = index;
}

template <class Parts>
DOORBELL_HD bool Engine<Parts>::written(const CountingEvent& ct) {
  const u64* const page = ct.doorbell;
  const u64 success = load64_relaxed(page + Counter::kSuccess),
            failure = load64_relaxed(page + Counter::kFailure);
  const u64 reset_success = load64_relaxed(page + Counter::kResetSuccess);
  const u64 reset_failure = load64_relaxed(page + Counter::kResetFailure);
  return (success | failure) != 0 || reset_success != kUnwritten || reset_failure != kUnwritten;
}

/// Takes what was stored to the counter's doorbell page; true if there was something.
template <class Parts>
DOORBELL_GPU_NOINLINE bool Engine<Parts>::poll_doorbell(CountingEvent& ct) {
  u64* const page = ct.doorbell;
  bool found = false;
  // Looked at first: a success that was stored before the failure is then counted with it.
  const bool failed = load64_acquire(page + Counter::kFailure) != 0;
  if (load64_relaxed(page + Counter::kSuccess) != 0) {
    count(ct.index, exchange64(page + Counter::kSuccess, 0) & kMaxSuccess, 0);
    found = true;
  }
  if (failed) {
    count(ct.index, 0, static_cast<u32>(exchange64(page + Counter::kFailure, 0) & kMaxFailure));
    found = true;
  }
  if (load64_relaxed(page + Counter::kResetSuccess) != kUnwritten) {
    (void)exchange64(page + Counter::kResetSuccess, kUnwritten);
    ct.success = ct.new_success = 0;
    ct.replaced = true;
    count(ct.index, 0, 0);
    found = true;
  }
  if (load64_relaxed(page + Counter::kResetFailure) != kUnwritten) {
    (void)exchange64(page + Counter::kResetFailure, kUnwritten);
    ct.failure = ct.new_failure = 0;
    ct.replaced = true;
    count(ct.index, 0, 0);
    found = true;
  }
  return found;
}

template <class Parts>
DOORBELL_GPU_NOINLINE void Engine<Parts>::bring_up_to_date() {
  if (dirty_.empty()) return;
  // Data must be visible before the count that announces it.
  if (!settle()) return;
  // A trigger that fires may count again, so the chain may grow in this loop.
  while (!dirty_.empty()) {
    CountingEvent& ct = parts_.objects.counters[dirty_.first];
    dirty_.first = ct.next_dirty;
    ct.dirty = false;
    bring_up_to_date(ct);
  }
}

template <class Parts>
DOORBELL_GPU_NOINLINE void Engine<Parts>::bring_up_to_date(CountingEvent& ct) {
  if (!settle()) return;
  ct.success = (ct.success + ct.new_success) & kMaxSuccess;
  ct.failure = (ct.failure + ct.new_failure) & kMaxFailure;
  const bool told = ct.new_failure != 0 || ct.replaced;
  ct.replaced = false;
  ct.new_success = 0;
  ct.new_failure = 0;
  if (!ct.on_request || told) write_back(ct);
  while (!ct.waiting.empty() && ct.success >= parts_.trigger(ct.waiting.first).fields.threshold)
    fire(take_trigger(ct));
}

template <class Parts>
DOORBELL_HD void Engine<Parts>::write_back(CountingEvent& ct) {
  if (!ct.writes_back) return;
  CounterCounts c;
  c.success = ct.success;
  c.failure = ct.failure;
  c.valid = true;
  const u64 word = pack(c).w[0];
  // The release orders the data before the count.
  if (ct.writeback.host != nullptr) store64_release(reinterpret_cast<u64*>(ct.writeback.host), word);
  else if (parts_.dma.deliver(ct.writeback.iova, &word, sizeof word)) (void)settle();
}

}  // namespace doorbell::cxi
