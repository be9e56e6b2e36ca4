// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The data path of the software Cassini: the same for a thread of the CPU (engine_thread.hpp) and for a
// kernel (served_engine.hpp). One engine owns every queue, counter and portals entry, so there is no lock.
#pragma once

#include <doorbell/cxi/event_queue.hpp>

#include <cstring>
#include <span>
#include <type_traits>

#include "cxi/atomics.hpp"
#include "cxi/model/engine_report.hpp"
#include "cxi/model/engine_rule.hpp"
#include "cxi/model/launch.hpp"
#include "cxi/model/matching.hpp"
#include "cxi/model/objects.hpp"
#include "model/fault_draw.hpp"

namespace doorbell::cxi {

/// `Parts` is what the engine is built of, where it runs:
///   objects             Objects<Room>
///   list_entry(i), trigger(i)   rule.max_list_entries and kMaxTriggers of them
///   rule, faults, counters
///   mover               copy(), copy_damaged(), misplaced(), settle() as KernelMover has them
///   dma.fetch(), dma.deliver(), dma.commit()  for what it cannot reach itself
///   late                DueHeap<Acknowledgement>
///   staging()           for commands that were fetched
///   signal(fd)          wakes who waits for an event queue
///   gone(), leave(), remove_device()   whether the device is there; it fails; Fault::removal
///   finish_time(now, bytes), wall_ns()
///   kInARow             slots of one queue that serve() executes in a round, at least kLargestSlots
///   kAtomics            it carries out atomic operations, in host memory
///   kMatching           it has matching portals entries, with matching and unexpected(i): MatchingState, and
///                       rule.max_list_entries of UnexpectedMessage
///   kReadsAtOnce        copy() is done with a command's own bytes when it returns
template <class Parts>
class Engine {
 public:
  DOORBELL_HD explicit Engine(Parts& parts)
      : parts_(parts),
        careful_(parts.rule.reports_late()),
        plain_(!parts.rule.careful() && parts.rule.window == 0) {}

  using Objects = std::remove_reference_t<decltype(Parts::objects)>;

  /// Does one round; true if there was work.
  DOORBELL_GPU_NOINLINE bool poll();
  /// Carries out a set-up call. Between two rounds.
  DOORBELL_GPU_NOINLINE void change(const Change& c);

  /// Between two rounds.
  [[nodiscard]] EntryReport entry(u32 index) const {
    const TableEntry& pte = parts_.objects.table[index];
    EntryReport report{pte.state, 0};
    for (const Chain& list : pte.lists)
      for (u32 i = list.first; i != kNobody; i = parts_.list_entry(i).next) ++report.buffers;
    return report;
  }

  /// Between two rounds, too: EngineBase::unexpected().
  [[nodiscard]] u32 unexpected(u32 index, u32 first, std::span<u64> offsets) const;

  // The same in parts, for an engine of several lanes. Lane 0 calls all of it.
  DOORBELL_INLINE void begin_round() { now_ = 0; }
  [[nodiscard]] DOORBELL_GPU_NOINLINE bool serve(WorkQueue& q);
  [[nodiscard]] DOORBELL_GPU_NOINLINE bool poll_doorbell(CountingEvent& ct);
  /// Makes the round's counts visible, and reports what is due.
  [[nodiscard]] DOORBELL_GPU_NOINLINE bool end_round(bool work);
  /// True if end_round() has something to do.
  [[nodiscard]] DOORBELL_INLINE bool has_news() const { return !dirty_.empty() || !parts_.late.empty(); }

  [[nodiscard]] DOORBELL_INLINE WorkQueue& queue(u32 i) const { return parts_.objects.queues[queues_.at[i]]; }
  [[nodiscard]] DOORBELL_INLINE u32 queues() const { return queues_.count; }
  [[nodiscard]] DOORBELL_INLINE CountingEvent& counter(u32 i) const {
    return parts_.objects.counters[counters_.at[i]];
  }
  [[nodiscard]] DOORBELL_INLINE u32 counters() const { return counters_.count; }

