// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The code that serves NVMe queues in a kernel, with the warps of a block: whatever their number and size,
// the host sees the same completions and the same data as with one lane. What the completions must be is
// tested by the conformance cases, for which one lane serves.

#include <doorbell/nvme/wire.hpp>
#include <doorbell/region.hpp>
#include <gtest/gtest.h>

#include <barrier>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "emulated_warp.hpp"
#include "nvme/model/queue_server.hpp"
#include "system/clock.hpp"

namespace doorbell::nvme {
namespace {

constexpr u32 kEntries = 32;
constexpr Iova kData = u64{1} << 32, kLists = u64{2} << 32, kReadOnly = u64{3} << 32;
constexpr u64 kDataBytes = 1 << 20, kListBytes = 1 << 20, kMediaBlocks = 4096;

/// The warps of a block, each on a thread of its own.
template <class Warp>
struct Threads {
  u32 index;
  u32 count;
  std::barrier<>* all;
  const Warp* lanes;
  [[nodiscard]] u32 warp() const { return index; }
  [[nodiscard]] u32 warps() const { return count; }
  void sync() const {
    lanes->sync();
    if (lanes->lane() == 0) all->arrive_and_wait();
    lanes->sync();
  }
};

/// A host, and all memory that it shares with one server. It works between two rounds of the server.
class Host {
 public:
  explicit Host(const std::function<void(ServerJob*)>& configure = {})
      : data_(Place::pageable, kDataBytes),
        lists_(Place::pageable, kListBytes),
        media_(Place::pageable, kMediaBlocks * 512),
        sq_(Place::pageable, kEntries * kSqeBytes),
        cq_(Place::pageable, kEntries * kCqeBytes),
        late_(2 * kEntries),
        outstanding_(1024) {
    for (u64 i = 0; i < kDataBytes; ++i) data_.host()[i] = static_cast<u8>(i * 7 + (i >> 9));
    ranges_ = {{kData, kData + kDataBytes, data_.host(), Access::read_write},
               {kLists, kLists + kListBytes, lists_.host(), Access::read},
               {kReadOnly, kReadOnly + kDataBytes, data_.host(), Access::read}};
    job.shape = {.blocks = kMediaBlocks, .lba_bytes = 512, .mdts = 5};
    job.media = media_.host();
    job.link_free_at = &free_at_;
    job.gone = &gone_;
    job.sequences = &sequence_;
    job.orders = &order_;
    job.answers = &answer_;
    job.counts = &counts;
    if (configure) configure(&job);
    if (job.faulty != 0) job.tracks = 1;
    ServerOrder o{};
    o.kind = ServerOrder::Kind::ranges;
    o.ranges = ranges_.data();
    o.range_count = 3;
    orders_.push_back(o);
    o = {};
    o.kind = ServerOrder::Kind::add_cq;
    o.cq.ring = reinterpret_cast<Word16*>(cq_.host());
    o.cq.head_word = &cq_doorbell_;
    o.cq.late = late_.data();
    o.cq.late_room = 2 * kEntries;
    o.cq.entries = kEntries;
    o.cq.phase = 1;
    orders_.push_back(o);
    o = {};
    o.kind = ServerOrder::Kind::add_sq;
    o.sq.ring = reinterpret_cast<const Word16*>(sq_.host());
    o.sq.tail_word = &sq_doorbell_;
    o.sq.outstanding = outstanding_.data();
    o.sq.entries = kEntries;
    o.sq.qid = 9;
    orders_.push_back(o);
  }

  void submit(Sqe e) {
    e.cid = static_cast<u16>(commands_.size());
    commands_.push_back(e);
  }
  /// Data at `offset` of the buffer; its list, if it needs one, in a page of its own.
  void submit(IoOpcode op, u64 lba, u32 blocks, u64 offset, Iova space = kData) {
    const u64 bytes = u64{blocks} * 512;
    const PrpPair p = prp_pair(space + offset, bytes, kModelPage, kLists + list_);
    if (p.list_qwords > 0) {
      write_prp_list(reinterpret_cast<u64*>(lists_.host() + list_), space + offset, bytes, kModelPage,
                     kLists + list_);
      list_ += kModelPage;
    }
    submit(io_command(op, 0, 1, lba, blocks, p.prp1, p.prp2));
  }
  [[nodiscard]] std::size_t submitted() const { return commands_.size(); }
  /// Completions that end the work, if not one for each command.
  void expect(std::size_t completions) { expected_ = completions; }

