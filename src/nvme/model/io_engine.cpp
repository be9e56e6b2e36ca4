// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "nvme/model/io_engine.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "nvme/model/ring_memory.hpp"
#include "system/clock.hpp"

namespace doorbell::nvme {

using model::Fault;

namespace {

constexpr u32 kBurst = 64;  // entries taken from one queue in a round
constexpr u32 kPrefetch = 12;
constexpr u32 kIdlePollsToSleep = 4096;  // before a queue with shadow doorbells asks for register writes
constexpr u32 kAsleepShadowPolls = 64;
constexpr u32 kRoundsPerHeadLook = 4096;
constexpr u64 kVerifiedAtOnce = u64{1} << 20;

}  // namespace

/// How a thread moves a command's data; see run_command(). GPU memory has its bytes after the next commit.
struct IoEngine::Data {
  IoEngine& engine;
  Media& storage = engine.shared_.media;
  model::DmaEngine& dma = engine.dma_;
  std::vector<u8>& scratch = engine.scratch_;
  const NamespaceShape& shape = engine.shared_.shape;
  const RecentWrites& recent = engine.recent_writes_;

  [[nodiscard]] bool keeps() const { return storage.bytes() != nullptr; }
  [[nodiscard]] bool flush() { return storage.flush(); }
  [[nodiscard]] bool lost() const { return storage.lost(); }
  [[nodiscard]] u8* blocks(u64 at, u64 bytes, bool writes) {
    if (writes ? storage.reserve(at, bytes) : storage.loadable(at, bytes)) return storage.bytes() + at;
    if (writes) return nullptr;
    std::vector<u8>& copy = engine.stored_;
    copy.resize(bytes);
    return storage.read(at, copy.data(), bytes) ? copy.data() : nullptr;
  }

