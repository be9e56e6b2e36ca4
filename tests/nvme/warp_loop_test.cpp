// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The I/O loop with one lane, 8 and 32 lanes: all give the same verdicts and counts, for every kind of damage
// by a controller.

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <vector>

#include "emulated_warp.hpp"
#include "measure/check_memory.hpp"
#include "nvme/backends.hpp"
#include "nvme/io_loop.hpp"
#include "nvme/model/controller.hpp"
#include "nvme/queue_buffers.hpp"
#include "ring_controller.hpp"
#include "system/clock.hpp"

namespace doorbell::nvme {
namespace {

/// Time that passes only when the test says so.
struct ManualClock {
  static inline std::atomic<u64> ticks{0};
  static u64 now() { return ticks.load(std::memory_order_relaxed); }
  static u64 wall_ns() { return now(); }
};

constexpr u64 kDataIova = u64{1} << 32, kListIova = u64{1} << 33;

enum class Ill { none, error, drop, duplicate, corrupt, misplace, stale };
using Plan = std::function<Ill(u64 serial, const Sqe& e)>;

/// A controller in the test's hands: executes at the doorbell, completes in an order of its own, and
/// does to command `serial` what the plan says.
class Responder {
 public:
  Responder(u32 entries, u64 media_bytes, u32 lba_bytes, bool shuffle, Plan plan)
      : ring_(entries), media_(media_bytes), lba_(lba_bytes), shuffle_(shuffle), plan_(std::move(plan)) {}

  RingController& ring() { return ring_; }
  void buffers(u8* data, u64* lists) {
    data_ = data;
    lists_ = lists;
  }

  void poll() {
    if (ring_.tail() != seen_tail_) tails.push_back(seen_tail_ = ring_.tail());
    std::vector<std::pair<u16, u16>> group;  // cid, status
    while (ring_.announced() > 0) {
      const Sqe e = ring_.fetch();
      const auto* raw = reinterpret_cast<const u8*>(&e);
      submitted.insert(submitted.end(), raw, raw + sizeof e);
      const Ill ill = plan_(serial_++, e);
      if (ill == Ill::error) {
        group.emplace_back(e.cid, status::write_fault);
        continue;
      }
      execute(e, ill);
      if (ill == Ill::drop) continue;
      group.emplace_back(e.cid, status::success);
      if (ill == Ill::duplicate) group.emplace_back(e.cid, status::success);
    }
    // A group is what one doorbell announced, so the order does not depend on when the host looks.
    if (shuffle_ && !group.empty() && groups_++ % 2 == 0) std::reverse(group.begin(), group.end());
    for (const auto& c : group) outgoing_.push_back(c);
    while (!outgoing_.empty() && !ring_.cq_full()) {
      ring_.complete(outgoing_.front().first, outgoing_.front().second);
      outgoing_.pop_front();
    }
  }

  std::vector<u8> submitted;
  std::vector<u32> tails;
  u64 done[8] = {};  // by Ill

 private:
  u8* memory(u64 iova) { return data_ + (iova - kDataIova); }

  void execute(const Sqe& e, Ill ill) {
    ++done[static_cast<u32>(ill)];
    const u64 bytes = u64{blocks_of(e)} * lba_;
    u64 at = lba_of(e) * lba_;
    const bool read = e.opcode == static_cast<u8>(IoOpcode::read);
    if (ill == Ill::stale) return;
    if (ill == Ill::misplace) at = at >= bytes ? at - bytes : at + bytes;
    bool first = true;
    const u16 st = walk_prps(
        e.prp1, e.prp2, bytes, 4096,
        [&](u64 from, u32 n, u64* out) {
          std::copy_n(lists_ + (from - kListIova) / 8, n, out);
          return true;
        },
        [&](u64 to, u64 n) {
          if (read) {
            std::memcpy(memory(to), media_.data() + at, n);
            if (first && ill == Ill::corrupt) memory(to)[n / 2] ^= 1;
          } else {
            std::memcpy(media_.data() + at, memory(to), n);
          }
          first = false;
          at += n;
          return true;
        });
    ASSERT_EQ(st, status::success);
  }

