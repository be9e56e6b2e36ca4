// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// An initiator that does not use doorbell's queue pair: it writes WQEs part by part, rings, and reads CQEs
// itself.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>

#include "eventually.hpp"
#include "formats.hpp"
#include "model/faults.hpp"
#include "rdma/model/open.hpp"
#include "rdma/model/queue_pair.hpp"
#include "system/clock.hpp"

namespace doorbell::rdma {

using test::eventually;

/// A completion queue as its consumer sees it.
template <class F>
class RawCq {
 public:
  RawCq() = default;
  RawCq(const Word16* ring, u32* record, u64* doorbell, u32 entries, u32 number)
      : ring_(ring), record_(record), doorbell_(doorbell), number_(number) {
    at_.units = entries;
  }
  /// The next completion, if there is one. Its entry is given back unless `keep`.
  std::optional<Completion> poll(bool keep = false) {
    const Word16* const entry = ring_ + u64{at_.slot} * F::kCqeParts;
    Completion c;
    if constexpr (F::kCqByIndex) {
      if (load_acquire(record_ + 2) == F::ring_index(at_)) return {};
      c = F::decode_cqe(entry[F::kCqePartA], entry[F::kCqePartB], entry[F::kCqePartC]);
    } else {
      const Word16 b = load16_acquire<F::kCqeOwnerWord>(entry + F::kCqePartB);
      if (!F::cqe_valid(b, at_.pass)) return {};
      c = F::decode_cqe(entry[F::kCqePartA], b);
    }
    at_ = advance(at_, 1, 1, 0);
    if (!keep) F::ring_cq(record_, doorbell_, at_, number_);
    return c;
  }
  std::optional<Completion> wait(double seconds = test::kWaitLimitS) {
    std::optional<Completion> c;
    (void)eventually([&] { return (c = poll()).has_value(); }, seconds);
    return c;
  }

 private:
  const Word16* ring_ = nullptr;
  u32* record_ = nullptr;
  u64* doorbell_ = nullptr;
  u32 number_ = 0;
  RingPosition at_;
};

/// Registered memory.
struct Memory {
  Region region;
  std::unique_ptr<MemoryRegion> registered;
  Memory(NicDevice& d, u64 bytes, u32 access = access::all)
      : region(d.allocate(Place::pageable, bytes)), registered(d.register_memory(region, access)) {}
  [[nodiscard]] u8* data() { return region.host(); }
  [[nodiscard]] u64 iova(u64 at = 0) const { return registered->iova() + at; }
  [[nodiscard]] u32 lkey() const { return registered->lkey(); }
  [[nodiscard]] u32 rkey() const { return registered->rkey(); }
  /// The first `bytes` of it, or all.
  void fill(u8 first, u64 bytes = ~u64{0}) {
    for (u64 i = 0; i < std::min(bytes, region.bytes()); ++i)
      data()[i] = static_cast<u8>(first + i * 7 + (i >> 8));
  }
};

template <class F>
class RawQp {
 public:
  explicit RawQp(NicDevice& d, const QueuePairShape& shape = {}) : object(d.create_queue_pair(shape)) {
    begin();
  }