  /// One step; after the last one the server is told to end.
  void step() {
    if (load_acquire(&answer_.sequence) != sequence_) return;  // an order is on its way
    take_completions();
    if (next_order_ < orders_.size()) {
      give(orders_[next_order_++]);
      return;
    }
    // Rings with different numbers of entries announced at a time: bursts of every size, and a ring that
    // wraps.
    u32 n = 1 + static_cast<u32>(posted_ % 7) * 4;
    while (n-- > 0 && posted_ < commands_.size() && posted_ - answered_ < kEntries / 2 - 1) {
      std::memcpy(sq_.host() + u64{tail_} * kSqeBytes, &commands_[posted_++], kSqeBytes);
      tail_ = (tail_ + 1) % kEntries;
    }
    store_release(&sq_doorbell_, tail_);
    if (seen.size() < expected() || ending_) return;
    ServerOrder o{};
    o.kind = saved_ ? ServerOrder::Kind::end : ServerOrder::Kind::save;
    ending_ = saved_;
    saved_ = true;
    give(o);
  }

  ServerJob job{};
  ServerCounts counts{};
  std::vector<std::vector<u32>> seen;  ///< completions, as words without the phase
  [[nodiscard]] std::vector<u8> data() const { return {data_.host(), data_.host() + kDataBytes}; }
  [[nodiscard]] std::vector<u8> media() const { return {media_.host(), media_.host() + kMediaBlocks * 512}; }
  [[nodiscard]] u8* bytes() { return data_.host(); }

 private:
  [[nodiscard]] std::size_t expected() const { return expected_ == 0 ? commands_.size() : expected_; }
  void give(const ServerOrder& o) {
    order_ = o;
    store_release(&sequence_, sequence_ + 1);
  }
  void take_completions() {
    for (;;) {
      const Word16 w = load16_acquire(reinterpret_cast<const Word16*>(cq_.host()) + head_);
      if ((w.w[3] >> 16 & 1) != phase_) break;
      // How far a burst went depends on timing: sq_head is left out.
      const u32 cid = w.w[3] & 0xffff;
      if (!known_[cid]) ++answered_;
      known_[cid] = true;
      seen.push_back({w.w[0], w.w[2] >> 16, w.w[3] & ~(1u << 16)});
      head_ = (head_ + 1) % kEntries;
      if (head_ == 0) phase_ ^= 1;
      store_release(&cq_doorbell_, head_);
    }
  }