  // For an engine of several lanes, each of which looks at a queue or a counter of its own.
  /// Takes the value of the queue's doorbell, if there is one.
  [[nodiscard]] DOORBELL_HD bool take_doorbell(WorkQueue& q, u64& value);
  /// Makes a doorbell's value the write pointer; false if it is none. Counts nothing.
  [[nodiscard]] DOORBELL_HD bool set_write_pointer(WorkQueue& q, u64 value);
  /// True if one of the windows that come next has been written, or a page that is only read has news.
  [[nodiscard]] DOORBELL_HD bool window_written(const WorkQueue& q) const;
  [[nodiscard]] DOORBELL_HD static bool written(const CountingEvent& ct);
  // Lane 0 calls the following.
  /// Of several queues: doorbells taken, and how many of them were invalid.
  DOORBELL_INLINE void count_doorbells(u32 taken, u32 invalid) {
    parts_.counters.doorbells += taken;
    parts_.counters.invalid_doorbells += invalid;
  }
  /// A doorbell's value was taken, and a window may have been written before it.
  DOORBELL_GPU_NOINLINE void windows_then(WorkQueue& q, u64 doorbell);
  /// Makes the read pointer visible.
  DOORBELL_GPU_NOINLINE void publish(WorkQueue& q);

  // engine_burst.hpp
  template <class Warp>
  [[nodiscard]] DOORBELL_HD u32 burst(const Warp& warp, WorkQueue& q, Word16* stage);
  static constexpr u32 kStage = 32 * 4;  ///< parts that burst() needs, for 32 lanes

 private:
  static constexpr u64 kBurstBytes = u64{256} << 10;  // then other queues get their turn, and ACKs go out
  static constexpr u64 kGpuShare = 64;                // one in so many bytes counts if a GPU copies them
  static constexpr u32 kLooks = 4;                    // looks at a launch page in a round
  static constexpr u32 kLargestSlots = 4;             // of one command
  // For which there must be room before commands are executed: a command reports twice at most, and so does
  // each trigger that fires with it.
  static constexpr u32 kLateAtOnce = 2 + 2 * kMaxTriggers;
  static constexpr u32 kLongestShortEvent = (1u << 20) - 1;  // limit of the length in a short target event

  /// The work of an operation that moves no bytes.
  struct AtomicOperation {
    Atomic atomic;
    bool fetching = false;
    bool in_command = false;  ///< the first operand; else it is at `first_at`
    Iova first_at = 0;
    Iova old_at = 0;  ///< where what was in memory goes
    u32 old_lac = 0;
  };
  /// A put that brings only the beginning of its data; the target asks for the rest.
  struct RendezvousPut {
    u64 bytes = 0;   ///< in all
    u64 offset = 0;  ///< of the data in the memory that the initiator has for that
    u32 id = 0;
  };
  /// Bytes to move from one memory to another.
  struct Operation {
    const AtomicOperation* atomic = nullptr;
    const RendezvousPut* rendezvous = nullptr;
    const DmaFields* fields = nullptr;
    Opcode opcode = Opcode::nomatch_put;
    const u8* inlined = nullptr;  ///< the payload, if it was in the command
    u64 bytes = 0;
    u64 user_ptr = 0;
    u32 initiator = 0;
    u64 match_bits = 0;
    u64 header_data = 0;
    [[nodiscard]] DOORBELL_INLINE bool is_get() const {
      return opcode == Opcode::get || opcode == Opcode::nomatch_get;
    }
    /// REPLY tells the initiator, not ACK.
    [[nodiscard]] DOORBELL_INLINE bool replies() const {
      return is_get() || opcode == Opcode::fetching_atomic;
    }
    [[nodiscard]] DOORBELL_INLINE EventType target_event() const {
      if (opcode == Opcode::atomic) return EventType::atomic;
      if (opcode == Opcode::fetching_atomic) return EventType::fetch_atomic;
      return is_get() ? EventType::get : EventType::put;
    }
    /// Bytes that the initiator wants to have moved at the end.
    [[nodiscard]] DOORBELL_INLINE u64 asked() const {
      return rendezvous != nullptr ? rendezvous->bytes : bytes;
    }
    /// Where in the memory of the target.
    [[nodiscard]] DOORBELL_INLINE u64 target_offset() const {
      return rendezvous != nullptr && fields->flags.use_offset_for_get ? 0 : fields->remote_offset;
    }
    /// The use that the buffer must be for.
    [[nodiscard]] DOORBELL_INLINE u32 permission() const {
      if (opcode == Opcode::fetching_atomic) return append_flag::op_get | append_flag::op_put;
      return is_get() ? append_flag::op_get : append_flag::op_put;
    }
    [[nodiscard]] DOORBELL_INLINE Access target_access() const {
      if (opcode == Opcode::fetching_atomic) return Access::read_write;
      return is_get() ? Access::read : Access::write;
    }
  };
  using Result = OperationResult;
  /// The effect of a plain command.
  struct Plain {
    u8* to = nullptr;
    u8* from = nullptr;
    u32 bytes = 0;
    u32 ct = 0;           ///< the counter that counts it; 0: none
    bool to_gpu = false;  ///< nothing but this GPU looks at the destination
    bool is_get = false;
    bool unrestricted = false;
    bool noop = false;
  };

