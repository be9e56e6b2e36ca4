// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The software Cassini against an initiator that stores anything at all to rings and registers: it comes to
// rest, and touches nothing that was not mapped for writing.

#include <algorithm>

#include "cxi/model/cassini.hpp"
#include "fuzz/fuzz.hpp"

using namespace doorbell;
using namespace doorbell::cxi;
using fuzz::require;

namespace {

constexpr u64 kBytes = 16384;

struct World {
  World(const ModelConfig& config)
      : device(config, "cxi-model0"),
        endpoint(device.open(1)),
        source(device.allocate(Place::pageable, kBytes, nullptr)),
        sink(device.allocate(Place::pageable, kBytes, nullptr)),
        bystander(device.allocate(Place::pageable, kBytes, nullptr)),
        readable(endpoint->map(source, Access::read)),
        writable(endpoint->map(sink, Access::write)),
        events(endpoint->create_event_queue(4096, Place::pageable)),
        counter(endpoint->create_counter(true, Place::pageable)),
        entry(endpoint->create_portals_entry(*events, 0)) {
    for (const CommandQueueKind kind :
         {CommandQueueKind::transmit, CommandQueueKind::triggered, CommandQueueKind::target}) {
      queues.push_back(endpoint->create_command_queue({.kind = kind, .events = events.get()}));
      memory.push_back(queues.back()->memory(Initiator::cpu));
    }
    std::fill_n(source.host(), kBytes, u8{0x11});
    std::fill_n(bystander.host(), kBytes, u8{0x22});
  }
  void rest() {
    u32 rounds = 0;
    while (device.poll()) require(++rounds < 100'000);
  }
  /// A command that could be meant: the fuzzer finds handles and addresses of 57 bits slowly by itself.
  std::vector<u8> plausible(FuzzedDataProvider& in) {
    const Address a = endpoint->address();
    const auto bytes = [](const auto& words) {
      const auto* const p = reinterpret_cast<const u8*>(words.w);
      return std::vector<u8>(p, p + sizeof words.w);
    };
    NomatchDma dma;
    dma.opcode = in.ConsumeBool() ? Opcode::nomatch_put : Opcode::nomatch_get;
    dma.to(make_dfa(a.nid, a.pid, a.pid_bits, in.ConsumeIntegralInRange<u32>(0, 1)));
    dma.lac = readable->lac();
    dma.local_addr =
        (in.ConsumeBool() ? readable : writable)->iova() + in.ConsumeIntegralInRange<u64>(0, kBytes);
    dma.remote_offset = in.ConsumeIntegralInRange<u64>(0, kBytes);
    dma.request_len = in.ConsumeIntegralInRange<u32>(0, kBytes);
    dma.ct = dma.eq = in.ConsumeIntegralInRange<u32>(0, 1);
    dma.flags.event_ct_ack = in.ConsumeBool();
    dma.flags.event_success_disable = in.ConsumeBool();
    switch (in.ConsumeIntegralInRange<u32>(0, 3)) {
      case 0:
        return bytes(encode(dma));
      case 1: {
        SetState s;
        s.ptlte_index = entry->index();
        s.ptlte_state = static_cast<PtlteState>(in.ConsumeIntegralInRange<u32>(0, 4));
        return bytes(encode(s));
      }
      case 2: {
        Append a2;
        a2.ptlte_index = entry->index();
        a2.flags = in.ConsumeIntegral<u16>() | append_flag::op_put;
        a2.lac = writable->lac();
        a2.start = (in.ConsumeBool() ? readable : writable)->iova() + in.ConsumeIntegral<u8>();
        a2.length = in.ConsumeIntegralInRange<u64>(0, kBytes);
        return bytes(encode(a2));
      }
      default: {
        TrigDma t;
        t.when = CounterCommand::trig_event(1, in.ConsumeIntegral<u8>(), 1);
        t.dma = dma;
        return bytes(encode(t));
      }
    }
  }

  ModelCassini device;
  std::unique_ptr<Endpoint> endpoint;
  Region source, sink, bystander;
  std::unique_ptr<MemoryDescriptor> readable, writable;
  std::unique_ptr<EventQueueObject> events;
  std::unique_ptr<CounterObject> counter;
  std::unique_ptr<PortalsEntry> entry;
  std::vector<std::unique_ptr<CommandQueueObject>> queues;
  std::vector<CommandQueueMemory> memory;
};

void act(World& w, FuzzedDataProvider& in) {
  const CommandQueueMemory& m = w.memory[in.ConsumeIntegralInRange<u32>(0, 2)];
  auto* const ring = reinterpret_cast<u8*>(m.ring);
  const auto place = [&](std::size_t bytes) {
    const u64 units = u64{m.slots} * 2;
    const u64 at = in.ConsumeIntegralInRange<u64>(8, units - 1) * 32;
    return std::pair(at, std::min<u64>(bytes, units * 32 - at));
  };
  switch (in.ConsumeIntegralInRange<u32>(0, 6)) {
    case 0:
    case 1: {
      const std::vector<u8> bytes = w.plausible(in);
      const auto [at, n] = place(bytes.size());
      std::copy_n(bytes.begin(), n, ring + at);
      break;
    }
    case 2: {
      const std::vector<u8> bytes = in.ConsumeBytes<u8>(in.ConsumeIntegralInRange<u32>(0, 256));
      const auto [at, n] = place(bytes.size());
      std::copy_n(bytes.begin(), n, ring + at);
      break;
    }
    case 3:
      store64_release(reinterpret_cast<u64*>(m.launch), in.ConsumeIntegralInRange<u64>(0, m.slots));
      break;
    case 4: {
      const std::vector<u8> bytes = in.ConsumeBytes<u8>(in.ConsumeIntegralInRange<u32>(0, 128));
      const u64 at = in.ConsumeIntegralInRange<u64>(0, kLaunchBytes - 1);
      std::copy_n(bytes.begin(), std::min<u64>(bytes.size(), kLaunchBytes - at), m.launch + at);
      break;
    }
    case 5:
      store64_release(w.counter->memory(Initiator::cpu).doorbell + in.ConsumeIntegralInRange<u32>(0, 24),
                      in.ConsumeIntegral<u64>());
      break;
    default:
      store64_release(w.events->memory(Initiator::cpu).csr, in.ConsumeIntegral<u64>());
      break;
  }
  (void)w.device.poll();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const u8* data, std::size_t size) {
  FuzzedDataProvider in(data, size);
  ModelConfig config;
  config.own_thread = false;
  config.seed = 1;
  for (double& p : config.faults.probability) p = in.ConsumeIntegral<u8>() < 8 ? 0.1 : 0;
  config.delay_ns = 1000;
  World w(config);
  for (u32 steps = 0; steps < 200 && in.remaining_bytes() > 0; ++steps) act(w, in);
  w.rest();
  const auto all = [](const Region& r, u8 v) {
    return std::all_of(r.host(), r.host() + kBytes, [v](u8 b) { return b == v; });
  };
  require(all(w.source, 0x11));
  require(all(w.bystander, 0x22));
  return 0;
}