  Region data_, lists_, media_, sq_, cq_;
  std::vector<LateCompletion> late_;
  std::vector<u64> outstanding_;
  std::vector<ServedRange> ranges_;
  std::vector<ServerOrder> orders_;
  std::vector<Sqe> commands_;
  std::size_t next_order_ = 0, posted_ = 0, answered_ = 0, expected_ = 0;
  std::vector<bool> known_ = std::vector<bool>(65536);  ///< cids that were completed once
  bool saved_ = false, ending_ = false;
  u32 tail_ = 0, head_ = 0, phase_ = 1;
  u64 list_ = 0;  ///< where the next list goes
  u64 free_at_ = 0;
  u32 gone_ = 0, sequence_ = 0, sq_doorbell_ = 0, cq_doorbell_ = 0;
  ServerOrder order_{};
  ServerAnswer answer_{};
};

template <u32 Lanes>
void serve(Host& host, u32 warps) {
  auto memory = std::make_unique<ServerMemory>();
  std::barrier<> all(warps);
  const auto one_warp = [&](u32 index) {
    collective<Lanes>([&](const auto& warp) {
      using Warp = std::remove_cvref_t<decltype(warp)>;
      const Threads<Warp> team{index, warps, &all, &warp};
      QueueServer<Warp, HostClock, Threads<Warp>> server(warp, team, host.job, 0, *memory);
      while (server.round() != decltype(server)::Round::ended)
        if (index == 0 && warp.lane() == 0) host.step();
    });
  };
  std::vector<std::thread> others;
  for (u32 i = 1; i < warps; ++i) others.emplace_back(one_warp, i);
  one_warp(0);
  for (std::thread& t : others) t.join();
}

/// Serves what `fill` submits by blocks of several shapes; returns the host that one lane served.
std::unique_ptr<Host> expect_same_by_all(const std::function<void(ServerJob*)>& configure,
                                         const std::function<void(Host&)>& fill) {
  auto first = std::make_unique<Host>(configure);
  fill(*first);
  serve<1>(*first, 1);
  const auto same = [&](const char* shape, const std::function<void(Host&)>& by) {
    SCOPED_TRACE(shape);
    Host h(configure);
    fill(h);
    by(h);
    EXPECT_EQ(h.seen, first->seen);
    EXPECT_TRUE(h.data() == first->data());
    EXPECT_TRUE(h.media() == first->media());
    const auto counts = [](const ServerCounts& c) {
      std::vector<u64> all{c.io.reads,         c.io.writes, c.io.others,    c.io.read_bytes,
                           c.io.written_bytes, c.io.errors, c.io.dma_faults};
      all.insert(all.end(), std::begin(c.injected), std::end(c.injected));
      return all;
    };
    EXPECT_EQ(counts(h.counts), counts(first->counts));
  };
  same("one warp of 8", [](Host& h) { serve<8>(h, 1); });
  same("one warp of 32", [](Host& h) { serve<32>(h, 1); });
  same("three warps of one lane", [](Host& h) { serve<1>(h, 3); });
  same("two warps of 8", [](Host& h) { serve<8>(h, 2); });
  return first;
}

void every_command(Host& h) {
  // Blocks that do not overlap: data of one burst moves in any order.
  for (u32 i = 0; i < 40; ++i) h.submit(IoOpcode::write, u64{i} * 40, 1 + i % 20, u64{i % 20} * 16384);
  h.submit(IoOpcode::write, 2000, 200, 4096);  // a list
  h.submit(IoOpcode::write, 2300, 256, 512);   // a list, from the middle of a page
  h.submit(io_command(IoOpcode::write, 0, 1, 2600, 3, kData + 4096 * 3 - 516,
                      kData + 4096 * 3));  // not of 16 bytes
  for (u32 i = 0; i < kEntries; ++i)
    h.submit(flush_command(0, i % 2 == 0 ? 1 : 7));  // until the writes are over
  h.submit(IoOpcode::compare, 2000, 200, 4096);
  h.submit(IoOpcode::compare, 2000, 100, 8192);
  h.submit(IoOpcode::write_zeroes, 5, 3, 0);
  h.submit(IoOpcode::write, kMediaBlocks - 1, 2, 0);  // past the end
  h.submit(IoOpcode::write, 0, 257, 0);               // past the largest transfer
  h.submit(IoOpcode::read, 0, 8, kDataBytes - 2048);  // past the mapping
  h.submit(IoOpcode::read, 0, 8, 0, kReadOnly);       // not writable
  h.submit(io_command(IoOpcode::read, 0, 2, 0, 1, kData, 0));
  h.submit(io_command(static_cast<IoOpcode>(0x55), 0, 1, 0, 1, kData, 0));
  h.submit(io_command(IoOpcode::read, 0, 1, 0, 1, kData + 1, 0));
  Sqe fused = flush_command(0, 1);
  fused.flags = 1;
  h.submit(fused);
  for (u32 i = 0; i < kEntries; ++i) h.submit(flush_command(0, 1));
  for (u32 i = 0; i < 40; ++i) h.submit(IoOpcode::read, u64{i} * 40, 1 + i % 20, 512 * 1024 + u64{i} * 12288);
  for (u32 i = 0; i < kEntries; ++i) h.submit(flush_command(0, 1));
  h.submit(IoOpcode::read, 2000, 200, 4096 * 10);
  h.submit(IoOpcode::read, 2300, 256, 512 * 1024 + 512);
}

TEST(QueueServer, EveryCommandByAllShapes) {
  const auto h = expect_same_by_all({}, every_command);
  EXPECT_EQ(h->counts.io.writes, 43u);
  EXPECT_EQ(h->counts.io.reads, 42u + 3u) << "reads whose data could not be delivered count too";
  EXPECT_EQ(h->counts.io.errors, kEntries / 2 + 9u);
  EXPECT_EQ(h->counts.io.dma_faults, 2u);
  EXPECT_EQ(std::memcmp(h->bytes() + 512 * 1024 + 512, h->media().data() + 2300 * 512, 256 * 512), 0);
}

TEST(QueueServer, NothingIsStoredByNullMedia) {
  const auto h = expect_same_by_all([](ServerJob* job) { job->media = nullptr; }, every_command);
  EXPECT_EQ(h->counts.io.bytes(), 0u);
  EXPECT_TRUE(h->data() == Host().data());
}

TEST(QueueServer, FaultsAreTheSameByAllShapes) {
  using model::Fault;
  for (const Fault f : {Fault::error, Fault::corrupt, Fault::misplace, Fault::stale, Fault::duplicate}) {
    SCOPED_TRACE(model::name(f));
    const auto faulty = [f](ServerJob* job) {
      job->faulty = 1;
      job->faults.seed = 5;
      job->faults.threshold[static_cast<u32>(f)] = ~u64{0} / 5;
    };
    const auto fill = [&](Host& h) {
      every_command(h);
      if (f == Fault::duplicate) {
        std::size_t twice = 0;
        for (u64 serial = 0; serial < h.submitted(); ++serial)
          twice += h.job.faults.draw(9, serial, model::Direction::none).fault == f ? 1 : 0;
        h.expect(h.submitted() + twice);
      }
    };
    const auto h = expect_same_by_all(faulty, fill);
    EXPECT_GT(h->counts.injected[static_cast<u32>(f)], 0u) << "the run proves nothing";
  }
}

}  // namespace
}  // namespace doorbell::nvme
