// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The data path of the software Cassini: one thread that owns every queue, counter and portals entry, so
// there is no lock.
#pragma once

#include "cxi/model/config.hpp"
#include "cxi/model/objects.hpp"
#include "model/between_rounds.hpp"
#include "model/copier.hpp"
#include "model/count.hpp"
#include "model/due_heap.hpp"
#include "model/shared.hpp"
#include "system/clock.hpp"

namespace doorbell::cxi {

struct EngineCounters {
  model::Count commands, puts, gets, idc_puts, unrestricted, bytes, packets, doorbells, invalid_doorbells,
      window_writes, rejected_windows, command_failures, refused_operations, events, dropped_events,
      triggered;
  // Injected faults that only this model has.
  model::Count eq_full, stuck_read, pte_disabled;
};

class Engine {
 public:
  /// `alive`: the word that stays 1 while the device is there.
  Engine(const ModelConfig& config, u32 nid, const SoftwareAddressSpace& space, model::DmaAgent* agent,
         u32* alive);

  /// Does one round; true if there was work. Called by the engine's thread only.
  bool poll();

  /// Runs `work` on the engine's thread between two rounds and waits for it. One caller at a time.
  void set_up(const std::function<void()>& work);

  // Call the following functions only inside set_up.
  void add(WorkQueue& q);
  void remove(WorkQueue& q);
  void add(u32 index, EventProducer& eq);
  void add(CountingEvent& ct);
  void remove(CountingEvent& ct);
  void add(TableEntry& pte);
  void remove(TableEntry& pte);
  void remove_event_queue(u32 index);
  void add(u32 lac, const MappedMemory& memory) { contexts_[lac].push_back(memory); }
  void remove(u32 lac, Iova begin);
  void add_domain(u32 vni, u32 pid, u32 lcid);
  void remove_domain(u32 vni, u32 pid, u32 lcid);

  [[nodiscard]] const EngineCounters& counters() const { return counters_; }
  [[nodiscard]] const model::FaultInjector& faults() const { return shared_.faults; }
  [[nodiscard]] u64 dma_faults() const { return dma_.faults(); }

 private:
  static constexpr u32 kBurstSlots = 64;              // of one queue in a round
  static constexpr u64 kBurstBytes = u64{256} << 10;  // then other queues get their turn, and ACKs go out
  static constexpr u64 kGpuShare = 64;                // one in so many bytes counts if a GPU copies them
  static constexpr u32 kLooks = 4;                    // looks at a launch page in a round
  static constexpr u32 kLargestSlots = 4;             // of one command

  /// Bytes to move from one memory to another.
  struct Operation {
    const DmaFields* fields = nullptr;
    Opcode opcode = Opcode::nomatch_put;
    const u8* inlined = nullptr;  ///< the payload, if it was in the command
    u64 bytes = 0;
    u64 user_ptr = 0;
    u32 initiator = 0;
    u64 match_bits = 0;
    u64 header_data = 0;
    [[nodiscard]] bool is_get() const { return opcode == Opcode::get || opcode == Opcode::nomatch_get; }
  };
  struct Result {
    ReturnCode code = ReturnCode::ok;
    bool by_target = false;  ///< the code is from the end whose memory was to be reached
  };
  /// The report about an operation to its initiator.
  struct Acknowledgement {
    DmaFlags flags;
    bool is_get = false;
    Result result;
    u32 ct = 0;
    u32 eq = 0;
    u64 bytes = 0;
    u64 user_ptr = 0;
  };

  // engine.cpp: queues and commands
  [[nodiscard]] bool serve_all();
  [[nodiscard]] bool serve(WorkQueue& q);
  [[nodiscard]] bool poll_launch_page(WorkQueue& q);
  void apply(WorkQueue& q, u64 doorbell);
  [[nodiscard]] bool take_window(WorkQueue& q);
  void scan_windows(WorkQueue& q);
  [[nodiscard]] const u64* commands(WorkQueue& q, u32 end);
  u32 run(WorkQueue& q, const u64* words, u32 unit, u32 end, bool window);
  [[nodiscard]] ReturnCode execute(WorkQueue& q, const CommandHeader& h, const u64* words);
  [[nodiscard]] ReturnCode execute_idc(WorkQueue& q, const CommandHeader& h, const u64* words);
  [[nodiscard]] ReturnCode execute_dma(WorkQueue& q, const CommandHeader& h, const u64* words);
  [[nodiscard]] ReturnCode execute_queue(WorkQueue& q, const CommandHeader& h, const u64* words);
  void fail(WorkQueue& q, ReturnCode code, u32 header, u32 unit, bool window);
  void publish(WorkQueue& q);