  template <class Each>
  u16 walk(const Sqe& e, u64 bytes, Access want, Each each) {
    u64 done = 0;
    const auto list = [this](Iova at, u32 n, u64* out) { return engine.read_list(at, n, out); };
    const auto page = [&](Iova place, u64 n) {
      const u64 at = done;
      done += n;
      return each(place, at, n);
    };
    if (!engine.shared_.foreign_memory || !is_far(e.prp1, want)) [[likely]]
      return walk_prps(e.prp1, e.prp2, bytes, kModelPage, list, page);
    // Each access is a message, so pages that follow each other are one piece. Not so in this process, where
    // the copy of a long piece takes a third more time than that of its pages.
    Iova begin = 0;
    u64 have = 0;
    const u16 st = walk_prps(e.prp1, e.prp2, bytes, kModelPage, list, [&](Iova place, u64 n) {
      if (have != 0 && place == begin + have) {
        have += n;
        return true;
      }
      if (have != 0 && !page(begin, have)) return false;
      begin = place;
      have = n;
      return true;
    });
    if (st != status::success) return st;
    return page(begin, have) ? status::success : status::data_transfer_error;
  }
  /// In another process, which is asked for it.
  [[nodiscard]] bool is_far(Iova place, Access want) {
    const auto there = dma.look(place, 1, want);
    return there.reachable && there.host == nullptr;
  }
  [[nodiscard]] bool reaches(Iova place, u64 n, Access want) { return dma.reachable(place, n, want); }
  [[nodiscard]] bool give(Iova to, const u8* from, u64 n, u64 bad) {
    if (bad >= n) [[likely]]
      return dma.deliver(to, from, n);
    scratch.assign(from, from + n);
    scratch[bad] ^= model::InjectedFault::kDamage;
    return dma.deliver(to, scratch.data(), n);
  }
  [[nodiscard]] bool take(u8* to, Iova from, u64 n) { return dma.fetch(from, to, n); }
  u16 compare(const Sqe& e, u64 bytes, const u8* with) {
    scratch.resize(bytes);
    const u16 st = walk(e, bytes, Access::read,
                        [this](Iova from, u64 at, u64 n) { return take(scratch.data() + at, from, n); });
    if (st != status::success) return st;
    if (!dma.commit()) return status::data_transfer_error;
    return std::memcmp(scratch.data(), with, bytes) != 0 ? status::compare_failure : status::success;
  }
  void zero(u8* at, u64 bytes) { std::memset(at, 0, bytes); }
};

IoEngine::IoEngine(ModelShared& shared, const SoftwareAddressSpace& space, model::DmaAgent* agent, u32 index)
    : shared_(shared),
      dma_(space, agent, index),
      faults_(shared.faults),
      tracks_(shared.tracks()),
      settle_all_(shared.config.media == ModelConfig::Media::file ? 0xffff : 0),
      interrupts_(shared.interrupts.connected() ? &shared.interrupts : nullptr) {
  // A client may answer only after a change of its memory, which waits for this thread. No address of that
  // memory is kept over the wait: entries are copies, and each access is a look-up of its own.
  dma_.while_waiting([this] { serve_changes(); });
}

bool IoEngine::poll() {
  set_up_.serve();
  serve_changes();
  if (shared_.presence.gone() || shared_.fatal.load(std::memory_order_relaxed)) return false;
  // Without this, heads are read only when a queue lacks room, and at that time every head is possible.
  if (++rounds_ % kRoundsPerHeadLook == 0)
    for (CompletionQueue& q : cqs_) take_head(q);
  fetched_.clear();
  for (u32 i = 0; i < sqs_.size(); ++i) {
    SubmissionQueue& q = sqs_[i];
    u32 n = new_entries(q);
    if (n == 0) continue;
    n = std::min({n, kBurst, q.entries - q.head});  // not past the ring's end
    if (q.host == nullptr) {
      if (staging_.size() <= i) staging_.resize(i + 1);
      staging_[i].resize(kBurst);
      if (!fetch_entries(q, n, staging_[i].data())) return fail();
    } else {
      for (u32 ahead = 0; ahead < std::min(n, kPrefetch); ++ahead)
        __builtin_prefetch(q.host + q.head + ahead);
    }
    fetched_.push_back({i, q.head, n});
  }
  if (dma_.pending() && !dma_.commit()) return fail();
  for (const Fetched& f : fetched_) {
    SubmissionQueue& q = sqs_[f.sq];
    const Sqe* entries = q.host != nullptr ? q.host + f.first : staging_[f.sq].data();
    q.head = f.first + f.count == q.entries ? 0 : f.first + f.count;
    for (u32 i = 0; i < f.count; ++i) {
      // Another processor has written these lines, so each load would miss; prefetching hides all but the
      // first few.
      if (i + kPrefetch < f.count) __builtin_prefetch(entries + i + kPrefetch);
      execute(q, entries[i]);
      if (shared_.presence.gone()) return true;
    }
  }
  // Data is moved before the completion that announces it.
  if (dma_.pending() && !dma_.commit()) return fail();
  for (const Done& d : done_) post(cqs_[d.cq], d.cqe);
  const bool posted = !done_.empty();
  const bool late = !later_.empty() && post_due();
  bool unstalled = false;
  for (CompletionQueue& q : cqs_) unstalled = post_held(q) || unstalled;
  if (dma_.pending() && !dma_.commit()) return fail();
  if (interrupts_ != nullptr) [[unlikely]]
    raise_interrupts();
  done_.clear();
  return posted || late || unstalled || !fetched_.empty();
}

/// Behind everything that makes a round's entries visible.
[[gnu::noinline]] void IoEngine::raise_interrupts() {
  for (const Done& d : done_) cqs_[d.cq].fresh = true;
  const u32 rounds = interrupts_->rounds();
  const bool again = rounds != again_seen_;
  again_seen_ = rounds;
  for (CompletionQueue& q : cqs_) {
    if (q.vector < 0) continue;
    if (again && !q.fresh) {
      take_head(q);
      q.fresh = q.head != q.tail;
    }
    if (!q.fresh) continue;
    q.fresh = false;
    interrupts_->raise(static_cast<u16>(q.vector));
  }
}

[[gnu::noinline]] bool IoEngine::fetch_entries(const SubmissionQueue& q, u32 n, Sqe* to) {
  const u64 bytes = u64{n} * kSqeBytes;
  const Iova from = q.iova + u64{q.head} * kSqeBytes;
  if (!q.pages) return dma_.fetch(from, to, bytes);
  for (u64 done = 0; done < bytes;) {
    const u64 here = std::min(bytes - done, kModelPage - (from + done) % kModelPage);
    if (!dma_.fetch(from + done, reinterpret_cast<u8*>(to) + done, here)) return false;
    done += here;
  }
  return true;
}

void IoEngine::find_memory(CompletionQueue& q) {
  q.ring = reinterpret_cast<Word16*>(find_ring(dma_, q.iova, u64{q.entries} * kCqeBytes, Access::write).host);
  u8* const shadow = q.head_shadow != 0 ? dma_.look(q.head_shadow, sizeof(u32), Access::read).host : nullptr;
  q.bar = shadow == nullptr ? 1 : 0;
  q.head_word = shadow != nullptr ? reinterpret_cast<const u32*>(shadow) : q.head_register;
}

void IoEngine::find_memory(SubmissionQueue& q) {
  const RingMemory ring = find_ring(dma_, q.iova, u64{q.entries} * kSqeBytes, Access::read);
  // Entries that others can change meanwhile are copied before they are looked at.
  q.host = shared_.foreign_memory ? nullptr : reinterpret_cast<const Sqe*>(ring.host);
  q.pages = ring.pages;
  q.tail_shadow = nullptr;
  if (q.shadow == 0) return;
  u8* const shadow = dma_.look(q.shadow, sizeof(u32), Access::read).host;
  u8* const event = dma_.look(q.event, sizeof(u32), Access::write).host;
  if (shadow == nullptr || event == nullptr) return;  // then the register alone rings
  q.tail_shadow = reinterpret_cast<const u32*>(shadow);
  q.eventidx = reinterpret_cast<u32*>(event);
  q.last_register = load_relaxed(q.tail_register);
  q.idle_polls = 0;
  q.needs_register = false;
}

void IoEngine::find_queues() {
  for (CompletionQueue& q : cqs_) find_memory(q);
  for (SubmissionQueue& q : sqs_) find_memory(q);
}

void IoEngine::ring_in_memory(const QueueRequest& r) {
  if (r.cqid != 0) {
    SubmissionQueue* const q = find_sq(r.qid);
    q->shadow = r.shadow;
    q->event = r.eventidx;
    find_memory(*q);
  } else {
    CompletionQueue* const q = find_cq(r.qid);
    q->head_shadow = r.shadow;
    find_memory(*q);
  }
}

u32 IoEngine::read_tail(SubmissionQueue& q) {
  // The acquire orders the tail before later loads of the entries, which the host wrote before the tail.
  if (q.tail_shadow == nullptr) return load_acquire(q.tail_register);
  if (!q.needs_register) {
    const u32 tail = load_acquire(q.tail_shadow);
    if (tail != q.tail) {
      q.idle_polls = 0;
    } else if (++q.idle_polls >= kIdlePollsToSleep) {
      // The event index is written first, then the shadow is read again. The host does the opposite, so that
      // one of the two sees the other's store.
      q.idle_polls = 0;
      q.needs_register = true;
      return store_then_load(q.eventidx, tail, q.tail_shadow);
    }
    return tail;
  }
  // Register memory does not show a write of the old value, so the shadow is read at intervals too.
  const bool rung = load_relaxed(q.tail_register) != q.last_register;
  if (!rung && ++q.idle_polls % kAsleepShadowPolls != 0) return q.tail;
  q.last_register = load_relaxed(q.tail_register);
  const u32 tail = load_acquire(q.tail_shadow);
  if (tail != q.tail) q.needs_register = false;
  return tail;
}

u32 IoEngine::new_entries(SubmissionQueue& q) {
  if (!q.take_tail(read_tail(q))) shared_.invalid_doorbell_values.fetch_add(1, std::memory_order_relaxed);
  return q.announced();
}

void IoEngine::execute(SubmissionQueue& q, const Sqe& e) {
  const u64 serial = q.fetched++;
  Outcome o;
  const model::FaultDraw* const faults = faults_.active() ? &faults_.rule() : nullptr;
  if (!tracks_ || !ends_early(faults, q.qid, serial, q.outstanding.data(), e, o)) {
    Data data{*this};
    run_command(data, e, o);
  } else if (o.injected.fault == Fault::removal) {
    if (faults_.remove(shared_.presence)) faults_.report(Fault::removal, q.qid, serial);
    return;
  }
  if ((o.status | settle_all_) != status::success) [[unlikely]]
    o = settle(q, e, o);
  o.add_work_to(counters_);
  if (faults != nullptr) {
    if (o.happened) faults_.count(o.injected.fault);
    if (o.happened || model::FaultDraw::of_completion(o.injected.fault))
      faults_.report(o.injected.fault, q.qid, serial);
    if (o.stored) recent_writes_.add(lba_of(e), blocks_of(e));
  }
  const Cqe c = completion_of(e.cid, q.qid, q.head, o.status);

  if (!tracks_) [[likely]] {
    done_.push_back({q.cq_index, c});
    return;
  }
  u64 due = 0;
  if (shared_.link.limited()) {
    const u64 bytes = u64{blocks_of(e)} * shared_.shape.lba_bytes;
    due = shared_.link.finish_time(wall_ns(), bytes);
  }
  const model::CompletionReport t = faults_.apply_to_completion(o.injected, due, wall_ns);
  if (t.times == 0) set_outstanding(q.outstanding.data(), e.cid, true);
  for (u32 i = 0; i < t.times; ++i) complete(q, c, t.due_ns);
}

/// By value: what is passed by reference is kept in memory for every command.
[[gnu::cold, gnu::noinline]] Outcome IoEngine::settle(const SubmissionQueue& q, const Sqe& e, Outcome o) {
  if (o.status == status::invalid_opcode) {
    Data data{*this};
    run_more(data, e, o);
  }
  if (settle_all_ != 0) write_through(e, o);
  if (o.status == status::success) return o;
  counters_.errors += 1;
  shared_.errors.add(q.qid, &e, o.status, lba_of(e));
  return o;
}

void IoEngine::write_through(const Sqe& e, Outcome& o) {
  const auto op = static_cast<IoOpcode>(e.opcode);
  if (o.status != status::success || (op != IoOpcode::write && op != IoOpcode::write_zeroes)) return;
  if ((e.cdw12 & kForceUnitAccess) == 0 && !shared_.write_through.load(std::memory_order_relaxed)) return;
  if (dma_.pending() && !dma_.commit()) o.status = status::data_transfer_error;
  else if (const u64 block = shared_.shape.lba_bytes;
           !shared_.media.flush(lba_of(e) * block, u64{blocks_of(e)} * block))
    o.status = status::write_fault;
}

void IoEngine::run_more(Data& data, const Sqe& e, Outcome& o) {
  const auto op = static_cast<IoOpcode>(e.opcode);
  if (op != IoOpcode::dataset_management && op != IoOpcode::verify) return;
  o.kind = Outcome::Kind::other;
  if (e.nsid != 1) o.status = status::invalid_namespace;
  else if (op == IoOpcode::verify) o.status = verify(data, e);
  else o.status = deallocate(data, e);
}

u16 IoEngine::verify(Data& data, const Sqe& e) {
  if (!shared_.shape.holds(lba_of(e), blocks_of(e))) return status::lba_out_of_range;
  if (!data.keeps()) return status::success;
  const u64 begin = lba_of(e) * shared_.shape.lba_bytes;
  const u64 end = begin + u64{blocks_of(e)} * shared_.shape.lba_bytes;
  for (u64 at = begin; at < end; at += kVerifiedAtOnce) {
    const u64 here = std::min(kVerifiedAtOnce, end - at);
    if (data.blocks(at, here, false) == nullptr || data.lost()) return status::unrecovered_read;
  }
  return status::success;
}

u16 IoEngine::deallocate(Data& data, const Sqe& e) {
  struct Range {
    u32 attributes;
    u32 blocks;
    u64 lba;
  };
  constexpr u32 kDeallocate = 4;  // in cdw11; the other attributes are hints
  Range ranges[256];
  const u32 n = (e.cdw10 & 0xff) + 1;
  const u16 st = data.walk(e, n * sizeof(Range), Access::read, [&](Iova from, u64 at, u64 bytes) {
    return data.take(reinterpret_cast<u8*>(ranges) + at, from, bytes);
  });
  if (st != status::success) return st;
  if (dma_.pending() && !dma_.commit()) return status::data_transfer_error;
  for (u32 i = 0; i < n; ++i)
    if (ranges[i].blocks != 0 && !shared_.shape.holds(ranges[i].lba, ranges[i].blocks))
      return status::lba_out_of_range;
  if ((e.cdw11 & kDeallocate) == 0 || !data.keeps()) return status::success;
  const u64 block = shared_.shape.lba_bytes;
  for (u32 i = 0; i < n; ++i)
    if (ranges[i].blocks != 0 && !shared_.media.deallocate(ranges[i].lba * block, ranges[i].blocks * block))
      return status::write_fault;
  return status::success;
}

bool IoEngine::read_list(Iova list, u32 qwords, u64* out) {
  if (!dma_.fetch(list, out, u64{qwords} * 8)) return false;
  return !dma_.pending() || dma_.host(list, 8, Access::read) != nullptr || dma_.commit();
}

void IoEngine::complete(SubmissionQueue& q, const Cqe& e, u64 due_ns) {
  if (due_ns == 0) {
    done_.push_back({q.cq_index, e});
    return;
  }
  set_outstanding(q.outstanding.data(), e.cid, true);
  later_.push(due_ns, {q.qid, e});
}

bool IoEngine::post_due() {
  const u64 now = wall_ns();
  bool any = false;
  while (later_.due(now)) {
    const Later l = later_.pop();
    SubmissionQueue* sq = find_sq(l.sqid);
    if (sq == nullptr) continue;
    set_outstanding(sq->outstanding.data(), l.cqe.cid, false);
    Cqe c = l.cqe;
    c.sq_head = static_cast<u16>(sq->head);
    post(cqs_[sq->cq_index], c);
    cqs_[sq->cq_index].fresh = true;
    any = true;
  }
  return any;
}

bool IoEngine::fail() {
  shared_.fatal.store(true, std::memory_order_release);
  return false;
}

void IoEngine::take_head(CompletionQueue& q) {
  // The acquire orders the host's reads of freed entries before the controller's new stores to them.
  if (!q.take_head(load_acquire(q.head_word)))
    shared_.invalid_doorbell_values.fetch_add(1, std::memory_order_relaxed);
}

bool IoEngine::full(CompletionQueue& q) {
  if (q.free() == 0) [[unlikely]]
    take_head(q);
  return q.free() == 0;
}

void IoEngine::post(CompletionQueue& q, const Cqe& e) {
  if (!q.waiting.empty() || full(q)) [[unlikely]] {
    counters_.cq_full += 1;
    q.waiting.push_back(e);  // an entry that the host has not given back is kept
    return;
  }
  write_entry(q, e);
}

bool IoEngine::post_held(CompletionQueue& q) {
  bool any = false;
  for (; !q.waiting.empty() && !full(q); any = true) {
    write_entry(q, q.waiting.front());
    q.waiting.pop_front();
    q.fresh = true;
  }
  return any;
}

void IoEngine::write_entry(CompletionQueue& q, const Cqe& e) {
  if (q.ring != nullptr) {
    q.post(e);
    return;
  }
  const Word16 w = q.next(e);
  // Of a ring in pieces each entry lies in one of them; its last word goes last there, too.
  if (u8* const at = dma_.host(q.iova + u64{q.tail} * kCqeBytes, sizeof w, Access::write); at != nullptr) {
    store16_release(reinterpret_cast<Word16*>(at), w);
    q.advance(1);
    return;
  }
  if (dma_.deliver(q.iova + u64{q.tail} * kCqeBytes, &w, sizeof w)) q.advance(1);
  else (void)fail();
}

SubmissionQueue* IoEngine::find_sq(u16 qid) {
  const auto it = std::find_if(sqs_.begin(), sqs_.end(), [&](const auto& q) { return q.qid == qid; });
  return it == sqs_.end() ? nullptr : &*it;
}

CompletionQueue* IoEngine::find_cq(u16 qid) {
  const auto it = std::find_if(cqs_.begin(), cqs_.end(), [&](const auto& q) { return q.qid == qid; });
  return it == cqs_.end() ? nullptr : &*it;
}

void IoEngine::track() {
  if (std::exchange(tracks_, true)) return;
  // Whatever was fetched before has ended.
  for (SubmissionQueue& q : sqs_) q.outstanding.assign(kCidWords, 0);
}

void IoEngine::add(CompletionQueue q) {
  cqs_.push_back(std::move(q));
}

void IoEngine::add(SubmissionQueue q) {
  q.cq_index = static_cast<u32>(find_cq(q.cqid) - cqs_.data());
  if (tracks_) q.outstanding.assign(kCidWords, 0);
  sqs_.push_back(std::move(q));
}

void IoEngine::delete_sq(u16 qid) {
  SubmissionQueue* q = find_sq(qid);
  if (q == nullptr) return;
  // The host may have made room since the last round, and looks no more after the answer to the deletion.
  // Held completions that are due therefore come before that answer.
  (void)post_held(cqs_[q->cq_index]);
  (void)post_due();
  for (u32 word = 0; word < q->outstanding.size(); ++word) {
    for (u64 bits = q->outstanding[word]; bits != 0; bits &= bits - 1) {
      const auto cid = static_cast<u16>(word * 64 + static_cast<u32>(std::countr_zero(bits)));
      post(cqs_[q->cq_index], aborted_completion(cid, qid, q->head, status::sq_deleted));
      cqs_[q->cq_index].fresh = true;
    }
  }
  if (dma_.pending()) (void)dma_.commit();
  later_.erase_if([&](const Later& l) { return l.sqid == qid; });
  std::erase_if(sqs_, [&](const SubmissionQueue& s) { return s.qid == qid; });
}

void IoEngine::delete_cq(u16 qid) {
  std::erase_if(cqs_, [&](const CompletionQueue& c) { return c.qid == qid; });
  for (SubmissionQueue& s : sqs_) s.cq_index = static_cast<u32>(find_cq(s.cqid) - cqs_.data());
}

bool IoEngine::abort(u16 sqid, u16 cid) {
  SubmissionQueue* q = find_sq(sqid);
  if (q == nullptr || q->outstanding.empty() || !is_outstanding(q->outstanding.data(), cid)) return false;
  set_outstanding(q->outstanding.data(), cid, false);
  later_.erase_if([&](const Later& l) { return l.sqid == sqid && l.cqe.cid == cid; });
  post(cqs_[q->cq_index], aborted_completion(cid, sqid, q->head, status::abort_requested));
  cqs_[q->cq_index].fresh = true;
  if (dma_.pending()) (void)dma_.commit();
  return true;
}

void IoEngine::drop_all() {
  sqs_.clear();
  cqs_.clear();
  later_.clear();
  done_.clear();
}

}  // namespace doorbell::nvme