  // engine_commands.hpp: queues and commands
  DOORBELL_GPU_NOINLINE void add(const WorkQueue& created);
  [[nodiscard]] DOORBELL_GPU_NOINLINE bool poll_launch_page(WorkQueue& q);
  DOORBELL_HD void apply(WorkQueue& q, u64 doorbell);
  [[nodiscard]] DOORBELL_GPU_NOINLINE bool take_window(WorkQueue& q);
  DOORBELL_GPU_NOINLINE void scan_windows(WorkQueue& q);
  [[nodiscard]] DOORBELL_HD const u64* commands(WorkQueue& q, u32 end);
  [[nodiscard]] DOORBELL_GPU_NOINLINE u32 run(WorkQueue& q, const u64* words, u32 unit, u32 end, bool window);
  [[nodiscard]] DOORBELL_GPU_NOINLINE ReturnCode execute(WorkQueue& q, const CommandHeader& h,
                                                         const u64* words);
  [[nodiscard]] DOORBELL_GPU_NOINLINE ReturnCode execute_idc(WorkQueue& q, const CommandHeader& h,
                                                             const u64* words);
  [[nodiscard]] DOORBELL_GPU_NOINLINE ReturnCode execute_dma(WorkQueue& q, const CommandHeader& h,
                                                             const u64* words);
  [[nodiscard]] DOORBELL_GPU_NOINLINE ReturnCode send(WorkQueue& q, const u64* words);
  [[nodiscard]] DOORBELL_GPU_NOINLINE ReturnCode execute_queue(WorkQueue& q, const CommandHeader& h,
                                                               const u64* words);
  DOORBELL_GPU_NOINLINE void fail(WorkQueue& q, ReturnCode code, u32 header, u32 unit, bool window);

  // engine_data.hpp: puts and gets
  [[nodiscard]] DOORBELL_GPU_NOINLINE ReturnCode operate(WorkQueue& q, const Operation& op);
  [[nodiscard]] DOORBELL_GPU_NOINLINE Result transfer(WorkQueue& q, const Operation& op,
                                                      const model::InjectedFault& injected);
  [[nodiscard]] DOORBELL_GPU_NOINLINE Result move(const Operation& op, const model::DmaPlace& local,
                                                  const ListEntry& entry,
                                                  const model::InjectedFault& injected);
  [[nodiscard]] DOORBELL_HD bool taken(const Operation& op);
  [[nodiscard]] DOORBELL_GPU_NOINLINE u32 find(u32 owner, u32 lac, Iova at, u64 bytes, Access want,
                                               ReturnCode& code);
  [[nodiscard]] DOORBELL_GPU_NOINLINE u32 route(WorkQueue& q, const Dfa& dfa, ReturnCode& code);
  [[nodiscard]] DOORBELL_GPU_NOINLINE ListEntry* list_entry(TableEntry& pte, const Operation& op,
                                                            ReturnCode& code);
  // engine_atomics.hpp
  [[nodiscard]] DOORBELL_HD bool is_dma_atomic(WorkQueue& q, const u64* words, ReturnCode& code);
  [[nodiscard]] DOORBELL_HD bool is_idc_atomic(WorkQueue& q, const u64* words, ReturnCode& code);
  [[nodiscard]] DOORBELL_GPU_NOINLINE Result carry_out(WorkQueue& q, const Operation& op,
                                                       const ListEntry& entry);
  [[nodiscard]] DOORBELL_INLINE static DmaFields fields_of(const CState& c) {
    DmaFields fields;
    fields.index_ext = c.index_ext;
    fields.lac = c.write_lac;
    fields.flags = c.flags;
    fields.ct = c.ct;
    fields.eq = c.eq;
    return fields;
  }
  DOORBELL_GPU_NOINLINE void delivered(TableEntry& pte, ListEntry& entry, const Operation& op);
  DOORBELL_HD void count_for(const TableEntry& pte, const Append& a, u64 bytes);
  DOORBELL_HD void tell(const TableEntry& pte, const TargetLongEvent& e, bool brief);
  DOORBELL_HD void book(const Operation& op, const Result& result, u64 bytes);
  DOORBELL_HD void acknowledge(u32 owner, const Operation& op, const Result& result, u64 bytes,
                               const model::InjectedFault& injected);
  DOORBELL_GPU_NOINLINE void acknowledge_carefully(const Acknowledgement& a,
                                                   const model::InjectedFault& injected);
  DOORBELL_GPU_NOINLINE void complete(const Acknowledgement& a);
  DOORBELL_GPU_NOINLINE bool release_late();
  [[nodiscard]] DOORBELL_HD bool settle();

