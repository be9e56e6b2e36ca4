// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The NVMe model as drivers of other processes have it: interrupts, memory that is mapped anew under live
// queues, reset, removal, formatting, registers in memory that was given.

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <memory>
#include <random>

#include "nvme/conformance/raw_controller.hpp"
#include "nvme/model/controller.hpp"

namespace doorbell::nvme {
namespace {

using testing_raw::eventually;
using testing_raw::RawController;
using testing_raw::RawQueue;

constexpr u32 kPage = 4096;
constexpr u32 kVectors = 8;

ModelConfig small(u32 threads = 1) {
  ModelConfig c;
  c.capacity_bytes = u64{1} << 20;
  c.max_queues = 8;
  c.threads = threads;
  return c;
}

struct Counts final : InterruptSink {
  void raise(u16 vector) noexcept override {
    if (vector < kVectors) raised[vector].fetch_add(1, std::memory_order_release);
    else wrong.store(true);
  }
  [[nodiscard]] u32 of(u32 vector) const { return raised[vector].load(std::memory_order_acquire); }
  std::array<std::atomic<u32>, kVectors> raised{};
  std::atomic<bool> wrong{false};
};

/// A model with interrupts, whose driver has enabled it.
struct Rig {
  explicit Rig(const ModelConfig& config = small(), bool foreign = true) {
    auto owned = std::make_unique<ModelController>(
        config, "model", nullptr,
        ModelPorts{.interrupts = &sink, .vectors = kVectors, .registers = {}, .foreign_memory = foreign});
    model = owned.get();
    c = std::make_unique<RawController>(std::move(owned));
    c->enable();
  }
  [[nodiscard]] RawQueue* create(u16 qid, u16 vector, u32 entries = 16) {
    RawQueue* const q = c->queue(qid, entries, entries);
    EXPECT_EQ(c->status(create_cq_command(0, qid, entries, q->cq_iova(), true, vector)), status::success);
    EXPECT_EQ(c->status(create_sq_command(0, qid, qid, entries, q->sq_iova())), status::success);
    return q;
  }
  /// So many interrupts of the vector in all, and no more.
  void expect(u32 vector, u32 n) {
    EXPECT_TRUE(eventually([&] { return sink.of(vector) >= n; })) << sink.of(vector);
    settle();
    EXPECT_EQ(sink.of(vector), n);
  }
  /// Several rounds of every device thread.
  void settle() {
    for (int i = 0; i < 20; ++i) model->change_memory([] {});
  }

