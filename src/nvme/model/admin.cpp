// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "nvme/model/admin.hpp"

#include <algorithm>
#include <cstring>

#include "nvme/model/ring_memory.hpp"
#include "system/clock.hpp"

namespace doorbell::nvme {

namespace {

constexpr u32 kQueuePage = 4096;
constexpr u32 kRoundsPerClock = 16;  // reading it takes as long as an I/O engine's round
constexpr u64 kLookNs = 1'000'000;   // between looks at what nothing waits for
constexpr u32 kVectorsAtMost = 2048;

}  // namespace

AdminProcessor::AdminProcessor(ModelShared& shared, RegisterPage registers, model::DmaEngine& dma,
                               IoService& io)
    : shared_(shared),
      registers_(registers),
      dma_(dma),
      io_(io),
      format_(shared.config.formats - 1),
      features_(shared.config.media == ModelConfig::Media::file, shared.interrupts.vectors()),
      started_ns_(wall_ns()) {}

u32* AdminProcessor::sq_register(u32 qid) const {
  return registers_.at(sq_doorbell_offset(qid, shared_.config.stride));
}
u32* AdminProcessor::cq_register(u32 qid) const {
  return registers_.at(cq_doorbell_offset(qid, shared_.config.stride));
}

bool AdminProcessor::enable(u32 aqa, Iova asq, Iova acq) {
  sq_ = SubmissionQueue{};
  cq_ = CompletionQueue{};
  sq_.entries = (aqa & 0xfff) + 1;
  cq_.entries = (aqa >> 16 & 0xfff) + 1;
  if (sq_.entries < 2 || cq_.entries < 2 || asq % kQueuePage != 0 || acq % kQueuePage != 0) return false;
  sq_.iova = asq;
  cq_.iova = acq;
  cq_.vector = 0;
  if (!find_ring(dma_, asq, u64{sq_.entries} * kSqeBytes, Access::read).reachable ||
      !find_ring(dma_, acq, u64{cq_.entries} * kCqeBytes, Access::write).reachable)
    return false;
  granted_ = shared_.config.max_queues;
  enabled_ = true;
  unreachable_ = false;
  find_queue();
  return true;
}

void AdminProcessor::find_queue() {
  if (!enabled_) return;
  sq_.host = reinterpret_cast<const Sqe*>(
      find_ring(dma_, sq_.iova, u64{sq_.entries} * kSqeBytes, Access::read).host);
  cq_.ring =
      reinterpret_cast<Word16*>(find_ring(dma_, cq_.iova, u64{cq_.entries} * kCqeBytes, Access::write).host);
}

void AdminProcessor::disable() {
  enabled_ = false;
  io_.drop_all();
  sqs_.clear();
  cqs_.clear();
  events_.clear();
  features_.reset();
  shared_.write_through.store(false, std::memory_order_relaxed);
  shared_.interrupts.reset();
  told_warnings_ = 0;
  stray_.clear();
  shadow_ = eventidx_ = 0;
  for (u64 at = reg::doorbells; at < registers_.bytes; at += 4) store_relaxed(registers_.at(at), 0);
}

bool AdminProcessor::poll() {
  if (!enabled_ || unreachable_) return false;
  if (++rounds_ % kRoundsPerClock == 0) {
    if (const u64 now = wall_ns(); now - looked_ns_ > kLookNs) {
      looked_ns_ = now;
      look_around();
    }
  }
  while (!cq_.waiting.empty() && !full()) {
    write(cq_.waiting.front());
    cq_.waiting.pop_front();
  }
  const bool worked = take_command();
  report_events();
  if (shared_.interrupts.connected()) raise_interrupt();
  return worked;
}

bool AdminProcessor::take_command() {
  // The acquire orders the tail before later loads of the entries, which the host wrote before the tail.
  const u32 tail = load_acquire(sq_register(0));
  if (tail == sq_.head) return false;
  if (tail >= sq_.entries) {
    // Without a usable admin queue the host cannot be told, so a bad value there is fatal.
    if (tail != sq_.last_rung) {
      shared_.invalid_doorbell_values.fetch_add(1, std::memory_order_relaxed);
      store_release(registers_.at(reg::csts), load_relaxed(registers_.at(reg::csts)) | csts::fatal);
    }
    sq_.last_rung = tail;
    return false;
  }
  Sqe e;  // a copy: what lies in the host's memory may change at any time
  if (sq_.host != nullptr) {
    std::memcpy(&e, sq_.host + sq_.head, sizeof e);
  } else if (!dma_.fetch(sq_.iova + u64{sq_.head} * kSqeBytes, &e, sizeof e) || !dma_.commit()) {
    lose_queue();
    return false;
  }
  sq_.head = sq_.head + 1 == sq_.entries ? 0 : sq_.head + 1;
  const Answer a = run(e);
  if (a.status != status::success) shared_.errors.add(0, &e, a.status);
  if (!a.later) post(e.cid, a);
  return true;
}

void AdminProcessor::post(u16 cid, Answer a) {
  Cqe c = completion_of(cid, 0, sq_.head, a.status);
  c.dw0 = a.dw0;
  // An entry that the host has not given back must not be overwritten.
  if (!cq_.waiting.empty() || full()) cq_.waiting.push_back(c);
  else write(c);
}

void AdminProcessor::write(const Cqe& c) {
  cq_.fresh = true;
  if (cq_.ring != nullptr) {
    cq_.post(c);
    return;
  }
  const Word16 w = cq_.next(c);
  const Iova to = cq_.iova + u64{cq_.tail} * kCqeBytes;
  u8* const here = dma_.host(to, sizeof w, Access::write);
  if (here != nullptr) store16_release(reinterpret_cast<Word16*>(here), w);
  if (here != nullptr || (dma_.deliver(to, &w, sizeof w) && dma_.commit())) cq_.advance(1);
  else lose_queue();
}

void AdminProcessor::lose_queue() {
  unreachable_ = true;
  shared_.fatal.store(true, std::memory_order_release);
}

void AdminProcessor::take_head() {
  // The acquire orders the host's reads of freed entries before the controller's new stores to them.
  if (!cq_.take_head(load_acquire(cq_register(0))))
    shared_.invalid_doorbell_values.fetch_add(1, std::memory_order_relaxed);
}

bool AdminProcessor::full() {
  if (cq_.free() == 0) take_head();
  return cq_.free() == 0;
}

void AdminProcessor::report_events() {
  while (const auto report = events_.next()) post(report->cid, {status::success, report->event.result()});
}

void AdminProcessor::raise_interrupt() {
  const u32 rounds = shared_.interrupts.rounds();
  if (rounds != again_seen_ && !cq_.fresh) {
    take_head();
    cq_.fresh = cq_.head != cq_.tail;
  }
  again_seen_ = rounds;
  if (!cq_.fresh) return;
  cq_.fresh = false;
  shared_.interrupts.raise(0);
}

void AdminProcessor::look_around() {
  take_head();
  look_for_stray_doorbells();
  look_for_warnings();
}

void AdminProcessor::look_for_stray_doorbells() {
  // The engine that takes a tail also checks it. An engine reads heads only when it lacks room, so invalid
  // heads are found here.
  for (const auto& [qid, entries] : cqs_) {
    const u32 now = load_relaxed(cq_register(qid));
    u32& last = last_seen(cq_register(qid));
    if (now != last && now >= entries)
      shared_.invalid_doorbell_values.fetch_add(1, std::memory_order_relaxed);
    last = now;
  }
  const u64 bad = shared_.invalid_doorbell_values.load(std::memory_order_relaxed);
  if (bad != bad_values_reported_) {
    bad_values_reported_ = bad;
    shared_.errors.add(0, nullptr, status::success);
    events_.raise({AsyncEvent::Type::error, AsyncEvent::kBadDoorbellValue});
  }
  for (u32 qid = 1; qid <= shared_.config.max_queues; ++qid) {
    const std::pair<u32*, bool> doorbells[] = {{sq_register(qid), sqs_.contains(static_cast<u16>(qid))},
                                               {cq_register(qid), cqs_.contains(static_cast<u16>(qid))}};
    for (const auto& [word, live] : doorbells) {
      if (live) continue;
      const u32 now = load_relaxed(word);
      u32& last = last_seen(word);
      if (now != last) {
        shared_.unknown_doorbells.fetch_add(1, std::memory_order_relaxed);
        shared_.errors.add(0, nullptr, status::success);
        events_.raise({AsyncEvent::Type::error, AsyncEvent::kUnknownDoorbell});
      }
      last = now;
    }
  }
}

void AdminProcessor::look_for_warnings() {
  const u8 now = warnings();
  told_warnings_ &= now;
  const auto due = static_cast<u8>(now & features_.wanted_warnings() & ~told_warnings_);
  if (due == 0) return;
  told_warnings_ |= due;
  const bool temperature = (due & smart::kTemperatureWarning) != 0;
  events_.raise({AsyncEvent::Type::smart, temperature ? AsyncEvent::kTemperature : AsyncEvent::kReliability});
}

AdminProcessor::Answer AdminProcessor::run(const Sqe& e) {
  if (e.flags != 0) return {status::invalid_field};
  // How many commands are searched for the same cid is the controller's choice. Those of event requests are
  // not: SPDK gives them to its next commands before it deletes its queues.
  switch (static_cast<AdminOpcode>(e.opcode)) {
    case AdminOpcode::identify:
      return identify(e);
    case AdminOpcode::create_cq:
      return create_cq(e);
    case AdminOpcode::create_sq:
      return create_sq(e);
    case AdminOpcode::delete_sq:
      return delete_sq(e);
    case AdminOpcode::delete_cq:
      return delete_cq(e);
    case AdminOpcode::set_features:
      return set_features(e);
    case AdminOpcode::get_features:
      return get_features(e);
    case AdminOpcode::get_log_page:
      return get_log(e);
    case AdminOpcode::doorbell_buffer_config:
      return doorbell_buffers(e);
    case AdminOpcode::abort:
      return abort(e);
    case AdminOpcode::format_nvm:
      return format(e);
    case AdminOpcode::sanitize:
      return sanitize(e);
    case AdminOpcode::async_event:
      if (!events_.request(e.cid)) return {status::async_event_limit};
      return {.later = true};
  }
  return {status::invalid_opcode};
}

// --- data
// ---------------------------------------------------------------------------------------------------

template <class Chunk>
u16 AdminProcessor::walk(const Sqe& e, u64 bytes, Chunk chunk) {
  const u16 st = walk_prps(
      e.prp1, e.prp2, bytes, kQueuePage,
      [&](Iova at, u32 n, u64* out) { return dma_.fetch(at, out, u64{n} * 8) && dma_.commit(); }, chunk);
  return dma_.commit() ? st : status::data_transfer_error;
}

/// Behind a page of `data` the host gets zeros.
u16 AdminProcessor::deliver(const Sqe& e, const void* data, u64 bytes) {
  static constexpr u8 kZeros[kQueuePage] = {};
  const auto* from = static_cast<const u8*>(data);
  u64 done = 0;
  return walk(e, bytes, [&](Iova to, u64 n) {
    while (n > 0) {
      const u64 here = std::min(n, done < kQueuePage ? kQueuePage - done : kQueuePage);
      if (!dma_.deliver(to, done < kQueuePage ? from + done : kZeros, here)) return false;
      to += here;
      done += here;
      n -= here;
    }
    return true;
  });
}

u16 AdminProcessor::collect(const Sqe& e, void* data, u64 bytes) {
  auto* to = static_cast<u8*>(data);
  return walk(e, bytes, [&](Iova from, u64 n) {
    const bool ok = dma_.fetch(from, to, n);
    to += n;
    return ok;
  });
}

// --- queues
// -------------------------------------------------------------------------------------------------

u16 AdminProcessor::check_number(const Sqe& e, bool in_use) const {
  const u32 qid = e.cdw10 & 0xffff;
  const u32 size = e.cdw10 >> 16;
  if (qid == 0 || qid > granted_ || in_use) return status::invalid_queue_id;
  if (size == 0 || size + 1 > shared_.config.max_entries || !usable_entries_)
    return status::invalid_queue_size;
  return status::success;
}

u16 AdminProcessor::check_memory(const Sqe& e, u64 entry_bytes) const {
  const u64 bytes = ((e.cdw10 >> 16) + 1) * entry_bytes;
  if ((e.cdw11 & 1) == 0) return status::invalid_field;  // queues must be physically contiguous
  if (e.prp1 % kQueuePage != 0) return status::prp_offset_invalid;
  const Access access = entry_bytes == kSqeBytes ? Access::read : Access::write;
  // A kernel's queues lie in one mapping, those of threads in as many as they have pages.
  const bool reachable =
      has_more() ? find_ring(dma_, e.prp1, bytes, access).reachable : dma_.reachable(e.prp1, bytes, access);
  return reachable ? status::success : status::data_transfer_error;
}

bool AdminProcessor::in_shadow_page(u16 qid) const {
  return shadow_ != 0 &&
         cq_doorbell_offset(qid, shared_.config.stride) - reg::doorbells + sizeof(u32) <= kQueuePage;
}

QueueRequest AdminProcessor::with_doorbell(u16 qid, u16 cqid) const {
  QueueRequest q;
  q.qid = qid;
  q.cqid = cqid;
  const u32 stride = shared_.config.stride;
  q.doorbell = cqid != 0 ? sq_doorbell_offset(qid, stride) : cq_doorbell_offset(qid, stride);
  if (in_shadow_page(qid)) {
    q.shadow = shadow_ + (q.doorbell - reg::doorbells);
    q.eventidx = eventidx_ + (q.doorbell - reg::doorbells);
  }
  return q;
}

void AdminProcessor::start_doorbell(u32* word) {
  store_relaxed(word, 0);
  stray_.erase(static_cast<u32>(word - registers_.at(0)));
}

void AdminProcessor::stop_doorbell(u32* word) {
  last_seen(word) = load_relaxed(word);
}

AdminProcessor::Answer AdminProcessor::create_cq(const Sqe& e) {
  const auto qid = static_cast<u16>(e.cdw10);
  const u32 vector = e.cdw11 >> 16;
  const bool interrupts = (e.cdw11 & 2) != 0;
  if (const u16 st = check_number(e, cqs_.contains(qid)); st != status::success) return {st};
  if (const u16 st = check_memory(e, kCqeBytes); st != status::success) return {st};
  // Without anybody who takes interrupts there are no vectors: hosts must poll.
  if (vector >= (interrupts ? shared_.interrupts.vectors() : kVectorsAtMost)) return {status::invalid_vector};
  QueueRequest q = with_doorbell(qid, 0);
  q.entries = (e.cdw10 >> 16) + 1;
  q.iova = e.prp1;
  if (interrupts) q.vector = static_cast<int>(vector);
  start_doorbell(cq_register(qid));
  io_.add_cq(q);
  cqs_[qid] = q.entries;
  return {};
}

AdminProcessor::Answer AdminProcessor::create_sq(const Sqe& e) {
  const auto qid = static_cast<u16>(e.cdw10);
  const auto cqid = static_cast<u16>(e.cdw11 >> 16);
  if (const u16 st = check_number(e, sqs_.contains(qid)); st != status::success) return {st};
  if (cqid == 0 || cqid > granted_) return {status::invalid_queue_id};
  if (!cqs_.contains(cqid)) return {status::cq_invalid};
  if (const u16 st = check_memory(e, kSqeBytes); st != status::success) return {st};
  QueueRequest q = with_doorbell(qid, cqid);
  q.entries = (e.cdw10 >> 16) + 1;
  q.iova = e.prp1;
  start_doorbell(sq_register(qid));
  io_.add_sq(q);
  sqs_[qid] = cqid;
  return {};
}

AdminProcessor::Answer AdminProcessor::delete_sq(const Sqe& e) {
  const auto qid = static_cast<u16>(e.cdw10);
  const auto it = sqs_.find(qid);
  if (it == sqs_.end()) return {status::invalid_queue_id};
  io_.delete_sq(qid, it->second);
  sqs_.erase(it);
  stop_doorbell(sq_register(qid));
  return {};
}

AdminProcessor::Answer AdminProcessor::delete_cq(const Sqe& e) {
  const auto qid = static_cast<u16>(e.cdw10);
  if (!cqs_.contains(qid)) return {status::invalid_queue_id};
  if (std::any_of(sqs_.begin(), sqs_.end(), [&](const auto& s) { return s.second == qid; }))
    return {status::invalid_queue_deletion};
  io_.delete_cq(qid);
  cqs_.erase(qid);
  stop_doorbell(cq_register(qid));
  return {};
}

AdminProcessor::Answer AdminProcessor::doorbell_buffers(const Sqe& e) {
  if (!shared_.config.shadow_doorbells) return {status::invalid_opcode};
  if (e.prp1 % kQueuePage != 0 || e.prp2 % kQueuePage != 0 || e.prp1 == 0 || e.prp2 == 0 || e.prp1 == e.prp2)
    return {status::invalid_field};
  const u64 needed = std::min<u64>(registers_.bytes - reg::doorbells, kQueuePage);
  if (dma_.host(e.prp1, needed, Access::read) == nullptr ||
      dma_.host(e.prp2, needed, Access::write) == nullptr)
    return {status::data_transfer_error};
  shadow_ = e.prp1;
  eventidx_ = e.prp2;
  // Linux creates its queues first. What their registers have by now is what the buffers begin with.
  std::vector<QueueRequest> queues;
  for (const auto& [qid, entries] : cqs_) queues.push_back(with_doorbell(qid, 0));
  for (const auto& [qid, cqid] : sqs_) queues.push_back(with_doorbell(qid, cqid));
  for (const QueueRequest& q : queues) {
    if (q.shadow == 0) continue;
    const u32 value = load_acquire(registers_.at(q.doorbell));
    if (value != 0 && (!dma_.deliver(q.shadow, &value, sizeof value) || !dma_.commit()))
      return {status::data_transfer_error};
    io_.ring_in_memory(q);
  }
  return {};
}

AdminProcessor::Answer AdminProcessor::abort(const Sqe& e) {
  const auto sqid = static_cast<u16>(e.cdw10);
  const auto cid = static_cast<u16>(e.cdw10 >> 16);
  // An abort ends before the next command is taken, so there are never more than ACL allows.
  if (sqid == 0) {
    const bool aborted = events_.cancel(cid);
    if (aborted) {
      const Cqe c = aborted_completion(cid, 0, sq_.head, status::abort_requested);
      if (!cq_.waiting.empty() || full()) cq_.waiting.push_back(c);
      else write(c);
    }
    return {status::success, aborted ? 0u : 1u};
  }
  const auto it = sqs_.find(sqid);
  const bool aborted = it != sqs_.end() && io_.abort(sqid, it->second, cid);
  return {status::success, aborted ? 0u : 1u};
}

// --- features
// -----------------------------------------------------------------------------------------------

AdminProcessor::Answer AdminProcessor::get_features(const Sqe& e) {
  const FeatureAnswer a = features_.get(e, queues_granted());
  if (a.status != status::success) return {a.status};
  if (a.data.empty()) return {status::success, a.dw0};
  return {deliver(e, a.data.data(), a.data.size()), a.dw0};
}

AdminProcessor::Answer AdminProcessor::set_queues(const Sqe& e) {
  const u32 sqs = e.cdw11 & 0xffff;
  const u32 cqs = e.cdw11 >> 16;
  if (sqs == 0xffff || cqs == 0xffff) return {status::invalid_field};
  if (!sqs_.empty() || !cqs_.empty()) return {status::command_sequence};
  granted_ = std::min(std::max(sqs, cqs) + 1, shared_.config.max_queues);
  return {status::success, queues_granted()};
}

AdminProcessor::Answer AdminProcessor::set_features(const Sqe& e) {
  if (const u16 st = features_.check_set(e); st != status::success) return {st};
  if (static_cast<u8>(e.cdw10) == feature::queues) return set_queues(e);
  u8 data[512];
  const u32 bytes = Features::data_bytes(e);
  if (bytes != 0)
    if (const u16 st = collect(e, data, bytes); st != status::success) return {st};
  const u16 st = features_.set(e, {data, bytes});
  shared_.write_through.store(!features_.write_cache(), std::memory_order_relaxed);
  look_for_warnings();
  return {st};
}

// --- what destroys data
// -------------------------------------------------------------------------------------

u32 AdminProcessor::block_bytes(u32 format) const {
  // All formats but the last have blocks of the other size.
  const u32 bytes = shared_.config.lba_bytes;
  return format + 1 == shared_.config.formats ? bytes : bytes == 512 ? 4096 : 512;
}

u16 AdminProcessor::erase(u32 format) {
  bool erased = false;
  const bool paused = io_.pause([&] {
    erased = shared_.media.deallocate(0, shared_.media.capacity());
    if (!erased) return;
    format_ = format;
    shared_.shape.lba_bytes = block_bytes(format);
    shared_.shape.blocks = shared_.media.capacity() / shared_.shape.lba_bytes;
  });
  return !paused ? status::internal_error : erased ? status::success : status::write_fault;
}

AdminProcessor::Answer AdminProcessor::format(const Sqe& e) {
  if (!shared_.config.format) return {status::invalid_opcode};
  if (e.nsid != 1 && e.nsid != kAllNamespaces) return {status::invalid_namespace};
  const u32 format = shared_.config.formats > 16 ? (e.cdw10 & 0xf) | (e.cdw10 >> 12 & 3) << 4 : e.cdw10 & 0xf;
  const u32 protection = e.cdw10 >> 5 & 7, erase_setting = e.cdw10 >> 9 & 7;
  if (format >= shared_.config.formats || protection != 0) return {status::invalid_format};
  if (erase_setting > 1) return {status::invalid_field};  // no cryptographic erase
  return {erase(format)};
}

AdminProcessor::Answer AdminProcessor::sanitize(const Sqe& e) {
  if (!shared_.config.format) return {status::invalid_opcode};
  constexpr u32 kExitFailure = 1, kBlockErase = 2;
  const u32 action = e.cdw10 & 7;
  if (action == kExitFailure) return {};
  if (action != kBlockErase) return {status::invalid_field};
  const bool erased = erase(format_) == status::success;
  sanitized_ = {.status = erased ? u16{0x101} : u16{3}, .cdw10 = e.cdw10};
  events_.raise({AsyncEvent::Type::command_set, AsyncEvent::kSanitized});
  return {};
}

}  // namespace doorbell::nvme
