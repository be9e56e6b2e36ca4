// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "nvme/model/io_engine.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "system/clock.hpp"

namespace doorbell::nvme {

using model::Fault;

namespace {

constexpr u32 kBurst = 64;  // entries taken from one queue in a round
constexpr u32 kPrefetch = 12;
constexpr u32 kIdlePollsToSleep = 4096;  // before a queue with shadow doorbells asks for register writes
constexpr u32 kAsleepShadowPolls = 64;
constexpr u32 kRoundsPerHeadLook = 4096;

}  // namespace

IoEngine::IoEngine(ModelShared& shared, const SoftwareAddressSpace& space, model::DmaAgent* agent, u32 index)
    : shared_(shared), dma_(space, agent, index), faults_(shared.faults), tracks_(shared.tracks()) {}

bool IoEngine::poll() {
  set_up_.serve();
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
      if (!dma_.fetch(q.iova + u64{q.head} * kSqeBytes, staging_[i].data(), u64{n} * kSqeBytes))
        return fail();
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
  done_.clear();
  const bool late = !later_.empty() && post_due();
  bool unstalled = false;
  for (CompletionQueue& q : cqs_) unstalled = post_held(q) || unstalled;
  if (dma_.pending() && !dma_.commit()) return fail();
  return posted || late || unstalled || !fetched_.empty();
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
  const bool rung = load_relaxed(q.tail_register) != q.last_rung;
  if (!rung && ++q.idle_polls % kAsleepShadowPolls != 0) return q.tail;
  q.last_rung = load_relaxed(q.tail_register);
  const u32 tail = load_acquire(q.tail_shadow);
  if (tail != q.tail) q.needs_register = false;
  return tail;
}

u32 IoEngine::new_entries(SubmissionQueue& q) {
  const u32 rung = read_tail(q);
  if (rung != q.tail) {
    u32& last = q.tail_shadow == nullptr ? q.last_rung : q.last_shadow;
    if (rung != last) {  // otherwise this bad value has been reported
      last = rung;
      if (tail_allowed(rung, q.head, q.tail, q.entries)) q.tail = rung;
      else shared_.invalid_doorbell_values.fetch_add(1, std::memory_order_relaxed);
    }
  }
  return ring_distance(q.head, q.tail, q.entries);
}

void IoEngine::execute(SubmissionQueue& q, const Sqe& e) {
  const u64 serial = q.fetched++;
  model::InjectedFault injected;
  if (faults_.active()) injected = faults_.draw(q.qid, serial, direction_of(e));
  if (injected.fault == Fault::removal) {
    faults_.remove(shared_.presence);
    return;
  }
  u16 st = status::success;
  if (tracks_ && is_outstanding(q.outstanding.data(), e.cid)) {
    st = status::cid_conflict;
  } else if (injected.fault == Fault::error) {
    st = injected_status(e);
    faults_.count(injected.fault);
  } else {
    st = run(e, injected);
  }
  if (st != status::success) counters_.errors += 1;
  const Cqe c = completion_of(e.cid, q.qid, q.head, st);

  if (!tracks_) [[likely]] {
    done_.push_back({q.cq_index, c});
    return;
  }
  u64 due = 0;
  if (shared_.link.limited()) {
    const u64 bytes = u64{blocks_of(e)} * shared_.config.lba_bytes;
    due = shared_.link.finish_time(wall_ns(), bytes);
  }
  const model::CompletionReport t = faults_.apply_to_completion(injected, due, wall_ns);
  if (t.times == 0) set_outstanding(q.outstanding.data(), e.cid, true);
  for (u32 i = 0; i < t.times; ++i) complete(q, c, t.due_ns);
}

u16 IoEngine::run(const Sqe& e, const model::InjectedFault& injected) {
  const CheckedCommand c = check_command(e, shared_.shape);
  if (c.status != status::success) return c.status;
  if (c.transfers) return transfer(e, c, injected);
  counters_.others += 1;
  return shared_.media.flush() ? status::success : status::write_fault;
}

u16 IoEngine::transfer(const Sqe& e, const CheckedCommand& c, const model::InjectedFault& injected) {
  const Fault fault = injected.fault;
  const ModelConfig& config = shared_.config;
  const auto op = static_cast<IoOpcode>(e.opcode);
  const u32 blocks = c.blocks;
  const u64 bytes = c.bytes;
  u64 lba = c.lba;

  u8* const base = shared_.media.bytes();
  if (op == IoOpcode::write_zeroes) {
    if (base != nullptr) {
      if (!shared_.media.reserve(lba * config.lba_bytes, bytes)) return status::write_fault;
      std::memset(base + lba * config.lba_bytes, 0, bytes);
    }
    counters_.others += 1;
    return status::success;
  }
  const auto list = [this](Iova at, u32 n, u64* out) { return read_list(at, n, out); };
  if (base == nullptr) {
    const auto want = op == IoOpcode::read ? Access::write : Access::read;
    const u16 st = walk_prps(e.prp1, e.prp2, bytes, kModelPage, list,
                             [&](Iova at, u64 n) { return dma_.reachable(at, n, want); });
    (op == IoOpcode::read ? counters_.reads : counters_.writes) += 1;
    return st;
  }

  if (fault == Fault::misplace) {
    const u64 other = recent_writes_.other(lba, blocks, shared_.shape.blocks);
    if (other != lba) faults_.count(fault);
    lba = other;
  }
  const u64 offset = lba * config.lba_bytes;
  u8* media = base + offset;
  if (op != IoOpcode::write && !shared_.media.loadable(offset, bytes)) {
    stored_.resize(bytes);
    if (!shared_.media.read(offset, stored_.data(), bytes)) return status::unrecovered_read;
    media = stored_.data();
  }
  u16 st = status::success;
  if (op == IoOpcode::read) {
    const u64 bad = fault == Fault::corrupt ? injected.position(bytes) : bytes;
    u64 at = 0;
    st = walk_prps(e.prp1, e.prp2, bytes, kModelPage, list, [&](Iova to, u64 n) {
      const u64 begin = at;
      at += n;
      if (bad < begin || bad >= at) return dma_.deliver(to, media + begin, n);
      scratch_.assign(media + begin, media + at);
      scratch_[bad - begin] ^= 0x5a;
      return dma_.deliver(to, scratch_.data(), n);
    });
    if (fault == Fault::corrupt && st == status::success) faults_.count(fault);
    counters_.reads += 1;
  } else if (op == IoOpcode::write) {
    counters_.writes += 1;
    if (fault == Fault::stale) {
      faults_.count(fault);
      return status::success;
    }
    if (!shared_.media.reserve(offset, bytes)) return status::write_fault;
    st = walk_prps(e.prp1, e.prp2, bytes, kModelPage, list, [&](Iova from, u64 n) {
      const bool ok = dma_.fetch(from, media, n);
      media += n;
      return ok;
    });
    if (faults_.active() && st == status::success) recent_writes_.add(lba, blocks);
  } else {
    scratch_.resize(bytes);
    u8* to = scratch_.data();
    st = walk_prps(e.prp1, e.prp2, bytes, kModelPage, list, [&](Iova from, u64 n) {
      const bool ok = dma_.fetch(from, to, n);
      to += n;
      return ok;
    });
    if (st == status::success && !dma_.commit()) st = status::data_transfer_error;
    if (st == status::success && std::memcmp(scratch_.data(), media, bytes) != 0)
      st = status::compare_failure;
    counters_.others += 1;
  }
  counters_.bytes += bytes;
  // Copies that others do may find it later: then the commands after this one report it.
  if (shared_.media.lost()) return op == IoOpcode::write ? status::write_fault : status::unrecovered_read;
  return st;
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
  const u32 rung = load_acquire(q.head_shadow != nullptr ? q.head_shadow : q.head_register);
  if (rung != q.last_rung) {
    q.last_rung = rung;
    if (head_allowed(rung, q.head, q.tail, q.entries)) q.head = rung;
    else if (rung < q.entries ||
             q.head_shadow != nullptr)  // the admin thread reports values that are too large
      shared_.invalid_doorbell_values.fetch_add(1, std::memory_order_relaxed);
  }
}

bool IoEngine::full(CompletionQueue& q) {
  const u32 next = q.tail + 1 == q.entries ? 0 : q.tail + 1;
  if (next != q.head) [[likely]]
    return false;
  take_head(q);
  return next == q.head;
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
  }
  return any;
}

void IoEngine::write_entry(CompletionQueue& q, Cqe e) {
  e.status = static_cast<u16>((e.status & ~1u) | q.phase);
  const Word16 w = encode_cqe(e);
  if (q.host != nullptr) {
    store16_release(q.host + q.tail, w);
  } else if (!dma_.deliver(q.iova + u64{q.tail} * kCqeBytes, &w, sizeof w)) {
    (void)fail();
    return;
  }
  if (++q.tail == q.entries) {
    q.tail = 0;
    q.phase ^= 1;
  }
}

SubmissionQueue* IoEngine::find_sq(u16 qid) {
  const auto it = std::find_if(sqs_.begin(), sqs_.end(), [&](const auto& q) { return q.qid == qid; });
  return it == sqs_.end() ? nullptr : &*it;
}

CompletionQueue* IoEngine::find_cq(u16 qid) {
  const auto it = std::find_if(cqs_.begin(), cqs_.end(), [&](const auto& q) { return q.qid == qid; });
  return it == cqs_.end() ? nullptr : &*it;
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
