// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "cxi/model/endpoint.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "cxi/model/launch.hpp"

namespace doorbell::cxi {

namespace {

constexpr u64 kRegisterPage = 4096;
constexpr u64 kMaxEventBytes = u64{1} << 31;

u64 round_up(u64 n, u64 unit) {
  return (n + unit - 1) / unit * unit;
}

/// The region's address as the initiator of a queue uses it.
u8* address_for(Initiator initiator, const Region& region, const char* what) {
  u8* const at = initiator == Initiator::gpu ? region.device() : region.host();
  if (at == nullptr)
    throw Error(what, initiator == Initiator::gpu ? "the GPU cannot reach it" : "it lies in GPU memory");
  return at;
}

Change removal(Change::Kind kind, u32 number) {
  Change c;
  c.kind = kind;
  c.number = number;
  return c;
}

}  // namespace

// --- objects -----------------------------------------------------------------------------------------------

class ModelMemory final : public MemoryDescriptor {
 public:
  ModelMemory(ModelCassini& nic, u32 lac, const Region& region, Access access) : nic_(nic) {
    place_ = nic.memories_.claim();
    iova_ = nic.space_.map(region, access);
    lac_ = lac;
    bytes_ = region.bytes();
    const bool on_gpu = region.place() == Place::gpu, served = nic.served_by_gpu();
    const bool gpu = on_gpu && !served;  // a kernel reaches all memory itself
    Change c;
    c.kind = Change::Kind::add_memory;
    c.number = place_;
    c.memory = {.begin = iova_,
                .bytes = bytes_,
                .access = access,
                .lac = lac,
                .base = {gpu || served ? region.device() : region.host(), region.device(), gpu},
                // Of other GPUs' memory this GPU's fence says nothing.
                .on_gpu = on_gpu && region.gpu() == nic.gpu()};
    nic_.engine_->change(c);
  }
  ~ModelMemory() override {
    const std::scoped_lock lock(nic_.mutex_);
    nic_.engine_->change(removal(Change::Kind::remove_memory, place_));
    nic_.space_.unmap(iova_);
    nic_.memories_.release(place_);
  }

 private:
  ModelCassini& nic_;
  u32 place_ = 0;
};

class ModelEventQueue final : public EventQueueObject {
 public:
  ModelEventQueue(ModelCassini& nic, u64 bytes, Place place)
      : nic_(nic),
        index_(nic.event_queues_.claim()),
        events_(nic.space_, place, bytes, Access::read_write, nic.gpu()),
        csr_(nic.registers(kRegisterPage)),
        bytes_(static_cast<u32>(bytes)) {
    Change c;
    c.kind = Change::Kind::add_event_queue;
    c.number = index_;
    c.events = EventProducer(nic.place_of(events_), reinterpret_cast<u64*>(nic.reach(csr_)), bytes_,
                             nic.config().eq_full);
    nic_.engine_->change(c);
  }
  ~ModelEventQueue() override {
    const std::scoped_lock lock(nic_.mutex_);
    nic_.engine_->change(removal(Change::Kind::remove_event_queue, index_));
    nic_.event_queues_.release(index_);
  }
  [[nodiscard]] EventQueueMemory memory(Initiator initiator) override {
    EventQueueMemory m;
    m.events = address_for(initiator, events_.region(), "an event queue");
    m.csr = reinterpret_cast<u64*>(address_for(initiator, csr_, "an event queue's register"));
    m.bytes = bytes_;
    m.index = index_;
    return m;
  }
  [[nodiscard]] u32 index() const { return index_; }