  // engine_data.cpp: puts and gets
  [[nodiscard]] ReturnCode operate(WorkQueue& q, const Operation& op);
  [[nodiscard]] Result transfer(WorkQueue& q, const Operation& op, const model::InjectedFault& injected);
  [[nodiscard]] Result move(const Operation& op, const model::DmaPlace& local, const ListEntry& entry,
                            const model::InjectedFault& injected);
  [[nodiscard]] const MappedMemory* find(u32 lac, Iova at, u64 bytes, Access want, ReturnCode& code);
  [[nodiscard]] TableEntry* route(WorkQueue& q, const Dfa& dfa, ReturnCode& code);
  [[nodiscard]] ListEntry* list_entry(TableEntry& pte, const Operation& op, ReturnCode& code);
  void delivered(TableEntry& pte, ListEntry& entry, const Operation& op);
  void acknowledge(const Operation& op, const Result& result, const model::InjectedFault& injected);
  void acknowledge_carefully(const Acknowledgement& a, const model::InjectedFault& injected);
  void complete(const Acknowledgement& a);
  [[nodiscard]] bool release_late();
  [[nodiscard]] bool settle();

  // engine_portals.cpp: portals entries
  [[nodiscard]] ReturnCode append(const u64* words);
  [[nodiscard]] ReturnCode set_state(const u64* words);
  void change_state(TableEntry& pte, PtlteState state, bool by_nic);

  // engine_counters.cpp: counting events
  [[nodiscard]] ReturnCode execute_counter(WorkQueue& q, const CommandHeader& h, const u64* words);
  [[nodiscard]] ReturnCode arm(const Trigger& trigger);
  void fire(const Trigger& t);
  void count(u32 ct, u64 success, u32 failure);
  [[nodiscard]] bool poll_doorbell(CountingEvent& ct);
  void bring_up_to_date();
  void bring_up_to_date(CountingEvent& ct);
  void write_back(CountingEvent& ct);

  template <class E>
  void write_event(u32 eq, const E& event) {
    EventProducer* const producer = eq < kMaxEventQueues ? event_queues_[eq] : nullptr;
    if (producer == nullptr) return;
    if (!settle()) return;
    const u64 refused = producer->refused();
    if (producer->write(dma_, event)) {
      counters_.events += 1;
    } else {
      counters_.dropped_events += 1;
      counters_.eq_full += producer->refused() - refused;
    }
  }

  [[nodiscard]] CountingEvent* counting_event(u32 index) const {
    return index < kMaxCounters ? counting_events_[index] : nullptr;
  }
  [[nodiscard]] u64 now() {
    if (now_ == 0) now_ = wall_ns();
    return now_;
  }

  model::Shared<ModelConfig> shared_;
  const u32 nid_;
  model::BetweenRounds set_up_;
  model::DmaEngine dma_;
  model::Copier copier_;
  const bool timed_;    // acknowledgements take time
  const bool careful_;  // faults or other special behaviour was asked for
  u64 now_ = 0;         // this round's time, from its first use on
  u64 epoch_ = 1;       // set-up calls so far
  u64 burst_bytes_ = 0;
  u64 acknowledged_ = 0;
  u64 armed_ = 0;    // triggers so far
  u32 waiting_ = 0;  // triggers that have not fired
  u32 list_entries_ = 0;

  std::vector<WorkQueue*> queues_;
  std::vector<CountingEvent*> counters_in_use_;
  std::vector<CountingEvent*> dirty_;
  std::vector<EventProducer*> event_queues_in_use_;
  std::vector<EventProducer*> event_queues_;  // by handle, as in the next two

  std::vector<CountingEvent*> counting_events_;
  std::vector<TableEntry*> table_;
  std::array<std::vector<MappedMemory>, kMaxContexts> contexts_;
  struct Domain {
    u32 vni, pid, lcid;
  };
  std::vector<Domain> domains_;
  model::DueHeap<Acknowledgement> late_;
  std::vector<u8> scratch_;
  EngineCounters counters_;
};

}  // namespace doorbell::cxi
