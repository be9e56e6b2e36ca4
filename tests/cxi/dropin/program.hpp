// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The objects of a program on libcxi: a whole end, with an initiator's queues and a target's.
#pragma once

#include <doorbell/cxi/command_queue.hpp>
#include <doorbell/cxi/event_queue.hpp>
#include <doorbell/warp.hpp>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdlib>
#include <memory>
#include <optional>
#include <vector>

#include "cxi/dropin/libcxi_calls.hpp"
#include "cxi/names.hpp"
#include "eventually.hpp"

namespace doorbell::cxi::program {

using test::eventually;
inline constexpr OneLane lane;
inline constexpr std::size_t kPageBytes = 4096;

/// Pages of the program's own.
struct Buffer {
  explicit Buffer(std::size_t n) : bytes(n) {
    data = static_cast<u8*>(
        ::mmap(nullptr, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0));
  }
  ~Buffer() { (void)::munmap(data, bytes); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  u8* data;
  std::size_t bytes;
};

/// A buffer that the NIC uses.
struct Mapped {
  Mapped(void* lni, std::size_t n, unsigned flags = kPin | kRead | kWrite) : buffer(n) {
    EXPECT_EQ(cxil_map(lni, buffer.data, n, flags, nullptr, &md), 0);
  }
  ~Mapped() { EXPECT_EQ(cxil_unmap(md), 0); }
  [[nodiscard]] u64 iova(u64 at = 0) const {
    return field<u64>(md, 0) + (reinterpret_cast<u64>(buffer.data) - field<u64>(md, 8)) + at;
  }
  [[nodiscard]] u32 lac() const { return field<u8>(md, 24); }
  Buffer buffer;
  void* md = nullptr;
};

struct Events {
  Events(void* lni, std::size_t bytes, void* wait = nullptr, u64 flags = 0) : memory(lni, bytes) {
    const EqAttr attr{memory.buffer.data, bytes, flags, {}};
    EXPECT_EQ(cxil_alloc_evtq(lni, memory.md, &attr, wait, nullptr, &eq), 0);
    EventQueueState s;
    s.memory = {field<u8*>(eq, 64), field<u64*>(eq, 16), field<u32>(eq, 0), field<u32>(eq, 48)};
    EXPECT_EQ(field<u32>(eq, 40), 64u);
    queue.emplace(s);
  }
  ~Events() { EXPECT_EQ(cxil_destroy_evtq(eq), 0); }
  template <class E>
  E expect(EventType type, ReturnCode code = ReturnCode::ok) {
    E e;
    EventQueue<OneLane>::Polled p;
    queue->ack(lane);
    if (!eventually([&] { return (p = queue->poll(lane)).bytes != 0; })) {
      ADD_FAILURE() << "no event; expected " << name(type);
      return e;
    }
    EXPECT_EQ(name(p.type), name(type));
    EXPECT_EQ(name(p.return_code), name(code));
    EXPECT_TRUE(decode_event(p.words, e)) << name(p.type) << " of " << p.bytes << " bytes";
    return e;
  }
  [[nodiscard]] u32 index() const { return queue->index(); }
  Mapped memory;
  void* eq = nullptr;
  std::optional<EventQueue<OneLane>> queue;
};

struct Commands {
  Commands(void* lni, void* evtq, const CqOpts& opts) {
    EXPECT_EQ(cxil_alloc_cmdq(lni, evtq, &opts, &cq), 0);
    begin((opts.flags & kTrig) != 0);
  }
  Commands(void* lni, const CqOptsBuf& opts) {
    EXPECT_EQ(cxil_alloc_buf_cmdq(lni, nullptr, &opts, &cq), 0);
    begin(false);
  }
  ~Commands() { EXPECT_EQ(cxil_destroy_cmdq(cq), 0); }
  void begin(bool triggered) {
    ASSERT_NE(cq, nullptr);
    u8* const launch = field<u8*>(cq, 8);
    EXPECT_EQ(field<u8*>(cq, 16), launch + 1024);
    EXPECT_EQ(field<u32>(cq, 64), 8u);
    CommandQueueState s;
    s.memory = {field<Word16*>(cq, 40), launch, field<u32>(cq, 0), field<u32>(cq, 56), triggered};
    queue.emplace(s);
  }
  template <class C>
  void submit(const C& command) {
    ASSERT_TRUE(eventually([&] { return queue->post(lane, command); })) << "the queue stays full";
    queue->ring(lane);
  }
  void* cq = nullptr;
  std::optional<CommandQueue<OneLane>> queue;
};

/// A process's end of the NIC, or one of several in a process.
struct End {
  explicit End(unsigned vni = 1, unsigned pid = kAnyPid) {
    EXPECT_EQ(cxil_open_device(0, &dev), 0);
    EXPECT_EQ(cxil_alloc_lni(dev, &lni, 1), 0);
    EXPECT_EQ(cxil_alloc_trig_cp(lni, vni, kBestEffort, 0, kNonTrigLcid, &cp), 0);
    EXPECT_EQ(cxil_alloc_domain(lni, vni, pid, &domain), 0);
    nid = field<u32>(dev, 4);
    pid_bits = field<u32>(dev, 8);
  }
  ~End() {
    EXPECT_EQ(cxil_destroy_domain(domain), 0);
    EXPECT_EQ(cxil_destroy_cp(cp), 0);
    EXPECT_EQ(cxil_destroy_lni(lni), 0);
    cxil_close_device(dev);
  }
  [[nodiscard]] u32 pid() const { return field<u32>(domain, 4); }
  [[nodiscard]] u32 lcid() const { return field<u32>(cp, 12); }
  void* dev = nullptr;
  void* lni = nullptr;
  void* cp = nullptr;
  void* domain = nullptr;
  u32 nid = 0, pid_bits = 0;
};

/// A portals entry with a buffer behind it.
struct Target {
  Target(End& e, std::size_t bytes, u32 append_flags, u32 idx = 0, u64 options = 0)
      : end(e),
        memory(e.lni, bytes),
        events(e.lni, 4 * kPageBytes),
        commands(e.lni, events.eq, {.count = 64}) {
    EXPECT_EQ(cxil_alloc_pte(e.lni, events.eq, &options, &pte), 0);
    EXPECT_EQ(cxil_map_pte(pte, e.domain, idx, false, &map), 0);
    SetState s;
    s.ptlte_index = index();
    s.ptlte_state = PtlteState::enabled;
    commands.submit(s);
    const auto changed = events.expect<StateChangeLongEvent>(EventType::state_change);
    EXPECT_EQ(changed.ptlte_state, PtlteState::enabled);
    append(append_flags, 7);
  }
  ~Target() {
    EXPECT_EQ(cxil_unmap_pte(map), 0);
    EXPECT_EQ(cxil_destroy_pte(pte), 0);
  }
  [[nodiscard]] u32 index() const { return field<u32>(pte, 0); }
  void append(u32 flags, u32 buffer_id) {
    Append a;
    a.ptlte_index = index();
    a.flags = flags;
    a.lac = memory.lac();
    a.start = memory.iova();
    a.length = memory.buffer.bytes;
    a.buffer_id = buffer_id;
    a.ignore_bits = 1;
    commands.submit(a);
    EXPECT_EQ(events.expect<TargetLongEvent>(EventType::link).buffer_id, buffer_id);
  }
  void unlink(u32 buffer_id, ReturnCode code = ReturnCode::ok) {
    Unlink u;
    u.ptlte_index = index();
    u.buffer_id = buffer_id;
    commands.submit(u);
    EXPECT_EQ(events.expect<TargetLongEvent>(EventType::unlink, code).buffer_id, buffer_id);
  }
  End& end;
  Mapped memory;
  Events events;
  Commands commands;
  void* pte = nullptr;
  void* map = nullptr;
};

/// The side that puts and gets: its acknowledgements are events.
struct Initiator {
  explicit Initiator(End& e, std::size_t bytes, unsigned slots = 256)
      : end(e),
        memory(e.lni, bytes),
        events(e.lni, 4 * kPageBytes),
        commands(e.lni, events.eq, {.count = slots, .flags = kTx, .lcid = e.lcid()}) {
    for (std::size_t i = 0; i < bytes; ++i) memory.buffer.data[i] = static_cast<u8>(i * 7 + i / 251);
  }
  [[nodiscard]] FullDma operation(Opcode opcode, u32 pid, u32 n, u64 local = 0, u64 remote = 0,
                                  u32 idx = 0) const {
    FullDma c;
    c.opcode = opcode;
    c.to(make_dfa(end.nid, pid, end.pid_bits, idx));
    c.lac = memory.lac();
    c.local_addr = memory.iova(local);
    c.remote_offset = remote;
    c.request_len = n;
    c.eq = events.index();
    c.user_ptr = 77;
    c.flags.event_send_disable = true;
    return c;
  }
  End& end;
  Mapped memory;
  Events events;
  Commands commands;
};

inline constexpr u32 kQuietPutGet = append_flag::success_disable | append_flag::comm_disable |
                                    append_flag::unlink_disable | append_flag::op_put | append_flag::op_get;

}  // namespace doorbell::cxi::program