 private:
  ModelCassini& nic_;
  u32 index_;
  Mapped events_;
  Region csr_;
  u32 bytes_;
};

class ModelCommandQueue final : public CommandQueueObject {
 public:
  ModelCommandQueue(ModelCassini& nic, const CommandQueueShape& shape, u32 slots, u32 vni)
      : nic_(nic),
        kind_(shape.kind),
        slots_(slots),
        ring_(nic.space_, shape.queue_memory, u64{slots} * kSlotBytes, Access::read_write, nic.gpu()),
        launch_(shape.kind == CommandQueueKind::target ? nic.registers(kLaunchBytes)
                                                       : nic.pages_of_initiator(kLaunchBytes)) {
    Change c;
    c.kind = Change::Kind::add_queue;
    WorkQueue& q = c.queue;
    q.index = numbers().claim();
    q.ordinal = nic.queues_created_++;
    q.kind = shape.kind;
    q.slots = slots;
    if (shape.events != nullptr) q.eq = dynamic_cast<ModelEventQueue&>(*shape.events).index();
    q.ring = nic.place_of(ring_);
    q.launch = nic.reach(launch_);
    // The host itself commands portals entries, also where a GPU is the initiator.
    q.read_only_launch = nic.served_by_gpu() && shape.kind == CommandQueueKind::target;
    if (q.read_only_launch) clear_launch_page(launch_.host());
    q.vni = vni;
    nic_.engine_->change(c);
    index_ = q.index;
  }
  ~ModelCommandQueue() override {
    const std::scoped_lock lock(nic_.mutex_);
    nic_.engine_->change(removal(Change::Kind::remove_queue, index_));
    numbers().release(index_);
  }
  [[nodiscard]] CommandQueueMemory memory(Initiator initiator) override {
    CommandQueueMemory m;
    m.ring = reinterpret_cast<Word16*>(address_for(initiator, ring_.region(), "a command queue"));
    m.launch = address_for(initiator, launch_, "a command queue's launch page");
    m.slots = slots_;
    m.index = index_;
    m.triggered = kind_ == CommandQueueKind::triggered;
    return m;
  }

 private:
  [[nodiscard]] Handles& numbers() {
    return kind_ == CommandQueueKind::target ? nic_.target_queues_ : nic_.transmit_queues_;
  }

  ModelCassini& nic_;
  CommandQueueKind kind_;
  u32 slots_;
  u32 index_ = 0;
  Mapped ring_;
  Region launch_;
};

class ModelCounter final : public CounterObject {
 public:
  ModelCounter(ModelCassini& nic, bool writeback, Place place)
      : nic_(nic), doorbell_(nic.pages_of_initiator(kRegisterPage)) {
    if (writeback) writeback_ = Mapped(nic.space_, place, kRegisterPage, Access::read_write, nic.gpu());
    Change c;
    c.kind = Change::Kind::add_counter;
    c.counter.index = index_ = nic.counters_.claim();
    c.counter.doorbell = reinterpret_cast<u64*>(nic.reach(doorbell_));
    c.counter.writes_back = writes_back_ = writeback;
    c.counter.on_request = nic.counts_on_request();
    if (writeback) c.counter.writeback = nic.place_of(writeback_);
    nic_.engine_->change(c);
  }
  ~ModelCounter() override {
    const std::scoped_lock lock(nic_.mutex_);
    nic_.engine_->change(removal(Change::Kind::remove_counter, index_));
    nic_.counters_.release(index_);
  }
  [[nodiscard]] CounterMemory memory(Initiator initiator) override {
    CounterMemory m;
    m.doorbell = reinterpret_cast<u64*>(address_for(initiator, doorbell_, "a counter's doorbell page"));
    if (writes_back_)
      m.writeback =
          reinterpret_cast<u64*>(address_for(initiator, writeback_.region(), "what a counter writes back"));
    m.index = index_;
    return m;
  }

 private:
  ModelCassini& nic_;
  Region doorbell_;
  Mapped writeback_;
  u32 index_ = 0;
  bool writes_back_ = false;
};

class ModelPortalsEntry final : public PortalsEntry {
 public:
  ModelPortalsEntry(ModelEndpoint& endpoint, ModelEventQueue& events, u32 pid_offset, bool matching)
      : endpoint_(endpoint), nic_(endpoint.nic_) {
    index_ = nic_.entries_.claim();
    Change c;
    c.kind = Change::Kind::add_entry;
    c.entry.index = index_;
    c.entry.vni = endpoint.vni_;
    c.entry.pid = endpoint.pid_;
    c.entry.idx = offset_ = pid_offset;
    c.entry.eq = events.index();
    c.entry.matching = matching;
    c.entry.state = PtlteState::disabled;
    endpoint_.offsets_.push_back(pid_offset);
    nic_.engine_->change(c);
  }
  ~ModelPortalsEntry() override {
    const std::scoped_lock lock(nic_.mutex_);
    nic_.engine_->change(removal(Change::Kind::remove_entry, index_));
    std::erase(endpoint_.offsets_, offset_);
    nic_.entries_.release(index_);
  }