  // engine_portals.hpp: portals entries
  DOORBELL_GPU_NOINLINE void remove_entry(u32 index);
  DOORBELL_GPU_NOINLINE void empty(TableEntry& pte);
  [[nodiscard]] DOORBELL_GPU_NOINLINE ReturnCode append(const WorkQueue& q, const u64* words);
  [[nodiscard]] DOORBELL_GPU_NOINLINE ReturnCode set_state(const WorkQueue& q, const u64* words);
  DOORBELL_GPU_NOINLINE void change_state(TableEntry& pte, PtlteState state, bool by_nic);
  [[nodiscard]] DOORBELL_GPU_NOINLINE ReturnCode unlink(const WorkQueue& q, const u64* words);
  DOORBELL_HD void drop_first(Chain& list);
  DOORBELL_HD void drop(Chain& list, u32 before, u32 place);
  DOORBELL_HD void report_unlink(const TableEntry& pte, PortalsList list, u32 buffer_id, bool by_nic,
                                 ReturnCode code);

  // engine_matching.hpp: matching portals entries
  [[nodiscard]] DOORBELL_GPU_NOINLINE Match search(const TableEntry& pte, const Message& m, u32 permission);
  [[nodiscard]] DOORBELL_GPU_NOINLINE Result match(WorkQueue& q, const Operation& op,
                                                   const model::DmaPlace& local, TableEntry& pte,
                                                   const model::InjectedFault& injected);
  [[nodiscard]] DOORBELL_HD static Message message_of(const Operation& op);
  [[nodiscard]] DOORBELL_HD const MappedMemory* memory_of(ListEntry& entry, u32 owner, Iova at, u64 bytes,
                                                          const Operation& op, ReturnCode& code);
  [[nodiscard]] DOORBELL_HD static bool use(ListEntry& entry, u64 bytes);
  [[nodiscard]] DOORBELL_HD static TargetLongEvent event_of(const TableEntry& pte, const Append& a,
                                                            PortalsList list, const Message& m);
  DOORBELL_GPU_NOINLINE void announce(const TableEntry& pte, const Append& a, PortalsList list,
                                      const Message& m, EventType type, bool unlinked);
  DOORBELL_GPU_NOINLINE void keep(const TableEntry& pte, const Message& m);
  DOORBELL_GPU_NOINLINE void forget(const TableEntry& pte, u32 before, u32 place);
  DOORBELL_GPU_NOINLINE void forget_all(const TableEntry& pte);
  [[nodiscard]] DOORBELL_HD bool wants(const Append& a, const Message& m) const;
  [[nodiscard]] DOORBELL_GPU_NOINLINE bool take_unexpected(TableEntry& pte, ListEntry& entry);
  [[nodiscard]] DOORBELL_GPU_NOINLINE ReturnCode search_unexpected(const WorkQueue& q, const u64* words);
  DOORBELL_GPU_NOINLINE void rendezvous(const TableEntry& pte, const Append& a, PortalsList list,
                                        const Message& m, Iova at, u64 room);
  DOORBELL_GPU_NOINLINE void pull();

