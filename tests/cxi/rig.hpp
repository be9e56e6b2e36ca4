// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// An initiator and a target on one software Cassini, as in the loopback; the test makes each step itself.
#pragma once

#include <doorbell/cxi/command_queue.hpp>
#include <doorbell/cxi/commands.hpp>
#include <doorbell/cxi/event_queue.hpp>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <optional>

#include "cxi/backends.hpp"
#include "cxi/model/cassini.hpp"
#include "cxi/model/spec.hpp"
#include "cxi/names.hpp"
#include "eventually.hpp"
#include "model/faults.hpp"
#include "system/clock.hpp"

namespace doorbell::cxi {

inline constexpr OneLane lane;

using test::eventually;

/// Mapped memory with a pattern that has no period in sight.
struct Memory {
  Memory(CassiniDevice& d, Endpoint& e, u64 bytes, Access access = Access::read_write)
      : region(d.allocate(Place::pageable, bytes, nullptr)), md(e.map(region, access)) {}
  [[nodiscard]] u8* data() { return region.host(); }
  [[nodiscard]] u64 iova(u64 at = 0) const { return md->iova() + at; }
  void fill(u8 seed) {
    for (u64 i = 0; i < region.bytes(); ++i) data()[i] = static_cast<u8>(seed + i * 7 + (i >> 8) * 13);
  }
  void clear() { std::memset(data(), 0, region.bytes()); }
  Region region;
  std::unique_ptr<MemoryDescriptor> md;
};

/// Back when the device has looked at everything that it had been told by now: it makes and drops objects
/// between two rounds only.
inline void let_rounds_pass(Endpoint& e) {
  for (int i = 0; i < 2; ++i) (void)e.create_counter(false, Place::pageable);
}

/// An event queue and its reader. Events are given back when the next one is asked for.
struct Events {
  Events(Endpoint& e, u64 bytes) : endpoint(&e), object(e.create_event_queue(bytes, Place::pageable)) {
    EventQueueState s;
    s.memory = object->memory(Initiator::cpu);
    queue.emplace(s);
  }
  [[nodiscard]] u32 index() const { return queue->index(); }
  using Polled = EventQueue<OneLane>::Polled;
  std::optional<Polled> poll() {
    queue->ack(lane);
    const Polled p = queue->poll(lane);
    return p.bytes != 0 ? std::optional(p) : std::nullopt;
  }
  std::optional<Polled> wait() {
    std::optional<Polled> p;
    (void)eventually([&] { return (p = poll()).has_value(); });
    return p;
  }
  /// The next event must be one of this layout.
  template <class E>
  E expect(EventType type, ReturnCode code = ReturnCode::ok) {
    E e;
    const auto p = wait();
    if (!p) {
      ADD_FAILURE() << "no event; expected " << name(type);
      return e;
    }
    EXPECT_EQ(name(p->type), name(type));
    EXPECT_EQ(name(p->return_code), name(code));
    EXPECT_TRUE(decode_event(p->words, e)) << name(p->type) << " of " << p->bytes << " bytes";
    return e;
  }
  /// Nor does what the device has been told so far bring one.
  void expect_none() {
    let_rounds_pass(*endpoint);
    if (const auto p = poll()) ADD_FAILURE() << name(p->type) << " with " << name(p->return_code);
  }
  Endpoint* endpoint;
  std::unique_ptr<EventQueueObject> object;
  std::optional<EventQueue<OneLane>> queue;
};

struct Commands {
  Commands(Endpoint& e, CommandQueueKind kind, u32 slots, EventQueueObject* events)
      : object(e.create_command_queue({.kind = kind, .slots = slots, .events = events})) {
    memory = object->memory(Initiator::cpu);
    CommandQueueState s;
    s.memory = memory;
    queue.emplace(s);
  }
  template <class C>
  void post(const C& command) {
    ASSERT_TRUE(eventually([&] { return queue->post(lane, command); })) << "the queue stays full";
  }
  template <class C>
  void submit(const C& command) {
    post(command);
    queue->ring(lane);
  }
  void ring() { queue->ring(lane); }
  /// Words as they are, at the write pointer; `units` of 32 bytes.
  void submit_raw(const std::vector<u64>& words) {
    u32 at = queue->state().wp32;
    std::memcpy(reinterpret_cast<u8*>(memory.ring) + u64{at} * 32, words.data(), words.size() * 8);
    CommandQueueState s = queue->state();
    s.wp32 += static_cast<u32>(words.size() / 4);
    queue.emplace(s);
    queue->ring(lane);
  }
  [[nodiscard]] CommandQueueStatus status() { return queue->status(lane); }
  std::unique_ptr<CommandQueueObject> object;
  CommandQueueMemory memory;
  std::optional<CommandQueue<OneLane>> queue;
};

struct Counting {
  explicit Counting(Endpoint& e, bool writeback = true)
      : object(e.create_counter(writeback, Place::pageable)), counter(object->memory(Initiator::cpu)) {}
  [[nodiscard]] u32 index() const { return counter.index(); }
  [[nodiscard]] CounterCounts read() const { return counter.read(); }
  [[nodiscard]] bool reaches(u64 success) const {
    return eventually([&] { return read().success >= success; });
  }
  void expect(u64 success, u32 failure = 0) const {
    EXPECT_TRUE(eventually([&] { return read().success == success && read().failure == failure; }))
        << "success " << read().success << " for " << success << ", failure " << read().failure << " for "
        << failure;
  }
  std::unique_ptr<CounterObject> object;
  Counter counter;
};

struct RigOptions {
  std::string spec = "cxi-model0";
  model::FaultRates faults = {};
  u64 seed = 1;
  u64 bytes = 1u << 20;
  u32 slots = 1024;
  u32 append_flags = append_flag::unlink_disable | append_flag::success_disable | append_flag::comm_disable |
                     append_flag::op_put | append_flag::op_get;
  bool enable = true;        ///< the portals entry, with the target's memory behind it
  u64 slow_writer_ns = 0;    ///< 0: the model's own
  ServeOnThread block = {};  ///< a kernel's block on CPU threads, as which the device is served
};

/// A model with the engine that is tested: the programs are registered once more with this variable. The
/// device's thread shares its copies with one more.
inline std::string tested(const std::string& spec) {
  const char* const engine = std::getenv("DOORBELL_TEST_CXI_ENGINE");
  return spec + (spec.find(':') == std::string::npos ? ":" : ",") +
         (engine == nullptr ? std::string("copy-threads=2") : std::string("engine=") + engine);
}

/// A kernel's code is tested, which does no atomic operations and no matching.
inline bool served_by_kernel() {
  return std::getenv("DOORBELL_TEST_CXI_ENGINE") != nullptr;
}

inline std::unique_ptr<CassiniDevice> open_rig(const RigOptions& o) {
  const model::Use use{.gpu_memory = false, .faults = o.faults, .seed = o.seed};
  if (o.block) {
    ModelConfig config = parse_model_spec(o.spec);
    config.engine = ModelConfig::Engine::kernel_on_cpu;
    config.fit(use);
    return std::make_unique<ModelCassini>(config, o.spec, std::vector<std::shared_ptr<gpu::Gpu>>{}, o.block);
  }
  if (o.slow_writer_ns == 0) return open_device({.spec = tested(o.spec), .use = use});
  ModelConfig config = parse_model_spec(tested(o.spec));
  config.fit(use);
  config.slow_writer_ns = o.slow_writer_ns;
  return std::make_unique<ModelCassini>(config, o.spec);
}

struct Rig {
  explicit Rig(const RigOptions& o = {})
      : device(open_rig(o)),
        endpoint(device->open(1)),
        near(*device, *endpoint, o.bytes),
        far(*device, *endpoint, o.bytes),
        tx_events(*endpoint, 65536),
        rx_events(*endpoint, 4096),
        tx(*endpoint, CommandQueueKind::transmit, o.slots, tx_events.object.get()),
        triggered(*endpoint, CommandQueueKind::triggered, 64, tx_events.object.get()),
        target(*endpoint, CommandQueueKind::target, 64, rx_events.object.get()),
        ct(*endpoint),
        pte(endpoint->create_portals_entry(*rx_events.object, 0)) {
    near.fill(1);
    if (!o.enable) return;
    set_state(PtlteState::enabled);
    append(o.append_flags);
  }
  void set_state(PtlteState state) {
    SetState s;
    s.ptlte_index = pte->index();
    s.ptlte_state = state;
    target.submit(s);
    const auto e = rx_events.expect<StateChangeLongEvent>(EventType::state_change);
    EXPECT_EQ(e.ptlte_state, state);
    EXPECT_EQ(e.ptlte_index, pte->index());
    EXPECT_FALSE(e.by_nic);
  }
  [[nodiscard]] Append entry(u32 flags) const {
    Append a;
    a.ptlte_index = pte->index();
    a.flags = flags;
    a.lac = far.md->lac();
    a.start = far.iova();
    a.length = far.md->bytes();
    a.ignore_bits = 1;
    return a;
  }
  void append(u32 flags) {
    target.submit(entry(flags));
    if ((flags & append_flag::link_disable) == 0) (void)rx_events.expect<TargetLongEvent>(EventType::link);
  }
  [[nodiscard]] Dfa dfa(u32 idx = 0) const {
    const Address a = endpoint->address();
    return make_dfa(a.nid, a.pid, a.pid_bits, idx);
  }
  template <class C>
  void set(C& c, u32 bytes, u64 local_at, u64 remote_at) const {
    c.to(dfa());
    c.lac = near.md->lac();
    c.local_addr = near.iova(local_at);
    c.remote_offset = remote_at;
    c.request_len = bytes;
    c.ct = ct.index();
    c.eq = tx_events.index();
    c.flags.event_send_disable = c.flags.event_success_disable = true;
  }
  [[nodiscard]] NomatchDma put(u32 bytes, u64 local_at = 0, u64 remote_at = 0) const {
    NomatchDma c;
    set(c, bytes, local_at, remote_at);
    c.flags.event_ct_ack = true;
    return c;
  }
  [[nodiscard]] NomatchDma get(u32 bytes, u64 local_at = 0, u64 remote_at = 0) const {
    NomatchDma c;
    set(c, bytes, local_at, remote_at);
    c.opcode = Opcode::nomatch_get;
    c.flags.event_ct_reply = true;
    return c;
  }
  [[nodiscard]] u64 counter(const std::string& key) const { return device->counters().at(key).get<u64>(); }
  [[nodiscard]] u64 injected(const std::string& key) const {
    return device->counters().at("injected").at(key).get<u64>();
  }
  [[nodiscard]] bool arrived(u64 bytes, u64 local_at = 0, u64 remote_at = 0) {
    return std::memcmp(near.data() + local_at, far.data() + remote_at, bytes) == 0;
  }
  /// An operation that is refused: by which code, and by whom. The counter must have counted it.
  template <class C>
  void expect_refused(const C& command, ReturnCode code, bool by_target, EventType type = EventType::ack) {
    const u32 before = ct.read().failure;
    tx.submit(command);
    const auto e = tx_events.expect<InitiatorEvent>(type, code);
    EXPECT_EQ(e.tgt_error, by_target) << name(code);
    EXPECT_TRUE(eventually([&] { return ct.read().failure == before + 1; })) << name(code);
    EXPECT_EQ(name(tx.status().return_code), "OK") << "the queue goes on";
  }

  std::unique_ptr<CassiniDevice> device;
  std::unique_ptr<Endpoint> endpoint;
  Memory near, far;
  Events tx_events, rx_events;
  Commands tx, triggered, target;
  Counting ct;
  std::unique_ptr<PortalsEntry> pte;
};

}  // namespace doorbell::cxi
