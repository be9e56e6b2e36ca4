// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "cxi/model/engine_thread.hpp"

#include <sys/socket.h>

#include <mutex>

#include "cxi/model/engine.hpp"
#include "model/between_rounds.hpp"
#include "model/due_heap.hpp"
#include "model/host_mover.hpp"
#include "system/clock.hpp"

namespace doorbell::cxi {

namespace {

/// As many as the device's numbers can name.
struct ThreadRoom {
  static constexpr u32 kTransmitQueues = kMaxTransmitQueues;
  static constexpr u32 kTargetQueues = kMaxTargetQueues;
  static constexpr u32 kEventQueues = kMaxEventQueues;
  static constexpr u32 kCounters = kMaxCounters;
  static constexpr u32 kEntries = kMaxPortalsEntries;
  static constexpr u32 kMemories = 8192;
  static constexpr u32 kDomains = 1024;
  static constexpr u32 kOwners = 64;
};

/// The parts of an engine on a thread; see Engine.
class ThreadParts {
 public:
  static constexpr u32 kInARow = 64;
  static constexpr bool kReadsAtOnce = true;
  static constexpr bool kAtomics = true;
  static constexpr bool kMatching = true;

  ThreadParts(ModelShared& shared, const SoftwareAddressSpace& space, model::DmaAgent* agent)
      : shared_(shared),
        own_(std::make_unique<Own>()),
        list_entries_(std::make_unique<ListEntry[]>(shared.config.max_list_entries)),
        unexpected_(std::make_unique<UnexpectedMessage[]>(shared.config.max_list_entries)),
        matching(own_->matching),
        objects(own_->objects),
        rule(shared.engine_rule()),
        faults(shared.faults),
        dma(space, agent, 0),
        mover(dma, atomics_, shared.config.copy_threads) {}

  [[nodiscard]] ListEntry& list_entry(u32 i) const { return list_entries_[i]; }
  [[nodiscard]] UnexpectedMessage& unexpected(u32 i) const { return unexpected_[i]; }
  [[nodiscard]] Trigger& trigger(u32 i) const { return own_->triggers[i]; }
  [[nodiscard]] u64* staging() { return own_->staging; }
  [[nodiscard]] bool gone() const { return shared_.presence.gone(); }
  void leave() { (void)shared_.presence.leave(); }
  void remove_device() { faults.remove(shared_.presence); }
  [[nodiscard]] u64 finish_time(u64 now_ns, u64 bytes) { return shared_.link.finish_time(now_ns, bytes); }
  [[nodiscard]] static u64 wall_ns() { return doorbell::wall_ns(); }
  /// Wakes who polls the other end for POLLPRI. A byte that finds no room comes behind one that does so.
  static void signal(int fd) { (void)::send(fd, "!", 1, MSG_OOB | MSG_DONTWAIT | MSG_NOSIGNAL); }

 private:
  struct Own {
    Objects<ThreadRoom> objects;
    Trigger triggers[kMaxTriggers];
    MatchingState<ThreadRoom::kEntries> matching;
    u64 staging[(kInARow + 1) * kSlotBytes / 8];  // from the middle of a slot on
  };
  ModelShared& shared_;
  std::unique_ptr<Own> own_;
  std::unique_ptr<ListEntry[]> list_entries_;
  std::unique_ptr<UnexpectedMessage[]> unexpected_;
  std::mutex atomics_;  // this device has none

 public:
  MatchingState<ThreadRoom::kEntries>& matching;
  Objects<ThreadRoom>& objects;
  const EngineRule rule;
  model::FaultInjector& faults;
  model::DmaEngine dma;
  model::HostMover mover;
  model::DueHeap<Acknowledgement> late;
  EngineCounters counters;
};

class EngineThread final : public EngineBase {
 public:
  EngineThread(ModelShared& shared, const SoftwareAddressSpace& space, model::DmaAgent* agent)
      : parts_(shared, space, agent), engine_(parts_), set_up_(shared.config.own_thread) {}

  void change(const Change& c) override {
    set_up_.run([&] { engine_.change(c); });
  }
  EntryReport entry(u32 index) override {
    EntryReport report;
    set_up_.run([&] { report = engine_.entry(index); });
    return report;
  }
  u32 unexpected(u32 index, u32 first, std::span<u64> offsets) override {
    u32 all = 0;
    set_up_.run([&] { all = engine_.unexpected(index, first, offsets); });
    return all;
  }
  bool poll() override {
    set_up_.serve();
    const bool work = engine_.poll();
    // Copies that nothing announces become visible too. A round that ended because the device has gone leaves
    // no copy behind: the memory may be gone next.
    parts_.mover.settle_shared();
    return work;
  }
  [[nodiscard]] MostObjects most() const override { return MostObjects::of<ThreadRoom>(); }
  [[nodiscard]] const EngineCounters& counters() const override { return parts_.counters; }
  [[nodiscard]] u64 dma_faults() const override { return parts_.dma.faults(); }

 private:
  ThreadParts parts_;
  Engine<ThreadParts> engine_;
  model::BetweenRounds set_up_;
};

}  // namespace

std::unique_ptr<EngineBase> engine_on_thread(ModelShared& shared, const SoftwareAddressSpace& space,
                                             model::DmaAgent* agent) {
  return std::make_unique<EngineThread>(shared, space, agent);
}

}  // namespace doorbell::cxi
