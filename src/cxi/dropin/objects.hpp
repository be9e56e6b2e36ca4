// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The objects of the Nic's clients. Each registers itself with the engine, and its destructor takes it away.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "cxi/dropin/nic.hpp"
#include "cxi/dropin/pieces.hpp"
#include "cxi/dropin/protocol.hpp"
#include "system/descriptor.hpp"

namespace doorbell::cxi::dropin {

/// An object that others use cannot be destroyed.
struct Object {
  Object(Nic& n, Kind k, std::vector<Object*> used) : nic(n), kind(k), uses(std::move(used)) {
    std::erase(uses, nullptr);
    for (Object* const o : uses) ++o->users;
  }
  virtual ~Object() {
    for (Object* const o : uses) --o->users;
  }
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  Nic& nic;
  const Kind kind;
  std::vector<Object*> uses;
  u32 users = 0;
};

inline Change removal(Change::Kind kind, u32 number) {
  Change c;
  c.kind = kind;
  c.number = number;
  return c;
}

struct Lni final : Object {
  static constexpr Kind kKind = Kind::lni;
  Lni(Nic& n, const Service& s) : Object(n, kKind, {}), service(s), owner(n.owners.claim()) {}
  ~Lni() override {
    // Its reservations that nobody uses.
    std::erase_if(nic.pids, [this](const auto& p) { return p.second.reserved_by == owner; });
    nic.owners.release(owner);
  }
  const Service service;
  const u32 owner;
  u32 profiles[kMaxProfiles] = {};  ///< how often each was given out
  u32 vnis[kMaxProfiles] = {};
};

struct ProfileObject final : Object {
  static constexpr Kind kKind = Kind::profile;
  ProfileObject(Lni& l, u32 number, u32 vni) : Object(l.nic, kKind, {&l}), lni(l), lcid(number) {
    ++l.profiles[lcid];
    name(vni);
  }
  ~ProfileObject() override {
    if (--lni.profiles[lcid] == 0) name(0);
  }
  /// The network that the profile's number stands for.
  void name(u32 vni) {
    lni.vnis[lcid] = vni;
    Change c;
    c.kind = Change::Kind::set_profile;
    c.profile = {lni.owner, lcid, vni};
    nic.engine->change(c);
  }
  Lni& lni;
  const u32 lcid;
};

struct DomainObject final : Object {
  static constexpr Kind kKind = Kind::domain;
  DomainObject(Lni& l, u32 network, u32 process)
      : Object(l.nic, kKind, {&l}), vni(network), pid(process), number(nic.domains.claim()) {
    nic.pids[{vni, pid}].used = true;
    Change c;
    c.kind = Change::Kind::add_domain;
    c.number = number;
    c.domain = {vni, pid};
    nic.engine->change(c);
  }
  ~DomainObject() override {
    nic.engine->change(removal(Change::Kind::remove_domain, number));
    nic.domains.release(number);
    nic.pids.erase({vni, pid});  // a reservation is for one use
  }
  const u32 vni, pid, number;
};

struct Mapping final : Object {
  static constexpr Kind kKind = Kind::mapping;
  Mapping(Lni& l, Pieces memory, u64 first, u64 size, Access access)
      : Object(l.nic, kKind, {&l}),
        pieces(std::move(memory)),
        address(first),
        bytes(size),
        place(nic.memories.claim()),
        iova(nic.next_iova) {
    nic.next_iova += bytes + (u64{1} << 21);  // an access past the end is a fault, not another mapping
    Change c;
    c.kind = Change::Kind::add_memory;
    c.number = place;
    c.memory = {.begin = iova,
                .bytes = bytes,
                .access = access,
                .owner = l.owner,
                .lac = kContext,
                .base = {pieces.data(), nullptr, false}};
    nic.engine->change(c);
  }
  ~Mapping() override {
    nic.engine->change(removal(Change::Kind::remove_memory, place));
    nic.memories.release(place);
  }
  /// Where the engine reaches the client's address; null unless all of it is in this mapping.
  [[nodiscard]] u8* at(u64 from, u64 n) const {
    return from >= address && n <= bytes && from - address <= bytes - n ? pieces.data() + (from - address)
                                                                        : nullptr;
  }
  static constexpr u32 kContext = 0;
  Pieces pieces;
  const u64 address, bytes;
  const u32 place;
  const Iova iova;
};

struct WaitObject final : Object {
  static constexpr Kind kKind = Kind::wait_object;
  WaitObject(Lni& l, Descriptor file) : Object(l.nic, kKind, {&l}), signal(std::move(file)) {}
  Descriptor signal;
};

struct Events final : Object {
  static constexpr Kind kKind = Kind::event_queue;
  Events(Lni& l, Mapping* m, WaitObject* event, WaitObject* status, u8* at, u64 size, Pieces page,
         bool long_initiator)
      : Object(l.nic, kKind, {&l, m, event, status}),
        memory(m),
        csr(std::move(page)),
        bytes(size),
        number(nic.event_queues.claim()) {
    Change c;
    c.kind = Change::Kind::add_event_queue;
    c.number = number;
    c.events = EventProducer({at, 0}, reinterpret_cast<u64*>(csr.data()), static_cast<u32>(size),
                             nic.shared.config.eq_full,
                             {.owner = l.owner,
                              .long_initiator = long_initiator,
                              .alone = true,  // as a card's that has nothing to write behind it
                              .on_event = event != nullptr ? event->signal.get() : -1,
                              .on_status = status != nullptr ? status->signal.get() : -1});
    nic.engine->change(c);
  }
  ~Events() override {
    nic.engine->change(removal(Change::Kind::remove_event_queue, number));
    nic.event_queues.release(number);
  }
  void resize(Mapping& m, u8* at, u64 size) {
    Change c;
    c.kind = Change::Kind::move_event_queue;
    c.number = number;
    c.events = EventProducer({at, 0}, nullptr, static_cast<u32>(size), 0);
    nic.engine->change(c);
    uses.push_back(&m);
    ++m.users;
    former = std::exchange(memory, &m);
    bytes = size;
  }
  /// The reader has followed.
  void leave_former() {
    uses.erase(std::ranges::find(uses, static_cast<Object*>(former)));
    --std::exchange(former, nullptr)->users;
  }
  Mapping* memory;
  Mapping* former = nullptr;  ///< while the queue is being resized
  Pieces csr;
  u64 bytes;
  const u32 number;
  int reserved = 0;  ///< events, for flow control
};

struct Commands final : Object {
  static constexpr Kind kKind = Kind::command_queue;
  Commands(Lni& l, Events* events, CommandQueueKind takes, u32 slots, u32 vni, Pieces ring_pages, Pieces page,
           bool foreign)
      : Object(l.nic, kKind, {&l, events}),
        ring(std::move(ring_pages)),
        launch(std::move(page)),
        numbers(takes == CommandQueueKind::target ? nic.target_queues : nic.transmit_queues) {
    Change c;
    c.kind = Change::Kind::add_queue;
    WorkQueue& q = c.queue;
    q.index = number = numbers.claim();
    q.ordinal = nic.queues_created++;
    q.kind = takes;
    q.owner = l.owner;
    q.foreign = foreign;
    q.slots = slots;
    if (events != nullptr) q.eq = events->number;
    q.ring = {ring.data(), 0};
    q.launch = launch.data();
    q.vni = vni;
    nic.engine->change(c);
  }
  ~Commands() override {
    nic.engine->change(removal(Change::Kind::remove_queue, number));
    numbers.release(number);
  }
  Pieces ring, launch;
  Handles& numbers;
  u32 number = 0;
};

struct Count final : Object {
  static constexpr Kind kKind = Kind::counter;
  Count(Lni& l, Pieces page, Pieces memory, u8* at)
      : Object(l.nic, kKind, {&l}),
        doorbell(std::move(page)),
        writeback(std::move(memory)),
        number(nic.counters.claim()) {
    Change c;
    c.kind = Change::Kind::add_counter;
    c.counter.index = number;
    c.counter.owner = l.owner;
    c.counter.doorbell = reinterpret_cast<u64*>(doorbell.data());
    c.counter.writes_back = at != nullptr;
    c.counter.on_request = true;  // as hardware does; programs take an early one for the answer
    c.counter.writeback = {at, 0};
    nic.engine->change(c);
  }
  ~Count() override {
    nic.engine->change(removal(Change::Kind::remove_counter, number));
    nic.counters.release(number);
  }
  void move(Pieces memory, u8* at) {
    Change c;
    c.kind = Change::Kind::move_writeback;
    c.number = number;
    c.counter.writes_back = at != nullptr;
    c.counter.writeback = {at, 0};
    nic.engine->change(c);
    writeback = std::move(memory);
  }
  Pieces doorbell, writeback;
  const u32 number;
};

struct Entry final : Object {
  static constexpr Kind kKind = Kind::portals_entry;
  Entry(Lni& l, Events* events, bool long_events, bool matching)
      : Object(l.nic, kKind, {&l, events}), number(nic.entries.claim()) {
    Change c;
    c.kind = Change::Kind::add_entry;
    c.entry.index = number;
    c.entry.owner = l.owner;
    c.entry.mapped = false;
    c.entry.eq = events != nullptr ? events->number : 0;
    c.entry.long_events = long_events;
    c.entry.matching = matching;
    c.entry.state = PtlteState::disabled;
    nic.engine->change(c);
  }
  ~Entry() override {
    nic.engine->change(removal(Change::Kind::remove_entry, number));
    nic.entries.release(number);
  }
  const u32 number;
};

struct EntryName final : Object {
  static constexpr Kind kKind = Kind::entry_name;
  EntryName(Entry& e, DomainObject& d, u32 index)
      : Object(e.nic, kKind, {&e, &d}), entry(e), name(d.vni, d.pid, index) {
    nic.entry_names.insert(name);
    tell(true);
  }
  ~EntryName() override {
    tell(false);
    nic.entry_names.erase(name);
  }
  void tell(bool mapped) const {
    Change c;
    c.kind = Change::Kind::name_entry;
    c.entry.index = entry.number;
    c.entry.mapped = mapped;
    std::tie(c.entry.vni, c.entry.pid, c.entry.idx) = name;
    nic.engine->change(c);
  }
  Entry& entry;
  const std::tuple<u32, u32, u32> name;
};

}  // namespace doorbell::cxi::dropin