  // engine_counters.hpp: counting events
  DOORBELL_GPU_NOINLINE void add(const CountingEvent& created);
  DOORBELL_GPU_NOINLINE void remove_counter(u32 index);
  [[nodiscard]] DOORBELL_GPU_NOINLINE ReturnCode execute_counter(WorkQueue& q, const CommandHeader& h,
                                                                 const u64* words);
  DOORBELL_GPU_NOINLINE void cancel(CountingEvent& ct);
  [[nodiscard]] DOORBELL_GPU_NOINLINE ReturnCode arm(const Trigger& trigger);
  [[nodiscard]] DOORBELL_HD Trigger take_trigger(CountingEvent& ct);
  DOORBELL_GPU_NOINLINE void fire(const Trigger& t);
  DOORBELL_HD void report(u32 owner, const CounterFields& f, ReturnCode code);
  DOORBELL_GPU_NOINLINE void count(u32 ct, u64 success, u32 failure);
  DOORBELL_GPU_NOINLINE void bring_up_to_date();
  DOORBELL_GPU_NOINLINE void bring_up_to_date(CountingEvent& ct);
  DOORBELL_HD void write_back(CountingEvent& ct);

  // engine_burst.hpp
  [[nodiscard]] DOORBELL_HD bool bursts(const WorkQueue& q) const;
  [[nodiscard]] DOORBELL_HD bool is_plain(const WorkQueue& q, const Word16* command, u32 units,
                                          Plain& out) const;