  Counts sink;
  ModelController* model = nullptr;
  std::unique_ptr<RawController> c;
};

// --- interrupts -----------------------------------------------------------------------------------

TEST(NvmeInterrupts, EachCommandRaisesItsQueuesVector) {
  for (const u32 threads : {1u, 3u}) {
    SCOPED_TRACE(threads);
    Rig r(small(threads));
    RawQueue* const two = r.create(1, 2);
    RawQueue* const five = r.create(2, 5);
    for (u16 i = 0; i < 40; ++i) {
      RawQueue* const q = i % 2 == 0 ? two : five;
      q->submit(flush_command(i, 1));
      // A driver that sleeps: it looks when the interrupt has come, and then the entry is there.
      ASSERT_TRUE(eventually([&] { return r.sink.of(i % 2 == 0 ? 2 : 5) == i / 2u + 1; }));
      const auto e = q->take();
      ASSERT_TRUE(e.has_value()) << "the interrupt came before its entry";
      ASSERT_EQ(e->cid, i);
      q->ring_cq();
    }
    for (const u32 v : {1u, 3u, 4u, 6u, 7u}) EXPECT_EQ(r.sink.of(v), 0u);
    EXPECT_FALSE(r.sink.wrong);
  }
}

TEST(NvmeInterrupts, TheAdminQueueHasVectorZero) {
  Rig r;
  const u32 before = r.sink.of(0);
  r.c->admin().submit(abort_command(1, 1, 1));
  EXPECT_TRUE(eventually([&] { return r.sink.of(0) == before + 1; }));
  EXPECT_TRUE(r.c->admin().take().has_value());
  r.c->admin().ring_cq();
}

TEST(NvmeInterrupts, ABatchIsOneOrFewAndAPolledQueueHasNone) {
  Rig r;
  RawQueue* const q = r.create(1, 1);
  RawQueue* const polled = r.c->create(2, 16, 16);
  for (u16 i = 0; i < 10; ++i) {
    q->put(flush_command(i, 1));
    polled->put(flush_command(i, 1));
  }
  const u32 admin = r.sink.of(0);
  q->ring();
  polled->ring();
  for (int i = 0; i < 10; ++i) {
    (void)q->wait();
    (void)polled->wait();
  }
  r.settle();
  EXPECT_GE(r.sink.of(1), 1u);
  EXPECT_LE(r.sink.of(1), 10u);
  EXPECT_EQ(r.sink.of(0), admin);
}

TEST(NvmeInterrupts, VectorsAreChecked) {
  Rig r;
  const RawQueue* const q = r.c->queue(1, 16, 16);
  for (const u16 v : {u16{kVectors}, u16{2047}, u16{2048}, u16{0xffff}})
    EXPECT_EQ(r.c->status(create_cq_command(0, 1, 16, q->cq_iova(), true, v)), status::invalid_vector) << v;
  EXPECT_EQ(r.c->status(create_cq_command(0, 1, 16, q->cq_iova(), true, kVectors - 1)), status::success);
}

/// INTMS and INTMC, one write after the other: each counts.
TEST(NvmeInterrupts, AMaskedVectorIsRaisedWhenItIsUnmasked) {
  Rig r;
  RawQueue* const q = r.create(1, 1);
  ControllerInterface& d = r.c->interface();
  d.write32(reg::intms, 2);
  d.write32(reg::intms, 4);
  EXPECT_EQ(d.read32(reg::intms), 6u);
  EXPECT_EQ(d.read32(reg::intmc), 6u);
  q->submit(flush_command(1, 1));
  ASSERT_EQ(q->wait(false).cid, 1);
  r.expect(1, 0);
  d.write32(reg::intmc, 4);
  r.expect(1, 0);
  d.write32(reg::intmc, 2);
  r.expect(1, 1);
  EXPECT_EQ(d.read32(reg::intms), 0u);
  // Nothing is unread any more: an unmasked pin stays down.
  q->ring_cq();
  r.settle();
  d.write32(reg::intms, 2);
  d.write32(reg::intmc, 2);
  r.expect(1, 1);
  // A reset takes the mask away.
  d.write32(reg::intms, 0xff);
  r.c->disable();
  EXPECT_EQ(d.read32(reg::intms), 0u);
}

/// A pin that a driver has acknowledged too early comes again as long as there is something to read.
TEST(NvmeInterrupts, UnreadEntriesRaiseAgain) {
  Rig r(small(2));
  RawQueue* const one = r.create(1, 0);
  RawQueue* const other = r.create(2, 3);
  one->submit(flush_command(1, 1));
  ASSERT_EQ(one->wait(false).cid, 1);
  r.settle();
  const u32 zero = r.sink.of(0);
  r.model->raise_interrupts_again();
  EXPECT_TRUE(eventually([&] { return r.sink.of(0) == zero + 1; }));
  EXPECT_EQ(r.sink.of(3), 0u) << "queue 2 has nothing to read";
  one->ring_cq();
  r.settle();
  r.model->raise_interrupts_again();
  r.settle();
  EXPECT_EQ(r.sink.of(0), zero + 1);
  other->submit(flush_command(1, 1));
  r.expect(3, 1);
}

/// Entries that wait for room come with an interrupt of their own.
TEST(NvmeInterrupts, HeldEntriesRaiseTheirs) {
  Rig r;
  RawQueue* const q = r.c->queue(1, 16, 3);
  ASSERT_EQ(r.c->status(create_cq_command(0, 1, 3, q->cq_iova(), true, 1)), status::success);
  ASSERT_EQ(r.c->status(create_sq_command(0, 1, 1, 16, q->sq_iova())), status::success);
  for (u16 i = 0; i < 9; ++i) q->put(flush_command(i, 1));
  q->ring();
  u32 taken = 0, seen = 0;
  while (taken < 9) {
    ASSERT_TRUE(eventually([&] { return r.sink.of(1) != seen; })) << taken << " of 9 came";
    seen = r.sink.of(1);
    while (q->take()) ++taken;
    q->ring_cq();
  }
}

TEST(NvmeInterrupts, LateAndAbortedEntriesRaiseTheirs) {
  ModelConfig config = small();
  config.latency_ns = 3600ull * 1'000'000'000;
  Rig r(config);
  RawQueue* const q = r.create(1, 1);
  q->submit(flush_command(7, 1));
  r.settle();
  EXPECT_EQ(r.sink.of(1), 0u);
  ASSERT_EQ(r.c->run(abort_command(0, 1, 7)).dw0 & 1, 0u);
  r.expect(1, 1);
  ASSERT_TRUE(q->take().has_value());
  ModelConfig slow = small();
  slow.latency_ns = 5'000'000;
  Rig s(slow);
  RawQueue* const late = s.create(1, 1);
  late->submit(flush_command(7, 1));
  s.expect(1, 1);
  EXPECT_TRUE(late->take().has_value());
}

// --- memory, reset, removal ------------------------------------------------------------------------------

/// Firmware maps a machine's memory anew while queues are live: they are found at the new addresses.
TEST(NvmeForeignDriver, MemoryChangesUnderLiveQueues) {
  for (const u32 threads : {1u, 3u}) {
    SCOPED_TRACE(threads);
    Rig r(small(threads));
    std::vector<RawQueue*> queues;
    for (u16 qid = 1; qid <= 4; ++qid) queues.push_back(r.create(qid, qid));
    const auto all_work = [&] {
      for (RawQueue* q : queues) q->submit(flush_command(q->qid(), 1));
      for (RawQueue* q : queues) ASSERT_EQ(q->wait().cid, q->qid());
      ASSERT_EQ(r.c->run(abort_command(0, 1, 1)).dw0 & 1, 1u);
    };
    all_work();
    for (int i = 0; i < 10; ++i) {
      std::optional<Mapped> more;
      r.model->change_memory(
          [&] { more.emplace(r.model->address_space(), Place::pageable, 64 * kPage, Access::read_write); });
      all_work();
      r.model->change_memory([&] { more.reset(); });
      all_work();
    }
    EXPECT_THROW(r.model->change_memory([] { throw std::runtime_error("no"); }), std::runtime_error);
    all_work();
  }
}

u64 faults_of(const Rig& r) {
  return r.model->counters().at("dma_faults").get<u64>();
}

/// A queue whose memory goes is fatal when it is used, and only then; a reset makes the controller whole. To
/// look for the memory is no access, and counts as no fault.
TEST(NvmeForeignDriver, AQueueWhoseMemoryHasGone) {
  Rig r;
  auto gone = std::make_unique<Mapped>(r.model->address_space(), Place::pageable, kPage, Access::read);
  const RawQueue* const q = r.c->queue(1, 16, 16);
  ASSERT_EQ(r.c->status(create_cq_command(0, 1, 16, q->cq_iova(), true, 1)), status::success);
  ASSERT_EQ(r.c->status(create_sq_command(0, 1, 1, 16, gone->iova())), status::success);
  r.model->change_memory([&] { gone.reset(); });
  r.settle();
  EXPECT_EQ(r.c->csts() & csts::fatal, 0u);
  EXPECT_EQ(faults_of(r), 0u);
  r.c->interface().write32(static_cast<u32>(sq_doorbell_offset(1, 0)), 1);
  EXPECT_TRUE(eventually([&] { return (r.c->csts() & csts::fatal) != 0; }));
  EXPECT_GT(faults_of(r), 0u);
  r.c->disable();
  r.c->enable();
  RawQueue* const again = r.create(1, 1);
  again->submit(flush_command(3, 1));
  EXPECT_EQ(again->wait().cid, 3);
}

/// The same of the admin queue, which SPDK's target does not survive.
TEST(NvmeForeignDriver, AnAdminQueueWhoseMemoryHasGone) {
  Rig r;
  r.c->disable();
  std::optional<Mapped> sq(std::in_place, r.model->address_space(), Place::pageable, kPage, Access::read);
  Mapped cq(r.model->address_space(), Place::pageable, kPage, Access::write);
  r.c->write_enable(16, 16, sq->iova(), cq.iova());
  ASSERT_TRUE(eventually([&] { return (r.c->csts() & csts::ready) != 0; }));
  r.model->change_memory([&] { sq.reset(); });
  EXPECT_EQ(faults_of(r), 0u);
  r.c->interface().write32(reg::doorbells, 1);
  EXPECT_TRUE(eventually([&] { return (r.c->csts() & csts::fatal) != 0; }));
  r.c->disable();
  r.c->enable();
  EXPECT_EQ(r.c->status(set_queues_command(0, 1, 1)), status::success);
}

/// Shadow doorbells whose pages go: the registers ring from then on.
TEST(NvmeForeignDriver, ShadowDoorbellsWhoseMemoryHasGone) {
  Rig r;
  RawQueue* const q = r.create(1, 1);
  std::optional<Mapped> pages(std::in_place, r.model->address_space(), Place::pageable, 2 * kPage,
                              Access::read_write);
  ASSERT_EQ(r.c->status(doorbell_buffer_command(0, pages->iova(), pages->iova() + kPage)), status::success);
  r.model->change_memory([&] { pages.reset(); });
  for (u16 i = 0; i < 100; ++i) {
    q->submit(flush_command(i, 1));
    ASSERT_EQ(q->wait().cid, i);
  }
  EXPECT_EQ(faults_of(r), 0u);
}

/// DEVICE_RESET and a function level reset: registers as after power-on, blocks as they were.
TEST(NvmeForeignDriver, ResetIsPowerOn) {
  Rig r(small(2));
  RawQueue* const q = r.create(1, 1);
  Mapped& data = r.c->memory(kPage);
  std::memset(data.region().host(), 0x3c, kPage);
  q->submit(io_command(IoOpcode::write, 1, 1, 5, 8, data.iova(), 0));
  ASSERT_EQ(status_of(q->wait()).type_and_code(), status::success);
  ControllerInterface& d = r.c->interface();
  const u64 cap = d.read64(reg::cap);
  d.write32(reg::intms, 1);
  d.write32(reg::cc, d.read32(reg::cc) | cc::shutdown_normal);
  ASSERT_TRUE(eventually([&] { return (r.c->csts() & csts::shutdown_mask) == csts::shutdown_complete; }));
  r.model->reset();
  EXPECT_EQ(d.read64(reg::cap), cap);
  for (const u32 at : {reg::intms, reg::intmc, reg::cc, reg::csts, reg::aqa, reg::asq, reg::asq + 4, reg::acq,
                       reg::acq + 4, reg::doorbells, u32(sq_doorbell_offset(1, 0))})
    EXPECT_EQ(d.read32(at), 0u) << at;
  q->submit(flush_command(1, 1));  // there is no such queue
  r.settle();
  EXPECT_FALSE(q->take().has_value());
  r.c->enable();
  RawQueue* const again = r.create(1, 1);
  std::memset(data.region().host(), 0, kPage);
  again->submit(io_command(IoOpcode::read, 1, 1, 5, 8, data.iova(), 0));
  ASSERT_EQ(status_of(again->wait()).type_and_code(), status::success);
  EXPECT_EQ(data.region().host()[kPage - 1], 0x3c);
}

TEST(NvmeForeignDriver, UnpluggedItReadsAsOnesAndDoesNothing) {
  Rig r(small(2));
  RawQueue* const q = r.create(1, 1);
  r.model->unplug();
  EXPECT_TRUE(r.model->gone());
  EXPECT_TRUE(eventually([&] { return r.c->interface().read32(reg::csts) == ~0u; }));
  EXPECT_EQ(r.c->interface().read64(reg::cap), ~u64{0});
  q->submit(flush_command(1, 1));
  r.c->interface().write32(reg::cc, 0);  // ends
  r.model->change_memory([] {});         // and so does this
  r.model->reset();
  EXPECT_FALSE(q->take().has_value());
  EXPECT_EQ(r.sink.of(1), 0u);
}

/// Some drivers name the sizes of entries only after they have enabled the controller.
TEST(NvmeForeignDriver, EntrySizesMayComeLater) {
  Rig r;
  r.c->disable();
  ControllerInterface& d = r.c->interface();
  RawQueue& admin = r.c->admin();
  admin.start_over();
  r.c->write_enable(admin.sq_entries(), admin.cq_entries(), admin.sq_iova(), admin.cq_iova(), cc::enable);
  ASSERT_TRUE(eventually([&] { return (r.c->csts() & csts::ready) != 0; }));
  const RawQueue* const q = r.c->queue(1, 16, 16);
  EXPECT_EQ(r.c->status(create_cq_command(0, 1, 16, q->cq_iova())), status::invalid_queue_size);
  d.write32(reg::cc, RawController::kUsual);
  EXPECT_EQ(r.c->status(create_cq_command(0, 1, 16, q->cq_iova())), status::success);
  r.c->disable();
  r.c->write_enable(16, 16, admin.sq_iova(), admin.cq_iova(), RawController::kUsual | 1u << 11);
  EXPECT_TRUE(eventually([&] { return (r.c->csts() & csts::fatal) != 0; })) << "there is round robin alone";
}

TEST(NvmeForeignDriver, RegistersInMemoryThatIsGiven) {
  const ModelConfig config = small();
  Region given(Place::pageable, 4 * kPage);
  ModelPorts ports;
  ports.registers = {given.host(), given.bytes(), [](u8*, u64) {}};
  RawController c(std::make_unique<ModelController>(config, "model", nullptr, std::move(ports)));
  c.enable();
  RawQueue* const q = c.create(1, 16, 16);
  q->put(flush_command(4, 1));
  store_release(reinterpret_cast<u32*>(given.host() + sq_doorbell_offset(1, 0)), 1);
  EXPECT_EQ(q->wait().cid, 4);
  u64 cap = 0;
  std::memcpy(&cap, given.host(), sizeof cap);
  EXPECT_EQ(cap, c.interface().read64(reg::cap));
  ModelPorts less;
  Region one(Place::pageable, kPage);
  less.registers = {one.host(), one.bytes(), [](u8*, u64) {}};
  EXPECT_THROW(ModelController(config, "model", nullptr, std::move(less)), std::exception);
}

TEST(NvmeForeignDriver, AKernelRaisesNoInterrupts) {
  ModelConfig config = small();
  config.engine = ModelConfig::Engine::kernel_on_cpu;
  Counts sink;
  EXPECT_THROW(
      ModelController(config, "model", nullptr, {.interrupts = &sink, .vectors = 1, .registers = {}}),
      std::exception);
}

// --- formatting -------------------------------------------------------------------------------------

struct Formatted : Rig {
  explicit Formatted(ModelConfig config) : Rig(config) { q = create(1, 1); }
  u16 io(IoOpcode op, u64 lba, u32 blocks) {
    q->submit(io_command(op, 1, 1, lba, blocks, data.iova(), 0));
    return status_of(q->wait()).type_and_code();
  }
  u16 admin(AdminOpcode op, u32 cdw10, u32 nsid = 1) {
    Sqe e = admin_command(op, 0);
    e.nsid = nsid;
    e.cdw10 = cdw10;
    return c->status(e);
  }
  u64 blocks() {
    EXPECT_EQ(c->status(identify_command(0, Cns::name_space, 1, data.iova())), status::success);
    u64 n = 0;
    std::memcpy(&n, data.region().host(), sizeof n);
    return n;
  }
  bool zeros() {
    std::memset(data.region().host(), 0x11, kPage);
    EXPECT_EQ(io(IoOpcode::read, 0, 1), status::success);
    return data.region().host()[0] == 0 &&
           std::memcmp(data.region().host(), data.region().host() + 1, 511) == 0;
  }
  RawQueue* q = nullptr;
  Mapped& data = c->memory(kPage);
};

TEST(NvmeFormat, FormatErasesAndChangesBlocks) {
  ModelConfig config = small(2);
  config.format = true;
  config.formats = 2;
  config.lba_bytes = 4096;
  Formatted f(config);
  EXPECT_EQ(f.blocks(), 256u);
  std::memset(f.data.region().host(), 0xab, kPage);
  ASSERT_EQ(f.io(IoOpcode::write, 0, 1), status::success);
  EXPECT_FALSE(f.zeros());
  EXPECT_EQ(f.admin(AdminOpcode::format_nvm, 2), status::invalid_format);
  EXPECT_EQ(f.admin(AdminOpcode::format_nvm, 1 | 1 << 5), status::invalid_format) << "protection";
  EXPECT_EQ(f.admin(AdminOpcode::format_nvm, 1 | 2 << 9), status::invalid_field) << "cryptographic erase";
  EXPECT_EQ(f.admin(AdminOpcode::format_nvm, 1, 2), status::invalid_namespace);
  EXPECT_FALSE(f.zeros()) << "refusals do nothing";
  EXPECT_EQ(f.admin(AdminOpcode::format_nvm, 1), status::success);
  EXPECT_TRUE(f.zeros());
  EXPECT_EQ(f.admin(AdminOpcode::format_nvm, 0 | 1 << 9), status::success);
  EXPECT_EQ(f.blocks(), 2048u) << "of 512 bytes";
  EXPECT_EQ(f.data.region().host()[identify::flbas], 0);
  EXPECT_EQ(f.io(IoOpcode::read, 2047, 1), status::success);
  EXPECT_EQ(f.io(IoOpcode::read, 2048, 1), status::lba_out_of_range);
}

TEST(NvmeFormat, SanitizeErasesAndReports) {
  ModelConfig config = small();
  config.format = true;
  Formatted f(config);
  std::memset(f.data.region().host(), 0xab, kPage);
  ASSERT_EQ(f.io(IoOpcode::write, 0, 8), status::success);
  EXPECT_EQ(f.admin(AdminOpcode::sanitize, 4), status::invalid_field);
  EXPECT_FALSE(f.zeros());
  f.c->admin().submit(admin_command(AdminOpcode::async_event, 0x4001));
  Sqe e = admin_command(AdminOpcode::sanitize, 0x55);
  e.cdw10 = 2;
  f.c->admin().submit(e);
  bool event = false;
  for (int i = 0; i < 2; ++i) {
    const Cqe c = f.c->admin().wait();
    EXPECT_EQ(status_of(c).type_and_code(), status::success);
    if (c.cid == 0x4001) event = c.dw0 == 0x810106;
  }
  EXPECT_TRUE(event);
  EXPECT_TRUE(f.zeros());
  ASSERT_EQ(f.c->status(get_log_command(0, 0x81, kAllNamespaces, 512, f.data.iova())), status::success);
  EXPECT_EQ(f.data.region().host()[0], 0xff);
  EXPECT_EQ(f.data.region().host()[2] & 7, 1) << "completed";
}

// --- hostile drivers --------------------------------------------------------------------------------

/// Any entries and doorbells, while the memory of both changes: nothing crashes, nothing is written where the
/// host did not allow it, and after a reset everything works.
TEST(NvmeForeignDriver, HostileEntriesAndDoorbells) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "this driver races with the device on purpose";
#endif
  for (const u32 threads : {1u, 2u}) {
    ModelConfig config = small(threads);
    config.mdts = threads == 1 ? 2 : 0;
    Rig r(config);
    RawQueue* const q = r.create(1, 1, 64);
    (void)r.create(2, 2, 64);
    Mapped& data = r.c->memory(16 * kPage);
    const Mapped& constant = r.c->memory(4 * kPage, Access::read);
    std::memset(constant.region().host(), 0x5a, 4 * kPage);
    auto* const list = reinterpret_cast<u64*>(data.region().host());
    std::mt19937_64 random(threads);
    const auto address = [&]() -> u64 {
      switch (random() % 8) {
        case 0:
          return random();
        case 1:
          return ~u64{0} - kPage + 1;
        case 2:
          return constant.iova() + random() % (5 * kPage);
        case 3:
          return 0;
        default:
          return data.iova() + (random() % 17) * kPage + (random() % 3 == 0 ? random() % kPage : 0);
      }
    };
    constexpr u8 kAdmin[] = {0x00, 0x01, 0x02, 0x04, 0x05, 0x06, 0x08,
                             0x09, 0x0a, 0x0c, 0x7c, 0x80, 0x84, 0x18};
    constexpr u8 kIo[] = {0x00, 0x01, 0x02, 0x05, 0x08, 0x09, 0x0c, 0x7f};
    ControllerInterface& d = r.c->interface();
    for (int i = 0; i < 4000; ++i) {
      for (u32 k = 0; k < 16; ++k) list[random() % (16 * kPage / 8)] = address();
      const bool admin = random() % 2 == 0;
      Sqe e;
      e.opcode = admin ? kAdmin[random() % sizeof kAdmin] : kIo[random() % sizeof kIo];
      e.cid = static_cast<u16>(random());
      e.nsid = random() % 4 != 0 ? 1 : static_cast<u32>(random());
      e.prp1 = address();
      e.prp2 = address();
      e.cdw10 = static_cast<u32>(random() % 2 != 0 ? random() % 64 : random());
      e.cdw11 = static_cast<u32>(random() % 2 != 0 ? random() % 4 : random());
      e.cdw12 = static_cast<u32>(random() % 2 != 0 ? random() % 32 : random());
      // The queues of this test stay: the others may be deleted and made anew, anywhere.
      if (admin && (e.opcode <= 0x01 || e.opcode == 0x04 || e.opcode == 0x05))
        e.cdw10 = (e.cdw10 & ~0xffffu) | (2 + random() % 8);
      RawQueue& to = admin ? r.c->admin() : *q;
      to.submit(e);
      for (int look = 0; look < 3; ++look)
        while (to.take()) to.ring_cq();
      switch (random() % 8) {
        case 0:
          d.write32(static_cast<u32>(reg::doorbells + 16 + random() % 64 * 4), static_cast<u32>(random()));
          break;
        case 1:
          d.write32(static_cast<u32>(cq_doorbell_offset(1, 0)), static_cast<u32>(random() % 70));
          to.ring_cq();
          break;
        case 2:
          d.write32(random() % 2 != 0 ? reg::intms : reg::intmc, static_cast<u32>(random()));
          break;
        case 3:
          d.write32(reg::nssr, 0x4e564d65);
          break;
        default:
          break;
      }
    }
    r.settle();
    for (u64 i = 0; i < 4 * kPage; ++i) ASSERT_EQ(constant.region().host()[i], 0x5a);
    EXPECT_FALSE(r.sink.wrong);
    r.c->disable();
    r.c->enable();
    RawQueue* const after = r.create(1, 1);
    after->submit(flush_command(3, 1));
    EXPECT_EQ(after->wait().cid, 3);
  }
}

}  // namespace
}  // namespace doorbell::nvme
