// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Counting events, and the commands that wait for them.

#include <doorbell/cxi/counter.hpp>

#include <algorithm>

#include "cxi/model/engine.hpp"

namespace doorbell::cxi {

namespace {

// The content of a reset word of the doorbell page until an initiator stores to it.
constexpr u64 kNotReset = 0x5ca1'ab1e'b0de'd0ff;

}  // namespace

void Engine::add(CountingEvent& ct) {
  counting_events_[ct.index] = &ct;
  counters_in_use_.push_back(&ct);
  store64_relaxed(ct.doorbell + Counter::kResetSuccess, kNotReset);
  store64_relaxed(ct.doorbell + Counter::kResetFailure, kNotReset);
  write_back(ct);
}

ReturnCode Engine::execute_counter(WorkQueue& q, const CommandHeader& h, const u64* words) {
  const auto opcode = static_cast<CounterOpcode>(h.opcode);
  if (opcode == CounterOpcode::noop) return ReturnCode::ok;
  Trigger trigger;
  trigger.opcode = opcode;
  trigger.queue = q.index;
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

  CountingEvent* const ct = counting_event(c.ct);
  if (ct == nullptr) return ReturnCode::cmd_invalid_arg;
  switch (opcode) {
    case CounterOpcode::set:
    case CounterOpcode::increment:
      fire(trigger);
      return ReturnCode::ok;
    case CounterOpcode::get:
      bring_up_to_date(*ct);
      write_back(*ct);
      return ReturnCode::ok;
    case CounterOpcode::cancel: {
      bring_up_to_date(*ct);
      std::vector<Trigger> waiting;
      waiting.swap(ct->waiting);
      waiting_ -= static_cast<u32>(waiting.size());
      std::ranges::sort(waiting, [](const Trigger& a, const Trigger& b) { return later(b, a); });
      for (const Trigger& t : waiting) {
        TriggeredEvent e;
        e.type = EventType::triggered_op;
        e.return_code = ReturnCode::canceled;
        e.threshold = t.fields.threshold;
        e.ct_handle = t.fields.trig_ct;
        if (t.fields.eq != 0) write_event(t.fields.eq, e);
      }
      return ReturnCode::ok;
    }
    default:
      return ReturnCode::illegal_op;
  }
}

/// Makes a trigger wait for its count, or fires it if the count has been reached.
ReturnCode Engine::arm(const Trigger& trigger) {
  const CounterFields& f = trigger.fields;
  CountingEvent* const ct = counting_event(f.trig_ct);
  if (ct == nullptr) return ReturnCode::cmd_invalid_arg;
  const bool event = trigger.opcode == CounterOpcode::trig_event;
  if (event && (f.eq == 0 || event_queues_[f.eq] == nullptr)) return ReturnCode::cmd_invalid_arg;
  const bool counts =
      trigger.opcode == CounterOpcode::trig_set || trigger.opcode == CounterOpcode::trig_increment;
  if (counts && counting_event(f.ct) == nullptr) return ReturnCode::cmd_invalid_arg;
  if (ct->success >= f.threshold) {
    fire(trigger);
    return ReturnCode::ok;
  }
  if (waiting_ >= kMaxTriggers) return ReturnCode::no_space;
  ++waiting_;
  ct->waiting.push_back(trigger);
  ct->waiting.back().serial = armed_++;
  std::ranges::push_heap(ct->waiting, later);
  return ReturnCode::ok;
}

void Engine::fire(const Trigger& t) {
  const CounterFields& f = t.fields;
  switch (t.opcode) {
    case CounterOpcode::trig_event: {
      counters_.triggered += 1;
      TriggeredEvent e;
      e.type = EventType::triggered_op;
      e.threshold = f.threshold;
      e.ct_handle = f.trig_ct;
      write_event(f.eq, e);
      return;
    }
    case CounterOpcode::trig_dma: {
      counters_.triggered += 1;
      const auto q = std::ranges::find_if(queues_, [&](const WorkQueue* w) { return w->index == t.queue; });
      if (q == queues_.end()) return;
      Operation op;
      op.fields = &t.dma;
      op.opcode = t.dma.opcode;
      op.bytes = t.dma.request_len;
      if (const ReturnCode code = operate(**q, op); code != ReturnCode::ok && f.eq != 0) {
        TriggeredEvent e;
        e.type = EventType::triggered_op;
        e.return_code = code;
        e.threshold = f.threshold;
        e.ct_handle = f.trig_ct;
        write_event(f.eq, e);
      }
      return;
    }
    case CounterOpcode::trig_set:
      counters_.triggered += 1;
      [[fallthrough]];
    case CounterOpcode::set: {
      CountingEvent* const ct = counting_event(f.ct);
      if (ct == nullptr) return;
      if (f.set_ct_success) ct->success = f.ct_success, ct->new_success = 0;
      if (f.set_ct_failure) ct->failure = f.ct_failure, ct->new_failure = 0;
      count(f.ct, 0, 0);
      return;
    }
    case CounterOpcode::trig_increment:
      counters_.triggered += 1;
      [[fallthrough]];
    case CounterOpcode::increment:
      count(f.ct, f.set_ct_success ? f.ct_success : 0, f.set_ct_failure ? f.ct_failure : 0);
      return;
    default:
      return;
  }
}

/// Adds to a counter; the new count becomes visible when the round's data is in place.
void Engine::count(u32 index, u64 success, u32 failure) {
  CountingEvent* const ct = counting_event(index);
  if (ct == nullptr) return;
  ct->new_success += success;
  ct->new_failure += failure;
  if (ct->dirty) return;
  ct->dirty = true;
  dirty_.push_back(ct);
}

/// Takes what was stored to the counter's doorbell page; true if there was something.
bool Engine::poll_doorbell(CountingEvent& ct) {
  u64* const page = ct.doorbell;
  bool found = false;
  if (load64_relaxed(page + Counter::kSuccess) != 0) {
    count(ct.index, exchange64(page + Counter::kSuccess, 0) & kMaxSuccess, 0);
    found = true;
  }
  if (load64_relaxed(page + Counter::kFailure) != 0) {
    count(ct.index, 0, static_cast<u32>(exchange64(page + Counter::kFailure, 0) & kMaxFailure));
    found = true;
  }
  if (load64_relaxed(page + Counter::kResetSuccess) != kNotReset) {
    (void)exchange64(page + Counter::kResetSuccess, kNotReset);
    ct.success = ct.new_success = 0;
    count(ct.index, 0, 0);
    found = true;
  }
  if (load64_relaxed(page + Counter::kResetFailure) != kNotReset) {
    (void)exchange64(page + Counter::kResetFailure, kNotReset);
    ct.failure = ct.new_failure = 0;
    count(ct.index, 0, 0);
    found = true;
  }
  return found;
}

void Engine::bring_up_to_date() {
  if (dirty_.empty()) return;
  // Data must be visible before the count that announces it.
  if (!settle()) return;
  // A trigger that fires may count again, so the list may grow in this loop.
  for (std::size_t i = 0; i < dirty_.size(); ++i) {
    CountingEvent& ct = *dirty_[i];
    ct.dirty = false;
    bring_up_to_date(ct);
  }
  dirty_.clear();
}

void Engine::bring_up_to_date(CountingEvent& ct) {
  if (!settle()) return;
  ct.success = (ct.success + ct.new_success) & kMaxSuccess;
  ct.failure = (ct.failure + ct.new_failure) & kMaxFailure;
  ct.new_success = 0;
  ct.new_failure = 0;
  write_back(ct);
  while (!ct.waiting.empty() && ct.success >= ct.waiting.front().fields.threshold) {
    const Trigger t = ct.waiting.front();
    std::ranges::pop_heap(ct.waiting, later);
    ct.waiting.pop_back();
    --waiting_;
    fire(t);
  }
}

void Engine::write_back(CountingEvent& ct) {
  if (!ct.writes_back) return;
  CounterCounts c;
  c.success = ct.success;
  c.failure = ct.failure;
  c.valid = true;
  const u64 word = pack(c).w[0];
  // The release orders the data before the count.
  if (ct.writeback.host != nullptr) store64_release(reinterpret_cast<u64*>(ct.writeback.host), word);
  else if (dma_.deliver(ct.writeback.iova, &word, sizeof word)) (void)settle();
}

}  // namespace doorbell::cxi