  /// At the start of empty rings.
  void begin() {
    m = object->memory(Initiator::cpu);
    sq = rq = {};
    sq.units = m.sq_units;
    rq.units = m.rq_entries;
    cq = RawCq<F>(m.cq, m.cq_record, m.cq_doorbell, m.cq_entries, m.cqn);
    recv_cq = RawCq<F>(m.recv_cq, m.recv_cq_record, m.recv_cq_doorbell, m.recv_cq_entries, m.recv_cqn);
  }
  /// Writes a WQE and returns the mark that its completion will bear.
  u32 post(const WorkRequest& wr) {
    const u32 first = sq.slot * F::kUnitParts, all = sq.units * F::kUnitParts;
    for (u32 p = 0; p < F::parts(wr); ++p) m.sq[(first + p) % all] = F::part(wr, sq, m, p);
    if constexpr (F::kHasTable) m.sq_table[F::table_index(sq, m)] = F::table_entry(wr, sq, m);
    word = F::sq_doorbell_word(wr, sq, m);
    const u32 modulo = F::mark_modulo(m);
    const u32 mark = F::kMark == Mark::unit ? sq.running : sq.serial + 1;
    sq = advance(sq, 1, F::units(wr), packets_of(wr.bytes, m.mtu));
    return modulo == 0 ? mark : mark % modulo;
  }
  void ring() { F::ring_sq(m, sq, word); }
  u32 submit(const WorkRequest& wr) {
    const u32 mark = post(wr);
    ring();
    return mark;
  }
  void receive(const ReceiveRequest& rr) {
    for (u32 p = 0; p < F::kReceiveParts; ++p)
      m.rq[u64{rq.slot} * F::kReceiveParts + p] = F::receive_part(rr, rq, m, p);
    rq = advance(rq, 1, 1, 0);
    F::ring_rq(m, rq);
  }
  /// Submits and waits for the completion.
  Status run(const WorkRequest& wr) {
    const u32 mark = submit(wr);
    const auto c = cq.wait();
    if (!c) {
      ADD_FAILURE() << F::kName << ": no completion";
      return Status::fatal;
    }
    EXPECT_EQ(c->mark, mark) << F::kName;
    EXPECT_FALSE(c->receive);
    return c->status;
  }
  [[nodiscard]] ModelQueuePair& model() { return dynamic_cast<ModelQueuePair&>(*object); }

  std::unique_ptr<QueuePairObject> object;
  QueuePairMemory m;
  RingPosition sq, rq;
  RawCq<F> cq, recv_cq;
  u64 word = 0;
};

inline ConnectionOptions quick() {
  // Short waits: a test sees each of them.
  return {.timeout = 8, .retry_count = 3, .rnr_retry = 3, .min_rnr_timer = 1};
}

template <class F>
struct Rig {
  explicit Rig(const std::string& spec = "model:threads=1", const model::FaultRates& faults = {},
               u64 seed = 1)
      : device(open_model(
            {.spec = tested(spec), .provider = provider_of<F>(), .use = {.faults = faults, .seed = seed}})) {}

  RawQp<F> loop(const ConnectionOptions& o = quick(), const QueuePairShape& shape = {}) {
    RawQp<F> q(*device, shape);
    q.object->initialise(o);
    q.object->connect(q.object->address(), o);
    q.begin();
    return q;
  }
  struct Pair {
    RawQp<F> a, b;
  };
  Pair pair(const ConnectionOptions& oa = quick(), const ConnectionOptions& ob = quick(),
            const QueuePairShape& shape = {}) {
    Pair p{RawQp<F>(*device, shape), RawQp<F>(*device, shape)};
    join(p, oa, ob);
    return p;
  }
  static void join(Pair& p, const ConnectionOptions& oa = quick(), const ConnectionOptions& ob = quick()) {
    p.a.object->initialise(oa);
    p.b.object->initialise(ob);
    p.a.object->connect(p.b.object->address(), oa);
    p.b.object->connect(p.a.object->address(), ob);
    p.a.begin();
    p.b.begin();
  }
  [[nodiscard]] u64 counter(const std::string& key) { return device->counters().at(key).template get<u64>(); }
  [[nodiscard]] u64 injected(const std::string& key) {
    return device->counters().at("injected").at(key).template get<u64>();
  }
  std::unique_ptr<NicDevice> device;
};

inline WorkRequest request(Op op, const Memory& local, const Memory& remote, u32 bytes, u64 local_at = 0,
                           u64 remote_at = 0) {
  return {.op = op,
          .bytes = bytes,
          .local = local.iova(local_at),
          .lkey = local.lkey(),
          .rkey = remote.rkey(),
          .remote = remote.iova(remote_at)};
}

inline ReceiveRequest buffer(const Memory& m, u32 bytes, u64 at = 0) {
  return {.local = m.iova(at), .lkey = m.lkey(), .bytes = bytes};
}

}  // namespace doorbell::rdma