 private:
  ModelEndpoint& endpoint_;
  ModelCassini& nic_;
  u32 offset_ = 0;
};

// --- the endpoint ------------------------------------------------------------------------------------------

ModelEndpoint::ModelEndpoint(ModelCassini& nic, u16 vni) : nic_(nic), vni_(vni) {
  lac_ = nic.contexts_.claim();
  pid_ = nic.pids_.claim();
  lcid_ = nic.profiles_.claim();
  Change c;
  c.kind = Change::Kind::add_domain;
  c.number = lcid_;  // an endpoint has one of each
  c.domain = {vni_, pid_};
  nic_.engine_->change(c);
  c.kind = Change::Kind::set_profile;
  c.profile = {0, lcid_, vni_};
  nic_.engine_->change(c);
}

ModelEndpoint::~ModelEndpoint() {
  const std::scoped_lock lock(nic_.mutex_);
  nic_.engine_->change(removal(Change::Kind::remove_domain, lcid_));
  Change c;
  c.kind = Change::Kind::set_profile;
  c.profile = {0, lcid_, 0};
  nic_.engine_->change(c);
  nic_.contexts_.release(lac_);
  nic_.pids_.release(pid_);
  nic_.profiles_.release(lcid_);
}

Address ModelEndpoint::address() const {
  return {.nid = nic_.shared_.nid, .pid = pid_, .pid_bits = nic_.config().pid_bits, .vni = vni_};
}

std::unique_ptr<MemoryDescriptor> ModelEndpoint::map(const Region& region, Access access) {
  nic_.require_reachable(region.place(), "mapping GPU memory");
  if (region.bytes() == 0)
    throw CallError(CallError::Call::map, EINVAL, "mapping memory for the model", "the region is empty");
  if (nic_.served_by_gpu() && region.device() == nullptr)
    throw CallError(CallError::Call::map, EFAULT, "mapping memory for the model",
                    "its engine is a kernel, and the GPU does not reach the memory");
  const std::scoped_lock lock(nic_.mutex_);
  return std::make_unique<ModelMemory>(nic_, lac_, region, access);
}

std::unique_ptr<EventQueueObject> ModelEndpoint::create_event_queue(u64 bytes, Place place) {
  nic_.require_reachable(place, "an event queue in GPU memory");
  if (bytes == 0 || bytes > kMaxEventBytes)
    throw CallError(CallError::Call::other, EINVAL, "an event queue of the model",
                    fmt::format("{} bytes are not in 1..{}", bytes, kMaxEventBytes));
  const std::scoped_lock lock(nic_.mutex_);
  return std::make_unique<ModelEventQueue>(nic_, round_up(bytes, kRegisterPage), place);
}

std::unique_ptr<CommandQueueObject> ModelEndpoint::create_command_queue(const CommandQueueShape& shape) {
  nic_.require_reachable(shape.queue_memory, "a command queue in GPU memory");
  if (shape.slots > kMaxSlots)
    throw CallError(CallError::Call::other, EINVAL, "a command queue of the model",
                    fmt::format("{} slots are not in 0..{}", shape.slots, kMaxSlots));
  // As the driver does: the size is a power of two in pages.
  u32 slots = kMinSlots;
  while (slots < shape.slots) slots *= 2;
  const std::scoped_lock lock(nic_.mutex_);
  return std::make_unique<ModelCommandQueue>(nic_, shape, slots, vni_);
}

std::unique_ptr<CounterObject> ModelEndpoint::create_counter(bool writeback, Place place) {
  nic_.require_reachable(writeback ? place : Place::pageable, "a counter in GPU memory");
  const std::scoped_lock lock(nic_.mutex_);
  return std::make_unique<ModelCounter>(nic_, writeback, place);
}

std::unique_ptr<PortalsEntry> ModelEndpoint::create_portals_entry(EventQueueObject& events, u32 pid_offset,
                                                                  bool matching) {
  if (matching && nic_.config().engine != ModelConfig::Engine::cpu)
    throw CallError(CallError::Call::other, ENOTSUP, "a matching portals entry of the model",
                    "a Cassini that is a kernel does no matching; take the engine cpu");
  const u32 last = std::min(kMaxPidOffset, (1u << (12 - nic_.config().pid_bits)) * 32 - 1);
  if (pid_offset > last)
    throw CallError(CallError::Call::other, EINVAL, "a portals entry of the model",
                    fmt::format("pid offset {} is not in 0..{}", pid_offset, last));
  const std::scoped_lock lock(nic_.mutex_);
  if (std::ranges::find(offsets_, pid_offset) != offsets_.end())
    throw CallError(CallError::Call::other, EEXIST, "a portals entry of the model",
                    fmt::format("pid offset {} is in use", pid_offset));
  return std::make_unique<ModelPortalsEntry>(*this, dynamic_cast<ModelEventQueue&>(events), pid_offset,
                                             matching);
}

}  // namespace doorbell::cxi
