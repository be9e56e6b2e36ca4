// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "nvme/model/kernel_service.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <algorithm>

#include "nvme/model/queue_server.hpp"
#include "system/clock.hpp"

namespace doorbell::nvme {

namespace {

constexpr u32 kRangesAtFirst = 4096;

struct OneThread {
  [[nodiscard]] u32 warp() const { return 0; }
  [[nodiscard]] u32 warps() const { return 1; }
  void sync() const {}
};

/// The parts that a server's thread needs, in one place.
struct HostServer {
  HostServer(const ServerJob& job, u32 index)
      : memory(std::make_unique<ServerMemory>()), server(lane, team, job, index, *memory) {}
  OneLane lane;
  OneThread team;
  std::unique_ptr<ServerMemory> memory;
  QueueServer<OneLane, HostClock, OneThread> server;
};

}  // namespace

KernelService::KernelService(ModelShared& shared, SoftwareAddressSpace& space, std::shared_ptr<gpu::Gpu> gpu,
                             const Region& registers)
    : shared_(shared),
      space_(space),
      blocks_(gpu, model::Servers::fitting(shared.config.threads, gpu.get()), sizeof(ServerOrder)),
      registers_(registers),
      servers_(blocks_.count()) {
  if (gpu && shared.config.rung_by_gpu) doorbells_ = Region(Place::gpu, registers.bytes(), gpu);
  if (gpu && shared.config.media == ModelConfig::Media::ram)
    media_ = Region(Place::gpu, shared.media.capacity(), gpu);
  start();
  // From here on nothing throws: the kernel runs.
  space_.on_change([this](std::span<const SoftwareAddressSpace::Range> ranges) { take_ranges(ranges); });
}

KernelService::~KernelService() {
  space_.on_change(nullptr);
  const ServerOrder end{.kind = ServerOrder::Kind::end};
  blocks_.end(&end);
}

void KernelService::start() {
  const u64 gone_at = model::Servers::lines(sizeof(ServerJob));
  const u64 link_at = gone_at + model::Servers::kLine;
  counts_at_ = link_at + model::Servers::kLine;
  state_ = blocks_.allocate(counts_at_ + servers_.size() * sizeof(ServerCounts));
  ServerJob job{};
  job.faulty = shared_.faults.active() ? 1 : 0;
  job.tracks = shared_.tracks() ? 1 : 0;
  job.shape = shared_.shape;
  job.media = blocks_.gpu() ? media_.device() : shared_.media.bytes();
  job.faults = shared_.faults.rule();
  job.link = shared_.link.rule();
  job.link_free_at = blocks_.reach<u64>(state_, link_at);
  job.gone = blocks_.reach<u32>(state_, gone_at);
  job.sequences = blocks_.sequences();
  job.orders = blocks_.orders<ServerOrder>();
  job.answers = blocks_.answers<ServerAnswer>();
  job.counts = blocks_.reach<ServerCounts>(state_, counts_at_);
  state_.write(0, &job, sizeof job);
  if (const auto& gpu = blocks_.gpu(); gpu != nullptr) {
    // One warp for queues alone; more where data moves, so that enough loads are under way.
    const u32 threads = job.media != nullptr ? kServerThreads : static_cast<u32>(gpu->info().warp_size);
    blocks_.launch("doorbell_nvme_device", threads, sizeof(ServerMemory), state_);
    return;
  }
  blocks_.start_threads("nvme-kernel", [this](u32 server) {
    return [s = std::make_shared<HostServer>(*reinterpret_cast<const ServerJob*>(state_.host()), server)] {
      return s->server.round() == decltype(s->server)::Round::worked;
    };
  });
}

u32 KernelService::order(u32 first, u32 count, const ServerOrder& order) {
  const std::scoped_lock lock(order_mutex_);  // until the result has been read
  if (!blocks_.order(first, count, &order)) {
    give_up();
    return 0;
  }
  return load_relaxed(&answer(first + count - 1).result);
}

void KernelService::give_up() {
  blocks_.give_up();
  shared_.fatal.store(true, std::memory_order_release);
}

Region KernelService::set_aside(u64 bytes) {
  try {
    return blocks_.allocate(bytes);
  } catch (const std::exception&) {
    give_up();
    return {};
  }
}

void KernelService::take_ranges(std::span<const SoftwareAddressSpace::Range> ranges) {
  ServerOrder take{.kind = ServerOrder::Kind::ranges};
  {
    const std::scoped_lock lock(mutex_);
    if (blocks_.deaf()) return;  // a server may still read either table
    ranges_.clear();
    for (const SoftwareAddressSpace::Range& r : ranges)
      if (u8* const base = blocks_.gpu() ? r.device : r.gpu ? nullptr : r.base; base != nullptr)
        ranges_.push_back({r.begin, r.end, base, r.access});
    newest_table_ ^= 1;
    Region& table = range_tables_[newest_table_];
    const u64 bytes = ranges_.size() * sizeof(ServedRange);
    try {
      if (table.bytes() < bytes)
        table = blocks_.allocate(std::max<u64>(2 * bytes, kRangesAtFirst * sizeof(ServedRange)));
      if (bytes > 0) table.write(0, ranges_.data(), bytes);
    } catch (const std::exception&) {
      give_up();
      return;
    }
    take.range_count = static_cast<u32>(ranges_.size());
    take.ranges = blocks_.reach<const ServedRange>(table);
  }
  order_all(take);
}

u8* KernelService::find(Iova iova, u64 bytes) {
  const std::scoped_lock lock(mutex_);
  const RangeTable table{ranges_.data(), static_cast<u32>(ranges_.size())};
  u32 hint = 0;
  return table.find(iova, bytes, Access{}, hint);  // what the queue needs has been checked
}

u32 KernelService::slot_of(std::vector<Slot>& slots, u16 qid) {
  const auto it = std::ranges::find(slots, qid, &Slot::qid);
  return static_cast<u32>(it - slots.begin());
}

const u32* KernelService::doorbell_word(const QueueRequest& r) {
  if (r.shadow != 0) return reinterpret_cast<const u32*>(find(r.shadow, sizeof(u32)));
  if (doorbells_.bytes() == 0) return blocks_.reach<const u32>(registers_, r.doorbell);
  const u32 none = 0;
  try {
    doorbells_.write(r.doorbell, &none, sizeof none);
  } catch (const std::exception&) {
    return nullptr;
  }
  return reinterpret_cast<const u32*>(doorbells_.device() + r.doorbell);
}

u32 KernelService::take_slot(std::vector<Slot>& slots, u16 qid, u64 tracking_bytes) {
  const u32 at = slot_of(slots, 0);
  slots[at].qid = qid;
  if (shared_.tracks()) slots[at].memory = set_aside(tracking_bytes);
  return at;
}

void KernelService::add(u32 server, const ServerOrder& add, bool found) {
  if (found) (void)order(server, 1, add);
  else shared_.fatal.store(true, std::memory_order_release);
}

void KernelService::add_cq(const QueueRequest& r) {
  const u32 server = server_of_cq(r.qid);
  std::vector<Slot>& slots = servers_[server].cqs;
  ServerOrder order{.kind = ServerOrder::Kind::add_cq};
  const u32 late_room = 2 * r.entries;
  order.slot = take_slot(slots, r.qid, late_room * sizeof(LateCompletion));
  const Region& memory = slots[order.slot].memory;
  order.cq.ring = reinterpret_cast<Word16*>(find(r.iova, u64{r.entries} * kCqeBytes));
  order.cq.head_word = doorbell_word(r);
  order.cq.late = blocks_.reach<LateCompletion>(memory);
  order.cq.late_room = shared_.tracks() ? late_room : 0;
  order.cq.entries = r.entries;
  order.cq.phase = 1;
  order.cq.bar = r.shadow == 0 && doorbells_.bytes() == 0 ? 1 : 0;
  add(server, order, order.cq.ring != nullptr && order.cq.head_word != nullptr);
}

void KernelService::add_sq(const QueueRequest& r) {
  const u32 server = server_of_cq(r.cqid);
  std::vector<Slot>& slots = servers_[server].sqs;
  ServerOrder order{.kind = ServerOrder::Kind::add_sq};
  order.slot = take_slot(slots, r.qid, kCidWords * sizeof(u64));
  const Region& memory = slots[order.slot].memory;
  order.sq.ring = reinterpret_cast<const Word16*>(find(r.iova, u64{r.entries} * kSqeBytes));
  order.sq.tail_word = doorbell_word(r);
  order.sq.outstanding = blocks_.reach<u64>(memory);
  order.sq.entries = r.entries;
  order.sq.cq = slot_of(servers_[server].cqs, r.cqid);
  order.sq.qid = r.qid;
  add(server, order, order.sq.ring != nullptr && order.sq.tail_word != nullptr);
}

void KernelService::remove(ServerOrder::Kind kind, u32 server, std::vector<Slot>& slots, u16 qid) {
  const u32 slot = slot_of(slots, qid);
  if (slot == kServedQueues) return;
  (void)order(server, 1, {.kind = kind, .slot = slot});
  if (!blocks_.deaf()) slots[slot] = {};  // else the server may still use its memory
}

void KernelService::delete_sq(u16 qid, u16 cqid) {
  const u32 server = server_of_cq(cqid);
  remove(ServerOrder::Kind::delete_sq, server, servers_[server].sqs, qid);
}

void KernelService::delete_cq(u16 qid) {
  const u32 server = server_of_cq(qid);
  remove(ServerOrder::Kind::delete_cq, server, servers_[server].cqs, qid);
}

void KernelService::ring_in_memory(const QueueRequest& r) {
  using Kind = ServerOrder::Kind;
  const bool sq = r.cqid != 0;
  const u32 server = server_of_cq(sq ? r.cqid : r.qid);
  ServerOrder order{.kind = sq ? Kind::move_sq_doorbell : Kind::move_cq_doorbell};
  order.slot = slot_of(sq ? servers_[server].sqs : servers_[server].cqs, r.qid);
  order.doorbell = doorbell_word(r);
  add(server, order, order.slot != kServedQueues && order.doorbell != nullptr);
}

bool KernelService::abort(u16 sqid, u16 cqid, u16 cid) {
  const u32 server = server_of_cq(cqid);
  const u32 slot = slot_of(servers_[server].sqs, sqid);
  return slot != kServedQueues &&
         order(server, 1, {.kind = ServerOrder::Kind::abort, .slot = slot, .cid = cid}) != 0;
}

void KernelService::drop_all() {
  order_all({.kind = ServerOrder::Kind::drop_all});
  if (blocks_.deaf()) return;
  for (Server& s : servers_) {
    for (Slot& q : s.sqs) q = {};
    for (Slot& q : s.cqs) q = {};
  }
}

void KernelService::collect() {
  for (u32 i = 0; i < servers_.size(); ++i) {
    const u32 bad = load_relaxed(&answer(i).bad_doorbells);
    shared_.invalid_doorbell_values.fetch_add(bad - servers_[i].bad_doorbells, std::memory_order_relaxed);
    servers_[i].bad_doorbells = bad;
    if (load_acquire(&answer(i).removed) != 0 && !shared_.presence.gone())
      shared_.faults.remove(shared_.presence);
  }
}

IoTotals KernelService::totals() {
  order_all({.kind = ServerOrder::Kind::save});
  IoTotals t;
  const std::scoped_lock lock(mutex_);
  for (u32 i = 0; i < servers_.size(); ++i) {
    ServerCounts c = servers_[i].counted;
    try {
      if (!blocks_.deaf()) state_.read(counts_at_ + i * sizeof c, &c, sizeof c);
    } catch (const std::exception&) {
      give_up();
    }
    for (u32 k = 0; k < model::kFaultKinds; ++k)
      shared_.faults.count(static_cast<model::Fault>(k), c.injected[k] - servers_[i].counted.injected[k]);
    servers_[i].counted = c;
    t += c.io;
  }
  return t;
}

}  // namespace doorbell::nvme
