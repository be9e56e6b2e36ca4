// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The software NIC fed with any WQE, receive, record and doorbell value, on the fuzzer's own thread: it must
// not crash, hang, or write where its rights do not reach.

#include <algorithm>
#include <cstring>

#include "fuzz/fuzz.hpp"
#include "rdma/model/queue_pair.hpp"
#include "rdma/vendors/bnxt.hpp"
#include "rdma/vendors/ernic.hpp"
#include "rdma/vendors/ionic.hpp"
#include "rdma/vendors/mlx5.hpp"

using namespace doorbell;
using namespace doorbell::rdma;
using fuzz::require;

namespace {

constexpr u64 kRegion = 16 * 1024;

ModelConfig config_from(FuzzedDataProvider& in) {
  ModelConfig c;
  c.own_threads = false;
  c.mtu = in.PickValueInArray<u32>({256, 1024, 4096});
  c.latency_ns = in.ConsumeBool() ? 1 : 0;
  c.loss = in.PickValueInArray<double>({0, 0, 0.3, 1});
  c.rnr_tries = in.ConsumeIntegralInRange<u32>(0, 2);
  c.delay_ns = 1000;
  c.seed = in.ConsumeIntegral<u8>();
  if (in.ConsumeBool())
    for (double& p : c.faults.probability) p = in.ConsumeBool() ? 0.2 : 0;
  c.faults.probability[static_cast<u32>(model::Fault::removal)] = 0;  // it would end every run at once
  return c;
}

/// Memory of one kind of right, all of one byte at first.
struct Memory {
  Memory(NicDevice& d, u32 access, u8 byte) : region(Place::pageable, kRegion) {
    std::memset(region.host(), byte, kRegion);
    registered = d.register_memory(region, access);
  }
  Region region;
  std::unique_ptr<MemoryRegion> registered;
};

template <class F>
class Run {
 public:
  Run(FuzzedDataProvider& in, Provider provider) : in_(in), nic_(config_from(in), provider, "model") {
    options_.timeout = 1;
    options_.min_rnr_timer = 1;
    options_.rnr_retry = in_.ConsumeIntegralInRange<u32>(0, 7);
    options_.retry_count = in_.ConsumeIntegralInRange<u32>(0, 7);
    for (auto& q : queues_)
      q = nic_.create_queue_pair(
          {.sq_requests = 8, .rq_requests = 8, .max_inline = F::kMaxInline == 0 ? 0u : 28u});
    connect();
  }

  void go() {
    for (int step = 0; step < 200 && in_.remaining_bytes() > 0; ++step) {
      const u32 which = in_.ConsumeIntegralInRange<u32>(0, 1);
      switch (in_.ConsumeIntegralInRange<u32>(0, 9)) {
        case 0:
          scribble(which);
          break;
        case 1:
          doorbells(which);
          break;
        case 2:
          receive(which);
          break;
        case 3:
          if (in_.ConsumeIntegralInRange<u32>(0, 7) == 0) connect();
          break;
        case 4:
          give_back(which);
          break;
        default:
          request(which);
      }
      if (in_.ConsumeBool()) poll();
    }
    poll();
    const u8* const c = constant_.region.host();
    require(std::all_of(c, c + kRegion, [](u8 b) { return b == 0x5a; }));
  }

 private:
  void poll() {
    for (int i = 0; i < 4; ++i) (void)nic_.poll();
  }
  /// Both ends from RESET to RTS, to each other or to themselves.
  void connect() {
    const bool loop = in_.ConsumeBool();
    for (auto& q : queues_) {
      q->reset();
      q->initialise(options_);
    }
    for (u32 i = 0; i < 2; ++i) {
      queues_[i]->connect(queues_[loop ? i : 1 - i]->address(), options_);
      m_[i] = queues_[i]->memory(Initiator::cpu);
      sq_[i] = rq_[i] = cq_[i] = {};
      sq_[i].units = m_[i].sq_units;
      rq_[i].units = m_[i].rq_entries;
      cq_[i].units = m_[i].cq_entries;
    }
  }
  const MemoryRegion& memory() {
    const u32 kind = in_.ConsumeIntegralInRange<u32>(0, 3);
    return *(kind == 0 ? constant_ : kind == 1 ? write_only_ : data_).registered;
  }
  /// An address in or near a region, or anywhere.
  u64 address(const MemoryRegion& m) {
    if (in_.ConsumeIntegralInRange<u32>(0, 15) == 0) return in_.ConsumeIntegral<u64>();
    const u64 at = in_.ConsumeIntegralInRange<u64>(0, kRegion + 64);
    return m.iova() + (in_.ConsumeBool() ? at & ~u64{7} : at);
  }
  u32 key(u32 good) {
    return in_.ConsumeIntegralInRange<u32>(0, 15) == 0 ? in_.ConsumeIntegral<u32>() : good;
  }

