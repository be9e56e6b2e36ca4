// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Engine: command queues, their launch pages, and what each command is.
#pragma once

#include "cxi/model/engine.hpp"

namespace doorbell::cxi {

template <class Parts>
DOORBELL_GPU_NOINLINE void Engine<Parts>::add(const WorkQueue& created) {
  const u32 place = Objects::place_of(created.index);
  WorkQueue& q = parts_.objects.queues[place];
  q = created;
  queues_.add(place);
  q.status.rd_ptr = kStatusSlots;
  q.status.return_code = ReturnCode::ok;
  if (!q.read_only_launch) clear_launch_page(q.launch);
  q.last_doorbell = kNoDoorbell;
  publish(q);
}

/// Executes commands of one queue, if there are any; true if there was work.
template <class Parts>
DOORBELL_GPU_NOINLINE bool Engine<Parts>::serve(WorkQueue& q) {
  const bool found = poll_launch_page(q);
  // The last command that came through a window may have ended the device.
  if (parts_.gone() || !q.has_commands()) return found;
  if (q.ready_ns > 0) {
    if (q.ready_ns > now()) return found;
    q.ready_ns = 0;
  }
  if (careful_ && !parts_.late.room_for(kLateAtOnce)) return found;
  u32 end = q.write;
  if (end < q.read32 / 2) end = q.slots;
  // A multiple of the largest command's slots, so that no command crosses the end of a burst.
  const u32 burst = (q.read32 / 2 + Parts::kInARow) / kLargestSlots * kLargestSlots;
  if (end > burst) end = burst;
  const u64* const words = commands(q, end);
  if (words == nullptr) return found;
  burst_bytes_ = 0;
  const u32 before = q.read32;
  q.read32 = run(q, words, q.read32, 2 * end, false);
  const bool advanced = q.read32 != before;
  if (q.read32 >= 2 * q.slots) q.read32 = 2 * kStatusSlots;
  publish(q);
  return found || advanced || q.stopped;
}

/// Fetches the commands from the read pointer up to slot `end`.
template <class Parts>
DOORBELL_HD const u64* Engine<Parts>::commands(WorkQueue& q, u32 end) {
  const u64 offset = u64{q.read32} * 32;
  if (q.ring.host != nullptr && !q.foreign) return reinterpret_cast<const u64*>(q.ring.host + offset);
  if (u64{end} * kSlotBytes <= offset) return nullptr;  // a write pointer at a slot that is half read
  const u64 bytes = u64{end} * kSlotBytes - offset;
  if (q.foreign) {
    // A copy that is checked cannot change before it is used.
    const auto* const from = reinterpret_cast<const u64*>(q.ring.host + offset);
    for (u64 k = 0; k < bytes / 8; ++k) parts_.staging()[k] = load64_relaxed(from + k);
    return parts_.staging();
  }
  if (!parts_.dma.fetch(q.ring.iova + offset, parts_.staging(), bytes) || !settle()) return nullptr;
  return parts_.staging();
}

// --- the launch page -------------------------------------------------------------------------------------

/// Takes what was stored to the launch page since the last look; true if there was something.
template <class Parts>
DOORBELL_GPU_NOINLINE bool Engine<Parts>::poll_launch_page(WorkQueue& q) {
  if (q.read_only_launch) {
    // The acquire orders the write pointer before later loads of the commands that it announces.
    const u64 value = load64_acquire(doorbell_of(q.launch));
    if (value == q.last_doorbell) return false;
    q.last_doorbell = value;
    apply(q, value);
    return true;
  }
  bool found = false;
  for (u32 looks = 0; looks < kLooks; ++looks) {
    // The doorbell is read first. A window that was written before it is then visible, and the window's
    // commands come before those that the doorbell announces. The acquire orders the doorbell before later
    // loads of commands in the ring.
    u64* const word = doorbell_of(q.launch);
    const bool rang = load64_acquire(word) != kNoDoorbell;
    const u64 value = rang ? exchange64(word, kNoDoorbell) : 0;
    bool window = false;
    for (u32 n = 0; n < kWindowSlots && take_window(q); ++n) window = true;
    found = found || rang || window;
    if (rang) {
      apply(q, value);
      continue;
    }
    if (!window) scan_windows(q);
    break;
  }
  return found;
}

template <class Parts>
DOORBELL_HD void Engine<Parts>::apply(WorkQueue& q, u64 doorbell) {
  parts_.counters.doorbells += 1;
  if (!set_write_pointer(q, doorbell)) parts_.counters.invalid_doorbells += 1;
}

template <class Parts>
DOORBELL_HD bool Engine<Parts>::set_write_pointer(WorkQueue& q, u64 value) {
  const u32 slot = static_cast<u32>(value & 0xffff);
  if (slot < kStatusSlots || slot >= q.slots) return false;
  q.write = slot;
  if (parts_.rule.doorbell_ns > 0) q.ready_ns = Parts::wall_ns() + parts_.rule.doorbell_ns;
  return true;
}

template <class Parts>
DOORBELL_HD bool Engine<Parts>::take_doorbell(WorkQueue& q, u64& value) {
  if (q.read_only_launch || load64_relaxed(doorbell_of(q.launch)) == kNoDoorbell) return false;
  // The exchange orders the doorbell before later loads of windows, and of commands in the ring.
  value = exchange64(doorbell_of(q.launch), kNoDoorbell);
  return true;
}

template <class Parts>
DOORBELL_HD bool Engine<Parts>::window_written(const WorkQueue& q) const {
  if (q.read_only_launch) return load64_relaxed(doorbell_of(q.launch)) != q.last_doorbell;
  const u32 next = q.write + 1 == q.slots ? kStatusSlots : q.write + 1;
  const u64* const two = (q.write & 1) != 0 ? window_of(q.launch, kWindowUnaligned, next)
                                            : window_of(q.launch, kWindowAligned, q.write);
  const u64 first = load64_relaxed(window_of(q.launch, kWindow64, q.write)), second = load64_relaxed(two);
  return first != kUnwritten || second != kUnwritten;
}

template <class Parts>
DOORBELL_GPU_NOINLINE void Engine<Parts>::windows_then(WorkQueue& q, u64 doorbell) {
  for (u32 n = 0; n < kWindowSlots && take_window(q); ++n) continue;
  apply(q, doorbell);
}

/// Takes a low-latency window that was written at the next place.
template <class Parts>
DOORBELL_GPU_NOINLINE bool Engine<Parts>::take_window(WorkQueue& q) {
  if (parts_.gone() || q.stopped) return false;
  const u32 slot = q.write;
  const bool odd = (slot & 1) != 0;
  const u32 next = slot + 1 == q.slots ? kStatusSlots : slot + 1;
  u64 copy[2 * kSlotWords];
  u32 skipped = 0;
  u32 taken = 1;
  if (!take_words<Parts>(window_of(q.launch, kWindow64, slot), 1, parts_.rule.slow_writer_ns, q.torn_since_ns,
                         copy)) {
    skipped = odd ? 1 : 0;
    taken = 2;
    u64* const window =
        odd ? window_of(q.launch, kWindowUnaligned, next) : window_of(q.launch, kWindowAligned, slot);
    if (!take_words<Parts>(window, 2, parts_.rule.slow_writer_ns, q.torn_since_ns, copy)) return false;
  }
  parts_.counters.window_writes += 1;
  q.suspect = nullptr;
  const u32 first = skipped != 0 ? next : slot;
  u32 end = first + taken;
  const bool empty = q.read32 == 2 * q.write;
  q.write = end >= q.slots ? end - q.slots + kStatusSlots : end;
  // If earlier commands are still waiting, the device fetches these from the ring like all others.
  if (!empty || (careful_ && !parts_.late.room_for(kLateAtOnce))) return true;
  burst_bytes_ = 0;
  if (skipped != 0) parts_.counters.commands += 1;
  end = run(q, copy, 2 * first, 2 * end, true);
  q.read32 = end >= 2 * q.slots ? 2 * kStatusSlots : end;
  publish(q);
  return true;
}

/// Finds writes to windows at places that do not come next. Looks at one place in each round: a round is the
/// time that a doorbell waits, and these writes are errors.
template <class Parts>
DOORBELL_GPU_NOINLINE void Engine<Parts>::scan_windows(WorkQueue& q) {
  static_assert(kWindowAligned == kWindow64 + kWindowSlots * kSlotBytes &&
                kWindowUnaligned == kWindowAligned + kWindowSlots * kSlotBytes);
  q.scan = (q.scan + 1) % (3 * kWindowSlots);
  auto* const at = reinterpret_cast<u64*>(q.launch + kWindow64 + q.scan * kSlotBytes);
  const bool written = load64_acquire(at) != kUnwritten;
  if (at != q.suspect) {
    if (written && q.suspect == nullptr) q.suspect = at, q.suspect_since_ns = Parts::wall_ns();
    return;
  }
  // The initiator may still be writing this window, or what comes before it.
  if (written && Parts::wall_ns() - q.suspect_since_ns < parts_.rule.slow_writer_ns) return;
  q.suspect = nullptr;
  if (!written) return;
  for (u32 k = 0; k < kSlotWords; ++k) store64_relaxed(at + k, kUnwritten);
  q.status.rejected = (q.status.rejected + 1) & 0xffff;
  publish(q);
  // Counted last: an initiator that sees the count may look at the status, and write to the place again.
  parts_.counters.rejected_windows += 1;
}

template <class Parts>
DOORBELL_GPU_NOINLINE void Engine<Parts>::publish(WorkQueue& q) {
  const bool stuck = parts_.rule.stuck_read > 0 && q.kind == CommandQueueKind::transmit &&
                     q.serial >= parts_.rule.stuck_read;
  if (!stuck) {
    q.status.rd_ptr = q.read32 / 2;
  } else if (!q.fault_applied) {
    q.fault_applied = true;
    parts_.counters.stuck_read += 1;
  }
  const u64 word = pack(q.status).w[0];
  if (word == q.published) return;
  q.published = word;
  // The release orders this thread's reads of commands before their slots become free. (In a kernel the
  // copies of what commands carry have ended: move() waits for them.)
  if (q.ring.host != nullptr) store64_release(reinterpret_cast<u64*>(q.ring.host), word);
  else if (parts_.dma.deliver(q.ring.iova, &word, sizeof word)) (void)settle();
}

// --- commands --------------------------------------------------------------------------------------------

/// Executes commands from `unit` up to `end`. Returns where the next one is.
template <class Parts>
DOORBELL_GPU_NOINLINE u32 Engine<Parts>::run(WorkQueue& q, const u64* words, u32 unit, u32 end, bool window) {
  while (unit < end) {
    if (parts_.rule.window != 0 && parts_.late.size() >= parts_.rule.window && !window) break;
    if (careful_ && !parts_.late.room_for(kLateAtOnce)) break;
      // An initiator has just written these lines, so each load would miss. Prefetching past the ring's end
      // is harmless.
#if !defined(DOORBELL_ON_GPU)
    __builtin_prefetch(words + 4 * kSlotWords);
#endif
    const CommandHeader h = header_of(words[0]);
    const u32 units = h.units();
    ReturnCode code = ReturnCode::ok;
    if ((unit & (units - 1)) != 0) code = ReturnCode::cmd_align_error;
    else if (units > end - unit) code = ReturnCode::cmd_invalid_arg;
    else code = execute(q, h, words);
    if (parts_.gone()) return unit;
    if (code != ReturnCode::ok) [[unlikely]] {
      fail(q, code, h.byte(), unit, window);
      return unit;
    }
    parts_.counters.commands += 1;
    unit += units;
    words += 4 * u64{units};
    if (burst_bytes_ >= kBurstBytes && !window) break;
  }
  return unit;
}

template <class Parts>
DOORBELL_GPU_NOINLINE ReturnCode Engine<Parts>::execute(WorkQueue& q, const CommandHeader& h,
                                                        const u64* words) {
  const bool triggered = q.kind == CommandQueueKind::triggered;
  // A queue for counter commands has no commands of 32 or 256 bytes.
  if (triggered && (h.size_code == 0 || h.size_code == 3)) return ReturnCode::cmd_invalid_arg;
  switch (h.kind()) {
    case CommandType::dma:
      return q.kind == CommandQueueKind::transmit ? execute_dma(q, h, words) : ReturnCode::illegal_op;
    case CommandType::idc:
      if (h.opcode == static_cast<u32>(Opcode::noop) && !triggered) return ReturnCode::ok;
      return q.kind == CommandQueueKind::transmit ? execute_idc(q, h, words) : ReturnCode::illegal_op;
    case CommandType::counter:
      return triggered ? execute_counter(q, h, words) : ReturnCode::illegal_op;
    case CommandType::queue:
      return execute_queue(q, h, words);
  }
  return ReturnCode::illegal_op;
}

template <class Parts>
DOORBELL_GPU_NOINLINE ReturnCode Engine<Parts>::execute_dma(WorkQueue& q, const CommandHeader& h,
                                                            const u64* words) {
  Operation op;
  if (NomatchDma dma; decode(words, dma)) [[likely]] {
    op.fields = &dma;
    op.opcode = dma.opcode;
    op.bytes = dma.request_len;
    return operate(q, op);
  }
  FullDma dma;
  if (decode(words, dma) && (Parts::kMatching || dma.opcode != Opcode::rendezvous_put)) {
    RendezvousPut rest;
    op.fields = &dma;
    op.opcode = dma.opcode;
    op.bytes = dma.request_len;
    if (dma.opcode == Opcode::rendezvous_put) [[unlikely]] {
      rest = {dma.request_len, dma.flags.use_offset_for_get ? dma.remote_offset : 0, dma.rendezvous_id};
      op.rendezvous = &rest;
      if (dma.eager_length < op.bytes) op.bytes = dma.eager_length;
    }
    op.user_ptr = dma.user_ptr;
    op.initiator = dma.initiator;
    op.match_bits = dma.match_bits;
    op.header_data = dma.header_data;
    return operate(q, op);
  }
  if (h.opcode == static_cast<u32>(Opcode::noop)) return ReturnCode::ok;
  if (ReturnCode code = ReturnCode::ok; is_dma_atomic(q, words, code)) return code;
  // Opcodes that exist but are not modelled, then opcodes that do not exist.
  return h.opcode <= static_cast<u32>(Opcode::reduction) ? ReturnCode::illegal_op
                                                         : ReturnCode::cmd_invalid_arg;
}

template <class Parts>
DOORBELL_GPU_NOINLINE ReturnCode Engine<Parts>::execute_idc(WorkQueue& q, const CommandHeader& h,
                                                            const u64* words) {
  if (CState state; decode(words, state)) {
    if ((words[0] >> 8 & 0xff) != 32) return ReturnCode::cmd_invalid_arg;
    q.cstate = state;
    q.has_cstate = true;
    return ReturnCode::ok;
  }
  if (ReturnCode code = ReturnCode::ok; is_idc_atomic(q, words, code)) return code;
  if constexpr (Parts::kMatching)
    if (h.opcode == static_cast<u32>(Opcode::small_message)) return send(q, words);
  IdcPut put;
  if (!decode(words, put))
    return h.opcode <= static_cast<u32>(Opcode::reduction) && h.opcode != static_cast<u32>(Opcode::put) &&
                   h.opcode != static_cast<u32>(Opcode::cstate)
               ? ReturnCode::illegal_op
               : ReturnCode::cmd_invalid_arg;
  if (!q.has_cstate || put.bytes > idc_limit(q.cstate.flags.restricted)) return ReturnCode::cmd_invalid_arg;
  DmaFields fields = fields_of(q.cstate);
  fields.dfa = put.dfa;
  fields.remote_offset = put.remote_offset;
  fields.request_len = put.bytes;
  Operation op;
  op.fields = &fields;
  op.opcode = Opcode::put;
  op.inlined = put.payload;
  op.bytes = put.bytes;
  op.user_ptr = q.cstate.user_ptr;
  op.initiator = q.cstate.initiator;
  return operate(q, op);
}

/// A put with match bits, and its data in the command.
template <class Parts>
DOORBELL_GPU_NOINLINE ReturnCode Engine<Parts>::send(WorkQueue& q, const u64* words) {
  IdcMessage message;
  if (!decode(words, message) || !q.has_cstate || message.bytes > idc_limit(false))
    return ReturnCode::cmd_invalid_arg;
  DmaFields fields = fields_of(q.cstate);
  fields.dfa = message.dfa;
  fields.request_len = message.bytes;
  Operation op;
  op.fields = &fields;
  op.opcode = Opcode::put;
  op.inlined = message.payload;
  op.bytes = message.bytes;
  op.user_ptr = message.user_ptr;
  op.initiator = q.cstate.initiator;
  op.match_bits = message.match_bits;
  op.header_data = message.header_data;
  return operate(q, op);
}

template <class Parts>
DOORBELL_GPU_NOINLINE ReturnCode Engine<Parts>::execute_queue(WorkQueue& q, const CommandHeader& h,
                                                              const u64* words) {
  const auto opcode = static_cast<QueueOpcode>(h.opcode);
  switch (opcode) {
    case QueueOpcode::noop:
      return ReturnCode::ok;
    case QueueOpcode::fence:
      (void)settle();
      return ReturnCode::ok;
    case QueueOpcode::lcid: {
      Lcid lcid;
      if (!decode(words, lcid)) return ReturnCode::cmd_invalid_arg;
      const u32 vni = parts_.objects.profiles[q.owner][lcid.lcid % kMaxProfiles];
      if (vni == 0) return ReturnCode::cmd_invalid_arg;
      q.vni = vni;
      q.epoch = 0;  // the last destination may not exist in the new network
      return ReturnCode::ok;
    }
    case QueueOpcode::append:
    case QueueOpcode::search:
    case QueueOpcode::search_and_delete:
    case QueueOpcode::unlink:
    case QueueOpcode::set_state:
      if (q.kind != CommandQueueKind::target) return ReturnCode::illegal_op;
      if (opcode == QueueOpcode::append) return append(q, words);
      if (opcode == QueueOpcode::unlink) return unlink(q, words);
      if constexpr (Parts::kMatching)
        if (opcode != QueueOpcode::set_state) return search_unexpected(q, words);
      return opcode == QueueOpcode::set_state ? set_state(q, words) : ReturnCode::illegal_op;
  }
  return ReturnCode::cmd_invalid_arg;
}

/// Stops a queue, because one of its commands cannot be carried out.
template <class Parts>
DOORBELL_GPU_NOINLINE void Engine<Parts>::fail(WorkQueue& q, ReturnCode code, u32 header, u32 unit,
                                               bool window) {
  parts_.counters.command_failures += 1;
  q.stopped = true;
  q.status.return_code = code;
  q.status.fail_command = header;
  q.status.fail_loc_32 = (unit & 1) != 0;
  q.status.fail_ll = window;
  CommandFailureEvent e;
  e.type = EventType::command_failure;
  e.return_code = code;
  e.is_target = q.index >= kMaxTransmitQueues;
  e.cq_id = e.is_target ? q.index - kMaxTransmitQueues : q.index;
  e.fail_loc = unit / 2;
  e.fail_command = header;
  if (q.eq != 0) write_event(q.owner, q.eq, e);
}

}  // namespace doorbell::cxi