  /// Nothing happens if the client has no such queue: the number may be another's by now.
  template <class E>
  DOORBELL_HD void write_event(u32 owner, u32 eq, const E& event) {
    if (!has_event_queue(owner, eq)) return;
    EventProducer& producer = parts_.objects.event_queues[eq];
    if (!settle()) return;
    const u64 refused = producer.refused();
    bool written = false;
    if constexpr (std::is_same_v<E, InitiatorEvent>) {
      if (producer.long_initiator_events()) [[unlikely]] {
        InitiatorLongEvent stamped;
        static_cast<InitiatorEvent&>(stamped) = event;
        stamped.time.ns = static_cast<u32>(Parts::wall_ns() % 1'000'000'000);
        stamped.time.sec = Parts::wall_ns() / 1'000'000'000;
        written = producer.write(parts_, stamped);
      } else {
        written = producer.write(parts_, event);
      }
    } else {
      written = producer.write(parts_, event);
    }
    if (written) {
      parts_.counters.events += 1;
    } else {
      parts_.counters.dropped_events += 1;
      parts_.counters.eq_full += producer.refused() - refused;
    }
  }

  [[nodiscard]] DOORBELL_INLINE bool has_event_queue(u32 owner, u32 index) const {
    return index < Objects::Room::kEventQueues && parts_.objects.event_queues[index].exists() &&
           parts_.objects.event_queues[index].owner() == owner;
  }
  [[nodiscard]] DOORBELL_INLINE CountingEvent* counting_event(u32 index) const {
    if (index >= Objects::Room::kCounters) return nullptr;
    CountingEvent& ct = parts_.objects.counters[index];
    return ct.exists ? &ct : nullptr;
  }
  [[nodiscard]] DOORBELL_INLINE CountingEvent* counting_event(u32 owner, u32 index) const {
    CountingEvent* const ct = counting_event(index);
    return ct != nullptr && ct->owner == owner ? ct : nullptr;
  }
  [[nodiscard]] DOORBELL_INLINE TableEntry* table_entry(u32 owner, u32 index) const {
    if (index >= Objects::Room::kEntries) return nullptr;
    TableEntry& pte = parts_.objects.table[index];
    return pte.exists && pte.owner == owner ? &pte : nullptr;
  }
  [[nodiscard]] DOORBELL_INLINE u64 now() {
    if (now_ == 0) now_ = Parts::wall_ns();
    return now_;
  }

  Parts& parts_;
  const bool careful_;  // acknowledgements may take time, be lost, or be repeated
  const bool plain_;    // no special behaviour was asked for
  u64 now_ = 0;         // this round's time, from its first use on
  u64 epoch_ = 1;       // set-up calls so far
  u64 burst_bytes_ = 0;
  u64 acknowledged_ = 0;
  u32 waiting_ = 0;  // triggers that have not fired
  u32 list_entries_ = 0;
  // Of list entries and of triggers: those that were used and are free, and the first that was never used.
  u32 free_entry_ = kNobody, fresh_entry_ = 0;
  u32 free_trigger_ = kNobody, fresh_trigger_ = 0;
  Chain dirty_;  // counters whose new counts are not visible yet
  Numbers<Objects::kQueues> queues_;
  Numbers<Objects::Room::kCounters> counters_;
  Numbers<Objects::Room::kEventQueues> event_queues_;
  u32 memories_ = 0;  // all places of memory that are in use lie before this one
};

// --- a round ---------------------------------------------------------------------------------------------

template <class Parts>
DOORBELL_GPU_NOINLINE bool Engine<Parts>::poll() {
  if (parts_.gone()) return false;
  begin_round();
  bool work = false;
  for (u32 i = 0; i < queues_.count; ++i) {
    work = serve(queue(i)) || work;
    if (parts_.gone()) return true;
  }
  for (u32 i = 0; i < counters_.count; ++i) work = poll_doorbell(counter(i)) || work;
  return end_round(work);
}

template <class Parts>
DOORBELL_GPU_NOINLINE bool Engine<Parts>::end_round(bool work) {
  if (!parts_.late.empty()) work = release_late() || work;
  bring_up_to_date();
  if (!work)
    for (u32 i = 0; i < event_queues_.count; ++i)
      parts_.objects.event_queues[event_queues_.at[i]].look(parts_);
  return work;
}

template <class Parts>
DOORBELL_GPU_NOINLINE void Engine<Parts>::change(const Change& c) {
  (void)settle();
  bring_up_to_date();
  if (c.kind == Change::Kind::none) return;
  ++epoch_;
  Objects& o = parts_.objects;
  switch (c.kind) {
    case Change::Kind::none:
      break;
    case Change::Kind::add_queue:
      add(c.queue);
      break;
    case Change::Kind::remove_queue:
      queues_.remove(Objects::place_of(c.number));
      break;
    case Change::Kind::add_event_queue:
      o.event_queues[c.number] = c.events;
      event_queues_.add(c.number);
      break;
    case Change::Kind::remove_event_queue:
      o.event_queues[c.number] = {};
      event_queues_.remove(c.number);
      break;
    case Change::Kind::move_event_queue: {
      NullEvent<2> e;
      e.type = EventType::eq_switch;
      write_event(o.event_queues[c.number].owner(), c.number, e);
      o.event_queues[c.number].move_to(c.events);
      break;
    }
    case Change::Kind::add_counter:
      add(c.counter);
      break;
    case Change::Kind::remove_counter:
      remove_counter(c.number);
      break;
    case Change::Kind::move_writeback:
      o.counters[c.number].writes_back = c.counter.writes_back;
      o.counters[c.number].writeback = c.counter.writeback;
      break;
    case Change::Kind::add_entry:
      o.table[c.entry.index] = c.entry;
      o.table[c.entry.index].exists = true;
      break;
    case Change::Kind::remove_entry:
      remove_entry(c.number);
      break;
    case Change::Kind::name_entry: {
      TableEntry& pte = o.table[c.entry.index];
      pte.mapped = c.entry.mapped;
      pte.vni = c.entry.vni, pte.pid = c.entry.pid, pte.idx = c.entry.idx;
      break;
    }
    case Change::Kind::add_memory:
      o.memories[c.number] = c.memory;
      if (c.number >= memories_) memories_ = c.number + 1;
      break;
    case Change::Kind::remove_memory:
      o.memories[c.number] = {};
      break;
    case Change::Kind::add_domain:
      o.domains[c.number] = c.domain;
      break;
    case Change::Kind::remove_domain:
      o.domains[c.number] = {};
      break;
    case Change::Kind::set_profile:
      o.profiles[c.profile.owner][c.profile.lcid] = static_cast<u16>(c.profile.vni);
      break;
  }
}

/// A GPU that does not answer ends the device: nothing that the GPU should copy may be acknowledged.
template <class Parts>
DOORBELL_HD bool Engine<Parts>::settle() {
  if (parts_.mover.settle()) return !parts_.gone();
  parts_.leave();
  return false;
}

}  // namespace doorbell::cxi

#include "cxi/model/engine_atomics.hpp"
#include "cxi/model/engine_commands.hpp"
#include "cxi/model/engine_counters.hpp"
#include "cxi/model/engine_data.hpp"
#include "cxi/model/engine_matching.hpp"
#include "cxi/model/engine_portals.hpp"
