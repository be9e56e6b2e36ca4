// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Queues, counters and memory of the Cassini back end with a fake libcxi: their addresses for a CPU and for a
// GPU.

#include <fcntl.h>

#include "libcxi_fixture.hpp"

namespace doorbell::cxi {
namespace {

// --- queues and counters -----------------------------------------------------------------------------

TEST_F(LibcxiFake, QueuesAreWhereTheLibrarySays) {
  Loopback all;
  const CommandQueueMemory t = all.transmit->memory(Initiator::cpu);
  EXPECT_EQ(t.slots, 64u);
  EXPECT_EQ(t.index, 20u);
  EXPECT_FALSE(t.triggered);
  EXPECT_EQ(t.ring->w[0] & 0xffff, 4u) << "the status, in slot 0";
  EXPECT_EQ(reinterpret_cast<u64>(t.launch) % 4096, 0u);
  EXPECT_TRUE(all.triggered->memory(Initiator::cpu).triggered);
  EXPECT_EQ(all.target->memory(Initiator::cpu).index, 1044u);
  const EventQueueMemory e = all.tx_events->memory(Initiator::cpu);
  EXPECT_EQ(e.bytes, 4096u);
  EXPECT_EQ(e.index, 11u);
  EXPECT_NE(e.events, nullptr);
  EXPECT_EQ(*e.csr, 0u);
  EXPECT_EQ(all.entry->index(), 40u);
}

TEST_F(LibcxiFake, CountersBeginAtZero) {
  LibcxiCassini d("cxi0");
  const auto e = d.open(1);
  const auto plain = e->create_counter(false, Place::pageable);
  const CounterMemory m = plain->memory(Initiator::cpu);
  EXPECT_EQ(m.index, 30u);
  EXPECT_EQ(m.writeback, nullptr);
  constexpr u64 kUntouched = ~u64{0};
  EXPECT_EQ(m.doorbell[0], kUntouched);
  EXPECT_EQ(m.doorbell[8], kUntouched);
  EXPECT_EQ(m.doorbell[16], 0u);
  EXPECT_EQ(m.doorbell[24], 0u);
  const auto written = e->create_counter(true, Place::pageable);
  ASSERT_NE(written->memory(Initiator::cpu).writeback, nullptr);
  EXPECT_EQ(*written->memory(Initiator::cpu).writeback, 0u);
  EXPECT_EQ(calls().back(), "alloc_ct(lni1, write-back given) = ct2") << "without a memory descriptor";
}

TEST_F(LibcxiFake, SizesArePutToTheTestFirst) {
  LibcxiCassini d("cxi0");
  const auto e = d.open(1);
  forget();
  expect_says(refusal_of([&] { (void)e->create_command_queue({.slots = 0}); }).said, "1..65536");
  expect_says(refusal_of([&] { (void)e->create_command_queue({.slots = 65537}); }).said, "1..65536");
  expect_says(refusal_of([&] { (void)e->create_event_queue(0, Place::pageable); }).said, "1..2147483648");
  expect_says(refusal_of([&] { (void)e->create_event_queue((u64{1} << 31) + 1, Place::pageable); }).said,
              "1..2147483648");
  expect_says(refusal_of([&] { (void)e->create_event_queue(4096, Place::gpu); }).said, "libcxi clears it");
  expect_says(refusal_of([&] { (void)e->create_command_queue({.queue_memory = Place::gpu}); }).said,
              "without a GPU");
  for (const Place place : {Place::pinned, Place::huge_2m, Place::huge_1g})
    expect_says(refusal_of([&] { (void)e->create_command_queue({.queue_memory = place}); }).hint,
                "use host memory");
  EXPECT_TRUE(calls().empty()) << "the library was not asked";
  EXPECT_EQ(e->create_command_queue({.slots = 65536})->memory(Initiator::cpu).slots, 65536u);
}

TEST_F(LibcxiFake, ACommandQueueInGpuMemory) {
  const auto gpu = std::make_shared<FakeGpu>();
  LibcxiCassini d("cxi0", {gpu});
  const auto e = d.open(1);
  EXPECT_EQ(e->event_queue_place(Place::gpu), Place::pageable);
  forget();
  {
    const auto q = e->create_command_queue({.slots = 100, .queue_memory = Place::gpu});
    EXPECT_EQ(calls()[0],
              "alloc_buf_cmdq(lni1, none, 128 slots, device memory at a page, dma-buf open +0) = cq1");
    EXPECT_LT(::fcntl(gpu->exported, F_GETFD), 0) << "the dma-buf is closed again";
    const CommandQueueMemory m = q->memory(Initiator::gpu);
    EXPECT_EQ(m.slots, 128u);
    // The status that the library leaves to the program: read pointer 4, return code 1.
    EXPECT_EQ(*reinterpret_cast<const u64*>(m.ring), (u64{1} << 48 | 4));
    ASSERT_EQ(gpu->registered.size(), 1u) << "the launch page; the ring is the GPU's own";
    EXPECT_TRUE(gpu->registered[0].mmio);
    expect_says(refusal_of([&] { (void)q->memory(Initiator::cpu); }).said, "a CPU cannot write");
  }
  EXPECT_EQ(calls().back(), "destroy_cmdq(cq1)");
  set("FAKE_CXI_FAIL", "alloc_buf_cmdq=25");
  const Refusal r = refusal_of([&] { (void)e->create_command_queue({.queue_memory = Place::gpu}); });
  EXPECT_EQ(r.code, 25);
  expect_says(r.hint, "symbol set 1.11");
  set("FAKE_CXI_FAIL", "");
  set("FAKE_CXI_WRONG", "cq.wp32=4");
  expect_says(refusal_of([&] { (void)e->create_command_queue({.queue_memory = Place::gpu}); }).said, "wp32");
}

TEST_F(LibcxiFake, AnOlderLibraryHasNoQueuesInGpuMemory) {
  use(FAKE_LIBCXI_1_8);
  const auto gpu = std::make_shared<FakeGpu>();
  LibcxiCassini d("cxi0", {gpu});
  const auto e = d.open(1);
  expect_says(refusal_of([&] { (void)e->create_command_queue({.queue_memory = Place::gpu}); }).said,
              "cxil_alloc_buf_cmdq");
}

// --- memory ------------------------------------------------------------------------------------------

TEST_F(LibcxiFake, MemoryIsMappedForWhatItIsFor) {
  LibcxiCassini d("cxi0");
  const auto e = d.open(1);
  const Region region = d.allocate(Place::pageable, 8192, nullptr);
  forget();
  const auto both = e->map(region, Access::read_write);
  EXPECT_EQ(both->iova(), 0x7000'0000'0000 + reinterpret_cast<u64>(region.host()))
      << "of the region's first byte, not of the descriptor's";
  EXPECT_EQ(both->lac(), 3u);
  EXPECT_EQ(both->bytes(), 8192u);
  const auto source = e->map(region, Access::read);
  const auto sink = e->map(region, Access::write);
  const Lines expected = {"map(lni1, 8192 bytes, flags 13, hints none) = md1",
                          "map(lni1, 8192 bytes, flags 9, hints none) = md2",
                          "map(lni1, 8192 bytes, flags 5, hints none) = md3"};
  EXPECT_EQ(calls(), expected);
}

TEST_F(LibcxiFake, HugePagesAreHostMemory) {
  LibcxiCassini d("cxi0");
  const auto e = d.open(1);
  constexpr u64 kBytes = u64{2} << 20;
  for (const Place place : {Place::huge_2m, Place::huge_1g}) {
    // Whether the machine has huge pages is not the question: the region says that these are.
    auto* const base = static_cast<u8*>(std::aligned_alloc(kBytes, kBytes));
    const Region region(place, {.base = base, .bytes = kBytes, .free = [](u8* p, u64) { std::free(p); }});
    forget();
    EXPECT_EQ(e->map(region, Access::read_write)->bytes(), kBytes);
    EXPECT_EQ(calls()[0], "map(lni1, 2097152 bytes, flags 13, hints none) = md1");
  }
}

TEST_F(LibcxiFake, GpuMemoryIsMappedAsADmaBufOfItsOwnGpu) {
  const auto first = std::make_shared<FakeGpu>();
  const auto second = std::make_shared<FakeGpu>();
  LibcxiCassini d("cxi0", {first, second});
  const auto e = d.open(1);
  const Region region = d.allocate(Place::gpu, 65536, second);
  forget();
  {
    const auto md = e->map(region, Access::read_write);
    EXPECT_EQ(calls()[0], "map(lni1, 65536 bytes, flags 525, hints dma-buf open +0) = md1");
    EXPECT_EQ(md->iova(), 0x7000'0000'0000 + reinterpret_cast<u64>(region.device()));
  }
  EXPECT_EQ(first->exported, -1);
  struct stat s;
  EXPECT_NE(::fstat(second->exported, &s), 0) << "the dma-buf is still open";
  set("FAKE_CXI_FAIL", "map=95");
  const Refusal r = refusal_of([&] { (void)e->map(region, Access::read); });
  EXPECT_EQ(r.call, Call::map);
  expect_says(r.said, "mapping 65536 bytes of GPU memory for cxi0");
  expect_says(r.hint, "dma-buf");
  EXPECT_NE(::fstat(second->exported, &s), 0) << "the dma-buf is still open";
}

// --- queues driven by a GPU --------------------------------------------------------------------------

TEST_F(LibcxiFake, AGpuIsGivenRingsAndRegisters) {
  const auto gpu = std::make_shared<FakeGpu>();
  LibcxiCassini d("cxi0", {gpu});
  const auto e = d.open(1);
  {
    const auto q = e->create_command_queue({.slots = 128});
    const CommandQueueMemory cpu = q->memory(Initiator::cpu);
    EXPECT_TRUE(gpu->registered.empty());
    const CommandQueueMemory m = q->memory(Initiator::gpu);
    EXPECT_EQ(reinterpret_cast<u8*>(m.ring), reinterpret_cast<u8*>(cpu.ring) + FakeGpu::kShift);
    EXPECT_EQ(m.launch, cpu.launch + FakeGpu::kShift);
    EXPECT_EQ(m.slots, 128u);
    (void)q->memory(Initiator::gpu);
    ASSERT_EQ(gpu->registered.size(), 2u) << "once each";
    EXPECT_EQ(gpu->registered[0].bytes, 128u * 64);
    EXPECT_FALSE(gpu->registered[0].mmio);
    EXPECT_EQ(gpu->registered[1].p, cpu.launch);
    EXPECT_EQ(gpu->registered[1].bytes, 4096u);
    EXPECT_TRUE(gpu->registered[1].mmio);
  }
  EXPECT_TRUE(gpu->registered.empty());
  EXPECT_EQ(gone_by(gpu->calls_at_release.back()), "") << "before the library unmaps them";
  EXPECT_EQ(calls().back(), "destroy_cmdq(cq1)");

  const auto events = e->create_event_queue(4096, Place::pageable);
  const EventQueueMemory eq = events->memory(Initiator::gpu);
  EXPECT_EQ(eq.events, events->memory(Initiator::cpu).events) << "pinned memory, at one address for both";
  ASSERT_EQ(gpu->registered.size(), 1u);
  EXPECT_TRUE(gpu->registered[0].mmio);
  const auto counter = e->create_counter(true, Place::pageable);
  const CounterMemory ct = counter->memory(Initiator::gpu);
  EXPECT_NE(ct.writeback, nullptr);
  EXPECT_EQ(gpu->registered.size(), 2u);
  EXPECT_TRUE(gpu->registered[1].mmio);
}

TEST_F(LibcxiFake, AWritebackInGpuMemoryIsForTheGpu) {
  const auto gpu = std::make_shared<FakeGpu>();
  LibcxiCassini d("cxi0", {gpu});
  const auto e = d.open(1);
  const auto counter = e->create_counter(true, Place::gpu);
  EXPECT_NE(counter->memory(Initiator::gpu).writeback, nullptr);
  expect_says(refusal_of([&] { (void)counter->memory(Initiator::cpu); }).said, "a CPU cannot read");
}

TEST_F(LibcxiFake, AGpuThatCannotReachRegistersSaysSo) {
  const auto gpu = std::make_shared<FakeGpu>();
  gpu->refuse_registers = true;
  {
    LibcxiCassini d("cxi0", {gpu});
    const auto e = d.open(1);
    const auto q = e->create_command_queue({});
    const Refusal r = refusal_of([&] { (void)q->memory(Initiator::gpu); });
    EXPECT_EQ(r.said, "a GPU's access to the queues of cxi0: registers: not for this GPU");
    EXPECT_EQ(r.hint, "another driver");
  }
  EXPECT_TRUE(gpu->registered.empty());
  Loopback none;
  for (const auto& reach :
       std::initializer_list<std::function<void()>>{[&] { (void)none.transmit->memory(Initiator::gpu); },
                                                    [&] { (void)none.tx_events->memory(Initiator::gpu); },
                                                    [&] { (void)none.counter->memory(Initiator::gpu); }}) {
    const Refusal r = refusal_of(reach);
    expect_says(r.said, "a GPU cannot reach them");
    expect_says(r.hint, "open the device with a GPU");
  }
}

}  // namespace
}  // namespace doorbell::cxi