  RingController ring_;
  std::vector<u8> media_;
  u32 lba_;
  bool shuffle_;
  Plan plan_;
  u8* data_ = nullptr;
  u64* lists_ = nullptr;
  u64 serial_ = 0;
  u64 groups_ = 0;
  u32 seen_tail_ = 0;
  std::deque<std::pair<u16, u16>> outgoing_;
};

struct Scenario {
  u32 entries = 64;
  u32 batch = 4;
  u32 window = 16;
  u32 blocks = 1;
  u32 lba = 512;
  u64 ios = 100;
  u64 span = 100;
  bool random = false;
  bool shuffle = false;
  bool substeps = false;
  u32 sample = ~0u;
  Plan write_plan = [](u64, const Sqe&) { return Ill::none; };
  Plan read_plan = [](u64, const Sqe&) { return Ill::none; };
};

struct Outcome {
  OpStats write, read, drain;
  std::vector<u8> submitted;
  std::vector<u32> tails;
  u32 cq_head = 0;
  u64 binned = 0;
};

template <u32 N, bool Substeps>
Outcome run_scenario(const Scenario& s) {
  const u64 io_bytes = u64{s.blocks} * s.lba;
  const u64 stride = (io_bytes + 4095) / 4096 * 4096;
  const u64 list_stride = (prp_list_qwords(0, io_bytes, 4096) * 8 + 4095) / 4096 * 4096;
  u64 write_serials = ~u64{0};
  Responder device(s.entries, s.span * io_bytes, s.lba, s.shuffle, [&](u64 serial, const Sqe& e) {
    if (e.opcode == static_cast<u8>(IoOpcode::write)) return s.write_plan(serial, e);
    if (write_serials == ~u64{0}) write_serials = serial;
    return s.read_plan(serial - write_serials, e);
  });
  std::vector<Word16> data(stride * s.window / 16 + 1);
  std::vector<u64> lists(list_stride * s.window / 8 + 1);
  device.buffers(reinterpret_cast<u8*>(data.data()), lists.data());

  IoQueue q;
  q.memory = device.ring().memory();
  q.data = reinterpret_cast<u8*>(data.data());
  q.stride = stride;
  q.data_iova = kDataIova;
  q.list_iova = kListIova;
  q.list_stride = list_stride;
  q.span = s.span;
  if (list_stride > 0)
    for (u32 slot = 0; slot < s.window; ++slot)
      write_prp_list(lists.data() + slot * list_stride / 8, kDataIova + slot * stride, io_bytes, 4096,
                     kListIova + slot * list_stride);
  std::vector<u32> unwritten(s.span / 32 + 1);
  q.unwritten = unwritten.data();
  q.unwritten_bits = s.span;

  IoPhase phase;
  phase.random = s.random;
  phase.verify = true;
  phase.verify_below = s.sample;
  phase.blocks = s.blocks;
  phase.lba_bytes = s.lba;
  phase.batch = s.batch;
  phase.window = s.window;
  phase.timeout_ticks = 10'000;
  phase.late_ticks = 1'000'000;
  phase.check_ticks = 1;

  std::vector<u64> memory(IoScratch::bytes(s.window, histogram::kBuckets) / 8 + 1);
  const IoScratch scratch = carve_scratch(memory.data(), s.window, histogram::kBuckets);
  QueuePairState state;
  state.memory = q.memory;
  Outcome out;
  measure::CheckMemory checks(s.window, 0);
  const auto one_phase = [&](OpStats& stats) {
    q.checks = checks.next_phase(u64{s.blocks} * s.lba);
    collective<N>([&](const auto& warp) {
      using Warp = std::remove_cvref_t<decltype(warp)>;
      IoLoop<Warp, ManualClock, Substeps> loop(warp, phase, q, state, scratch, &stats);
      bool more = true;
      u32 polls_without_news = 0;
      while (more) {
        if (warp.lane() == 0) {
          device.poll();
          // Time stands nearly still while there is work, and flies when everyone waits.
          ManualClock::ticks.fetch_add(loop.idle() > 64 ? 100 : 1, std::memory_order_relaxed);
        }
        warp.sync();
        more = loop.step(warp);
        if (++polls_without_news > 2'000'000) {
          ADD_FAILURE() << "the loop does not end";
          break;
        }
      }
      loop.finish(warp);
      warp.sync();
      if (warp.lane() == 0) state = loop.state();
    });
  };
  phase.op = IoOpcode::write;
  q.count = s.ios;
  one_phase(out.write);
  if (out.write.stop == StopReason::done) {
    phase.op = IoOpcode::read;
    q.written = out.write.posted;
    q.written_generation = phase.generation;
    one_phase(out.read);
  }
  phase.drain = true;
  q.count = 0;
  one_phase(out.drain);
  device.poll();
  out.submitted = device.submitted;
  out.tails = device.tails;
  out.cq_head = device.ring().cq_head();
  for (u32 b = 0; b < histogram::kBuckets; ++b) out.binned += scratch.bins[b];
  return out;
}

void expect_same(const OpStats& a, const OpStats& b) {
  const std::pair<const char*, u64 OpCounters::*> fields[] = {
      {"posted", &OpCounters::posted},   {"succeeded", &OpCounters::succeeded},
      {"failed", &OpCounters::failed},   {"timed_out", &OpCounters::timed_out},
      {"aborted", &OpCounters::aborted}, {"late", &OpCounters::late},
      {"skipped", &OpCounters::skipped}, {"protocol", &OpCounters::protocol},
      {"checked", &OpCounters::checked}, {"unverifiable", &OpCounters::unverifiable},
      {"corrupt", &OpCounters::corrupt}, {"misplaced", &OpCounters::misplaced},
      {"stale", &OpCounters::stale},     {"missing", &OpCounters::missing},
      {"timed", &OpCounters::timed},     {"sq_doorbells", &OpCounters::sq_doorbells},
  };
  for (const auto& [name, field] : fields) EXPECT_EQ(a.*field, b.*field) << name;
  EXPECT_EQ(a.stop, b.stop);
  for (u32 i = 0; i < OpStats::kKept; ++i) {
    EXPECT_EQ(a.statuses[i].code, b.statuses[i].code);
    EXPECT_EQ(a.statuses[i].count, b.statuses[i].count);
  }
  ASSERT_EQ(a.failures, b.failures);
  for (u32 i = 0; i < a.failures; ++i) {
    EXPECT_EQ(a.first_failures[i].verdict, b.first_failures[i].verdict);
    EXPECT_EQ(a.first_failures[i].address, b.first_failures[i].address);
    EXPECT_EQ(a.first_failures[i].sequence, b.first_failures[i].sequence);
  }
}

Outcome expect_same_by_all(const Scenario& s) {
  const Outcome one = run_scenario<1, false>(s);
  const auto compare = [&](const Outcome& many) {
    EXPECT_TRUE(one.submitted == many.submitted) << "other submission bytes";
    EXPECT_TRUE(one.tails == many.tails) << "other tail doorbells";
    EXPECT_EQ(one.cq_head, many.cq_head);
    EXPECT_EQ(one.binned, many.binned);
    expect_same(one.write, many.write);
    expect_same(one.read, many.read);
    expect_same(one.drain, many.drain);
    // The second of a pair may come when the next phase has begun.
    EXPECT_EQ(one.write.duplicated + one.read.duplicated + one.drain.duplicated,
              many.write.duplicated + many.read.duplicated + many.drain.duplicated);
  };
  {
    SCOPED_TRACE("8 lanes");
    compare(run_scenario<8, false>(s));
  }
  {
    SCOPED_TRACE("32 lanes");
    compare(run_scenario<32, false>(s));
  }
  if (s.substeps) {
    SCOPED_TRACE("8 lanes with substep timing");
    compare(run_scenario<8, true>(s));
  }
  return one;
}

TEST(WarpLoop, CleanRuns) {
  for (Scenario s :
       {Scenario{.substeps = true}, Scenario{.entries = 2, .batch = 1, .window = 1, .ios = 20},
        Scenario{.entries = 8, .batch = 7, .window = 7},
        Scenario{.entries = 9, .batch = 3, .window = 6, .ios = 61, .span = 20},
        Scenario{.entries = 100, .batch = 33, .window = 66, .random = true, .shuffle = true},
        Scenario{.batch = 2, .window = 4, .blocks = 24, .ios = 30, .span = 30, .random = true},
        Scenario{.batch = 2, .window = 4, .blocks = 3, .lba = 4096, .ios = 20, .span = 7, .shuffle = true}}) {
    SCOPED_TRACE(testing::Message() << "entries " << s.entries << " batch " << s.batch << " blocks "
                                    << s.blocks);
    const Outcome o = expect_same_by_all(s);
    EXPECT_EQ(o.write.succeeded, s.ios);
    EXPECT_EQ(o.read.succeeded, s.ios);
    EXPECT_EQ(o.read.checked, s.ios);
    EXPECT_EQ(o.read.corrupt + o.read.misplaced + o.read.stale + o.read.missing + o.read.duplicated, 0u);
  }
}

TEST(WarpLoop, SampledVerification) {
  const Outcome o = expect_same_by_all({.ios = 200, .span = 200, .sample = ~0u / 4});
  EXPECT_GT(o.read.checked, 20u);
  EXPECT_LT(o.read.checked, 80u);
}

TEST(WarpLoop, DuplicatesAndOutOfOrder) {
  u64 expected = 0;
  const auto every = [&](u64 serial, const Sqe&) { return serial % 7 == 3 ? Ill::duplicate : Ill::none; };
  for (u64 i = 0; i < 100; ++i) expected += i % 7 == 3 ? 1u : 0u;
  for (const bool shuffle : {false, true}) {
    const Outcome o = expect_same_by_all({.shuffle = shuffle, .write_plan = every, .read_plan = every});
    // Both of a pair can lie in one poll; both phases have the same number, the last may come in the drain.
    EXPECT_EQ(o.write.duplicated + o.read.duplicated + o.drain.duplicated, 2 * expected);
    EXPECT_EQ(o.read.checked, 100u);
  }
}

/// A completion queue that unexpected entries fill: the loop must give entries back though it posts nothing.
TEST(WarpLoop, DuplicatesThroughTheSmallestQueues) {
  for (const u32 entries : {2u, 3u, 4u}) {
    SCOPED_TRACE(entries);
    const auto all = [](u64, const Sqe&) { return Ill::duplicate; };
    const Outcome o = expect_same_by_all({.entries = entries,
                                          .batch = 1,
                                          .window = entries - 1,
                                          .ios = 20,
                                          .span = 20,
                                          .write_plan = all,
                                          .read_plan = all});
    EXPECT_EQ(o.write.timed_out + o.read.timed_out, 0u) << "completions were held back for ever";
    EXPECT_EQ(o.write.succeeded, 20u);
    EXPECT_EQ(o.read.succeeded, 20u);
  }
}

TEST(WarpLoop, Errors) {
  const auto some = [](u64 serial, const Sqe&) { return serial % 5 == 1 ? Ill::error : Ill::none; };
  const Outcome o = expect_same_by_all({.shuffle = true, .write_plan = some, .read_plan = some});
  EXPECT_EQ(o.write.failed, 20u);
  EXPECT_EQ(o.read.failed, 20u);
  EXPECT_EQ(o.read.statuses[0].code, status::write_fault);
  EXPECT_EQ(o.read.statuses[0].count, 20u);
  // Refused writes are read back as unverifiable where the read itself was answered.
  EXPECT_EQ(o.read.stale, 0u);
}

TEST(WarpLoop, DataFaults) {
  const auto reads = [](u64 serial, const Sqe&) {
    return serial % 10 == 2 ? Ill::corrupt : serial % 10 == 6 ? Ill::misplace : Ill::none;
  };
  const auto writes = [](u64 serial, const Sqe&) { return serial % 25 == 4 ? Ill::stale : Ill::none; };
  for (const u32 blocks : {1u, 20u}) {
    const Outcome o = expect_same_by_all({.blocks = blocks, .write_plan = writes, .read_plan = reads});
    EXPECT_EQ(o.read.corrupt, 10u);
    EXPECT_EQ(o.read.misplaced, 10u);
    EXPECT_EQ(o.read.stale, 4u);
    EXPECT_EQ(o.read.checked, 100u);
  }
}

TEST(WarpLoop, DroppedCompletionsEndByTheDeadline) {
  const auto three = [](u64 serial, const Sqe&) { return serial % 40 == 11 ? Ill::drop : Ill::none; };
  const Outcome o = expect_same_by_all({.read_plan = three});
  EXPECT_EQ(o.read.timed_out, 3u);
  EXPECT_EQ(o.read.succeeded, 97u);
  EXPECT_EQ(o.read.posted, 100u);
  EXPECT_EQ(o.read.stop, StopReason::timeout);
}

// --- against the model ----------------------------------------------------------------------------

template <u32 N>
void against_the_model(model::FaultRates faults, u64 ios, u32 blocks) {
  SCOPED_TRACE(testing::Message() << N << " lanes, " << blocks << " blocks");
  ModelConfig config;
  config.faults = faults;
  config.capacity_bytes = u64{64} << 20;
  config.threads = 1;
  auto owned = std::make_unique<ModelController>(config, "model");
  ModelController& device = *owned;
  OpenOptions options;
  options.timeout_s = 60;
  Controller controller(std::move(owned), options);
  controller.request_queues(1);
  QueueBuffers buffers(
      interface_of(controller).address_space(), nullptr,
      {.queues = 1, .entries = 16, .window = 8, .io_bytes = u64{blocks} * 512, .positions = ios});
  IoQueuePair pair = controller.create_queue_pair(1, 16, Place::pageable, Place::pageable);
  IoQueue& q = buffers.queues().front();
  q.memory = pair.memory(Initiator::cpu);
  q.count = ios;
  IoPhase phase;
  phase.verify = true;
  phase.blocks = blocks;
  phase.batch = 4;
  phase.window = 8;
  phase.timeout_ticks = HostClock::ticks(60);
  phase.late_ticks = HostClock::ticks(60);
  phase.check_ticks = HostClock::ticks(1e-3);
  phase.csts = controller.status_register(Initiator::cpu);
  phase.ns_per_tick_q24 = HostClock::ns_per_tick_q24();
  std::vector<u64> memory(IoScratch::bytes(phase.window, histogram::kBuckets) / 8 + 1);
  const IoScratch scratch = carve_scratch(memory.data(), phase.window, histogram::kBuckets);
  QueuePairState state;
  state.memory = q.memory;
  measure::CheckMemory checks(phase.window, 0);
  const auto one_phase = [&](IoOpcode op, bool drain) {
    OpStats stats;
    phase.op = op;
    phase.drain = drain;
    q.checks = checks.next_phase(u64{blocks} * 512);
    collective<N>([&](const auto& warp) {
      using Warp = std::remove_cvref_t<decltype(warp)>;
      IoLoop<Warp, HostClock> loop(warp, phase, q, state, scratch, &stats);
      while (loop.step(warp))
        if (warp.lane() == 0) std::this_thread::yield();
      loop.finish(warp);
      warp.sync();
      if (warp.lane() == 0) state = loop.state();
    });
    return stats;
  };
  const OpStats written = one_phase(IoOpcode::write, false);
  q.written = written.posted;
  q.written_generation = phase.generation;
  const OpStats read = one_phase(IoOpcode::read, false);
  pair.delete_sq();
  q.count = 0;
  const OpStats rest = one_phase(IoOpcode::read, true);
  EXPECT_EQ(written.posted, ios);
  EXPECT_EQ(written.succeeded + written.failed, ios);
  EXPECT_EQ(read.succeeded + read.failed, ios);
  EXPECT_EQ(written.timed_out + read.timed_out + written.protocol + read.protocol, 0u);
  using model::Fault;
  EXPECT_EQ(read.checked + read.unverifiable, read.succeeded);
  EXPECT_EQ(read.corrupt, device.injected(Fault::corrupt));
  EXPECT_EQ(read.misplaced, device.injected(Fault::misplace));
  EXPECT_EQ(written.failed + read.failed, device.injected(Fault::error));
  EXPECT_EQ(written.duplicated + read.duplicated + rest.duplicated, device.injected(Fault::duplicate));
}

model::FaultRates one_fault(model::Fault f, double p) {
  model::FaultRates r;
  r.probability[static_cast<u32>(f)] = p;
  return r;
}

TEST(WarpLoop, AgainstTheModel) {
  using model::Fault;
  for (const u32 blocks : {1u, 24u}) {
    against_the_model<1>({}, 100, blocks);
    against_the_model<8>({}, 100, blocks);
  }
  against_the_model<32>({}, 60, 2);
  for (const Fault f : {Fault::corrupt, Fault::misplace, Fault::error, Fault::duplicate, Fault::reorder}) {
    SCOPED_TRACE(name(f));
    against_the_model<1>(one_fault(f, 0.1), 100, 1);
    against_the_model<8>(one_fault(f, 0.1), 100, 1);
  }
}

}  // namespace
}  // namespace doorbell::nvme
