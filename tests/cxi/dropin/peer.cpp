// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A process on libcxi.so.1, for the tests with two of them: `peer target` waits for puts and checks what has
// come, `peer initiator PID` sends them and gets them back. Its buffers are pieces of its heap. `peer
// receiver` and `peer sender PID` do the same with rendezvous puts.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "cxi/dropin/messages.hpp"

namespace {

using namespace doorbell;
using namespace doorbell::cxi;
using namespace doorbell::cxi::program;

constexpr u32 kBytes = 40'000, kPuts = 50;

u8 pattern(u32 put, u32 at) {
  return static_cast<u8>(put * 13 + at * 7 + at / 255);
}

/// Memory of malloc(), which shares its pages with others of the program.
struct HeapMapped {
  explicit HeapMapped(void* lni) : data(static_cast<u8*>(std::malloc(kBytes))) {
    if (cxil_map(lni, data, kBytes, kPin | kRead | kWrite, nullptr, &md) != 0) std::exit(3);
  }
  ~HeapMapped() { std::free(data); }
  HeapMapped(const HeapMapped&) = delete;
  HeapMapped& operator=(const HeapMapped&) = delete;
  [[nodiscard]] u64 iova() const {
    return field<u64>(md, 0) + (reinterpret_cast<u64>(data) - field<u64>(md, 8));
  }
  u8* data;
  void* md = nullptr;
};

int target() {
  // Heap memory before and behind the mapped one keeps its bytes.
  std::vector<u8> before(5000, 0x5a);
  End e;
  HeapMapped heap(e.lni);
  std::vector<u8> behind(5000, 0xa5);
  Target t(e, kPageBytes, append_flag::op_put | append_flag::op_get, 1);
  Target progress(e, kPageBytes, kQuietPutGet, 2);  // how many puts have been checked
  Append a;
  t.unlink(7);
  a.ptlte_index = t.index();
  a.flags = append_flag::op_put | append_flag::op_get;
  a.lac = field<u8>(heap.md, 24);
  a.start = heap.iova();
  a.length = kBytes;
  a.buffer_id = 9;
  t.commands.submit(a);
  (void)t.events.expect<TargetLongEvent>(EventType::link);
  std::printf("pid %u\n", e.pid());
  std::fflush(stdout);
  for (u32 n = 0; n < kPuts; ++n) {
    if (t.events.expect<TargetEvent>(EventType::put).length != kBytes) return 4;
    for (u32 k = 0; k < kBytes; ++k)
      if (heap.data[k] != pattern(n, k)) return 5;
    store64_release(reinterpret_cast<u64*>(progress.memory.buffer.data), n + 1);
    if (t.events.expect<TargetEvent>(EventType::get).length != kBytes) return 6;
  }
  for (const u8 b : before)
    if (b != 0x5a) return 7;
  for (const u8 b : behind)
    if (b != 0xa5) return 8;
  t.unlink(9);
  if (cxil_unmap(heap.md) != 0) return 9;
  return testing::Test::HasFailure() ? 10 : 0;
}

int initiator(u32 pid) {
  End e;
  HeapMapped heap(e.lni);
  Initiator i(e, kPageBytes);
  const auto send = [&](Opcode opcode, EventType type) {
    FullDma c = i.operation(opcode, pid, kBytes, 0, 0, 1);
    c.lac = field<u8>(heap.md, 24);
    c.local_addr = heap.iova();
    i.commands.submit(c);
    (void)i.events.expect<InitiatorEvent>(type);
  };
  const auto checked = [&] {
    i.commands.submit(i.operation(Opcode::get, pid, 8, 0, 0, 2));
    (void)i.events.expect<InitiatorEvent>(EventType::reply);
    return load64_acquire(reinterpret_cast<u64*>(i.memory.buffer.data));
  };
  for (u32 n = 0; n < kPuts; ++n) {
    // The target looks at each before the next one overwrites it.
    if (!eventually([&] { return checked() == n; })) return 6;
    for (u32 k = 0; k < kBytes; ++k) heap.data[k] = pattern(n, k);
    send(Opcode::put, EventType::ack);
    std::memset(heap.data, 0, kBytes);
    send(Opcode::get, EventType::reply);
    for (u32 k = 0; k < kBytes; ++k)
      if (heap.data[k] != pattern(n, k)) return 5;
  }
  if (cxil_unmap(heap.md) != 0) return 9;
  return testing::Test::HasFailure() ? 10 : 0;
}

constexpr u32 kEager = 2048, kLong = 40'000;

u64 bits_of(u32 n) {
  return kBits + (u64{n} << 16);
}

/// Messages that come before their memory are unexpected; which ones they are is up to the race.
int receiver() {
  End e;
  Receiver r(e);
  Append spare = r.memory(1000, 0, 1 << 15, 1 << 15, append_flag::op_put | append_flag::manage_local);
  spare.ptl_list = PortalsList::overflow;
  spare.ignore_bits = ~u64{0};
  const Mapped spare_memory(e.lni, kPuts * kEager);
  spare.lac = spare_memory.lac();
  spare.start = spare_memory.iova();
  spare.length = spare_memory.buffer.bytes;
  r.link(spare);
  const Mapped memory(e.lni, 49'152);
  std::printf("pid %u\n", e.pid());
  std::fflush(stdout);
  u32 replies = 0, told = 0, next = 0;
  u64 early = 0;  // where the eager part of this message is, if it came too early
  while (replies < kPuts) {
    if (next == replies) {
      Append a = r.memory(next, bits_of(next), 0, kLong,
                          append_flag::op_put | append_flag::use_once | append_flag::unlink_disable |
                              append_flag::link_disable);
      a.lac = memory.lac();
      a.start = memory.iova();
      std::memset(memory.buffer.data, 0, kLong);
      r.commands.submit(a);
      ++next, told = 0, early = 0;
    }
    EventQueue<OneLane>::Polled p;
    r.events.queue->ack(lane);
    if (!eventually([&] { return (p = r.events.queue->poll(lane)).bytes != 0; })) return 4;
    TargetLongEvent t;
    if (p.return_code != ReturnCode::ok) return 6;
    if (decode_event(p.words, t)) {
      if (p.type == EventType::put && t.ptl_list == PortalsList::overflow) continue;
      if (t.rendezvous_id != 0x42 || t.buffer_id + 1 != next || t.rlength != kLong || t.mlength != kEager)
        return 7;
      if (p.type == EventType::put_overflow) early = t.start;
      ++told;
      continue;
    }
    if (p.type != EventType::reply || told != 2) return 8;
    if (early != 0)
      std::memcpy(memory.buffer.data, spare_memory.buffer.data + (early - spare_memory.iova()), kEager);
    for (u32 k = 0; k < kLong; ++k)
      if (memory.buffer.data[k] != pattern(replies, k)) return 5;
    ++replies;
  }
  return testing::Test::HasFailure() ? 10 : 0;
}

int sender(u32 pid) {
  End e;
  Initiator i(e, 49'152);
  Source source(e, i, 0x42);
  for (u32 n = 0; n < kPuts; ++n) {
    for (u32 k = 0; k < kLong; ++k) i.memory.buffer.data[k] = pattern(n, k);
    FullDma c = message(i, pid, bits_of(n), kLong, 0, Opcode::rendezvous_put);
    c.eager_length = kEager;
    c.rendezvous_id = 0x42;
    i.commands.submit(c);
    if (i.events.expect<InitiatorEvent>(EventType::ack).mlength != kEager) return 6;
    if (source.events.expect<TargetEvent>(EventType::get).length != kLong - kEager) return 7;
  }
  return testing::Test::HasFailure() ? 10 : 0;
}

/// Leaves everything as it is, in the middle of its work.
int dies(u32 pid) {
  End e;
  Initiator i(e, kPageBytes);
  for (u32 n = 0; n < 100; ++n) i.commands.submit(i.operation(Opcode::put, pid, 64, 0, 0, 1));
  ::kill(::getpid(), SIGKILL);
  return 11;
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc == 2 && std::strcmp(argv[1], "target") == 0) return target();
  if (argc == 3 && std::strcmp(argv[1], "initiator") == 0)
    return initiator(static_cast<u32>(std::atoi(argv[2])));
  if (argc == 2 && std::strcmp(argv[1], "receiver") == 0) return receiver();
  if (argc == 3 && std::strcmp(argv[1], "sender") == 0) return sender(static_cast<u32>(std::atoi(argv[2])));
  if (argc == 3 && std::strcmp(argv[1], "dies") == 0) return dies(static_cast<u32>(std::atoi(argv[2])));
  return 2;
}