  void request(u32 i) {
    const MemoryRegion &local = memory(), &remote = memory();
    WorkRequest wr;
    wr.op = static_cast<Op>(in_.ConsumeIntegralInRange<u32>(0, 6));
    wr.signalled = in_.ConsumeBool();
    wr.fence = in_.ConsumeBool();
    wr.bytes = is_atomic(wr.op) ? 8 : in_.ConsumeIntegralInRange<u32>(0, 5000);
    wr.local = address(local);
    wr.lkey = key(local.lkey());
    wr.remote = address(remote);
    wr.rkey = key(remote.rkey());
    wr.operand = in_.ConsumeIntegral<u64>();
    if (F::kMaxInline != 0 && !returns_data(wr.op) && in_.ConsumeIntegralInRange<u32>(0, 3) == 0) {
      wr.inlined = true;
      wr.bytes = in_.ConsumeIntegralInRange<u32>(1, 28);
      wr.payload = payload_;
    }
    RingPosition& at = sq_[i];
    const u32 first = at.slot * F::kUnitParts, all = at.units * F::kUnitParts;
    for (u32 p = 0; p < F::parts(wr); ++p) m_[i].sq[(first + p) % all] = F::part(wr, at, m_[i], p);
    if constexpr (F::kHasTable) m_[i].sq_table[F::table_index(at, m_[i])] = F::table_entry(wr, at, m_[i]);
    const u64 word = F::sq_doorbell_word(wr, at, m_[i]);
    at = advance(at, 1, F::units(wr), packets_of(wr.bytes, m_[i].mtu));
    F::ring_sq(m_[i], at, word);
  }
  void receive(u32 i) {
    const MemoryRegion& m = memory();
    const ReceiveRequest rr{address(m), key(m.lkey()), in_.ConsumeIntegralInRange<u32>(0, 6000)};
    for (u32 p = 0; p < F::kReceiveParts; ++p)
      m_[i].rq[u64{rq_[i].slot} * F::kReceiveParts + p] = F::receive_part(rr, rq_[i], m_[i], p);
    rq_[i] = advance(rq_[i], 1, 1, 0);
    F::ring_rq(m_[i], rq_[i]);
  }
  /// Any word anywhere in the rings.
  void scribble(u32 i) {
    Word16* const ring = in_.ConsumeBool() ? m_[i].sq : m_[i].rq;
    const u32 parts = ring == m_[i].sq ? m_[i].sq_units * F::kUnitParts : m_[i].rq_entries * F::kReceiveParts;
    ring[in_.ConsumeIntegralInRange<u32>(0, parts - 1)].w[in_.ConsumeIntegralInRange<u32>(0, 3)] ^=
        in_.ConsumeBool() ? in_.ConsumeIntegral<u32>() : 1u << in_.ConsumeIntegralInRange<u32>(0, 31);
  }
  void doorbells(u32 i) {
    u64* const words[] = {m_[i].sq_doorbell, m_[i].rq_doorbell, m_[i].cq_doorbell, m_[i].recv_cq_doorbell};
    u32* const records[] = {m_[i].qp_record, m_[i].cq_record, m_[i].recv_cq_record};
    if (in_.ConsumeBool()) {
      store_release(records[in_.ConsumeIntegralInRange<u32>(0, 2)] + in_.ConsumeIntegralInRange<u32>(0, 3),
                    in_.ConsumeBool() ? in_.ConsumeIntegral<u32>() : in_.ConsumeIntegral<u8>());
      return;
    }
    u64* const word = words[in_.ConsumeIntegralInRange<u32>(0, 3)];
    RingPosition at = sq_[i];
    at.slot = in_.ConsumeIntegralInRange<u32>(0, 2 * at.units);
    at.running = at.slot;
    at.pass = in_.ConsumeIntegral<u8>();
    if (in_.ConsumeBool()) F::ring_sq(m_[i], at, in_.ConsumeIntegral<u64>());
    else store64_release(word, in_.ConsumeIntegral<u64>());
  }
  void give_back(u32 i) {
    cq_[i] = advance(cq_[i], 1, in_.ConsumeIntegralInRange<u32>(0, cq_[i].units), 0);
    F::ring_cq(m_[i].cq_record, m_[i].cq_doorbell, cq_[i], m_[i].cqn);
  }

  FuzzedDataProvider& in_;
  ModelNic nic_;
  ConnectionOptions options_;
  Memory data_{nic_, access::all, 1};
  Memory constant_{nic_, access::remote_read, 0x5a};
  Memory write_only_{nic_, access::local_write | access::remote_write, 2};
  std::unique_ptr<QueuePairObject> queues_[2];
  QueuePairMemory m_[2];
  RingPosition sq_[2], rq_[2], cq_[2];
  u8 payload_[64] = {1, 2, 3};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const u8* bytes, std::size_t size) {
  FuzzedDataProvider in(bytes, size);
  switch (in.ConsumeIntegralInRange<u32>(0, 3)) {
    case 0:
      Run<Mlx5>(in, Provider::mlx5).go();
      break;
    case 1:
      Run<Bnxt>(in, Provider::bnxt).go();
      break;
    case 2:
      Run<Ionic>(in, Provider::ionic).go();
      break;
    default:
      Run<Ernic>(in, Provider::ernic).go();
  }
  return 0;
}
