// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "nvme/model/admin.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace doorbell::nvme {

namespace {

constexpr u32 kQueuePage = 4096;
constexpr u32 kEventRequests = 4;        // AERL + 1
constexpr u8 kEventUnknownDoorbell = 0;  // write to invalid doorbell register
constexpr u8 kEventBadValue = 1;         // invalid doorbell write value
constexpr u8 kLogErrors = 0x01;          // the log page that error events name
constexpr u32 kRoundsPerStrayScan = 4096;

/// Dword 0 of an event's completion: type 0 (error status), the kind of event, the log page to read.
u32 event_result(u8 information) {
  return u32{kLogErrors} << 16 | u32{information} << 8;
}

class IdentifyPage {
 public:
  template <class T>
  void put(u32 at, T v) {
    std::memcpy(bytes_ + at, &v, sizeof v);
  }
  void text(u32 at, u32 width, const char* s) {
    std::memset(bytes_ + at, ' ', width);
    std::memcpy(bytes_ + at, s, std::min<std::size_t>(width, std::strlen(s)));
  }
  [[nodiscard]] const u8* bytes() const { return bytes_; }

 private:
  u8 bytes_[identify::bytes] = {};
};

}  // namespace

AdminProcessor::AdminProcessor(ModelShared& shared, RegisterPage registers, model::DmaEngine& dma,
                               IoService& io)
    : shared_(shared), registers_(registers), dma_(dma), io_(io) {}

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
  sq_.host = reinterpret_cast<const Sqe*>(dma_.host(asq, u64{sq_.entries} * kSqeBytes, Access::read));
  cq_.ring = reinterpret_cast<Word16*>(dma_.host(acq, u64{cq_.entries} * kCqeBytes, Access::write));
  if (sq_.host == nullptr || cq_.ring == nullptr) return false;
  granted_ = shared_.config.max_queues;
  enabled_ = true;
  return true;
}

void AdminProcessor::disable() {
  enabled_ = false;
  io_.drop_all();
  sqs_.clear();
  cqs_.clear();
  event_requests_.clear();
  pending_events_.clear();
  stray_.clear();
  shadow_ = eventidx_ = 0;
  for (u64 at = reg::doorbells; at < registers_.bytes; at += 4) store_relaxed(registers_.at(at), 0);
}

bool AdminProcessor::poll() {
  if (!enabled_) return false;
  if (++rounds_ % kRoundsPerStrayScan == 0) look_for_stray_doorbells();
  while (!cq_.waiting.empty() && !full()) {
    cq_.post(cq_.waiting.front());
    cq_.waiting.pop_front();
  }
  // The acquire orders the tail before later loads of the entries, which the host wrote before the tail.
  const u32 tail = load_acquire(sq_register(0));
  if (tail == sq_.head) return false;
  if (tail >= sq_.entries) {
    // Without a usable admin queue the host cannot be told, so a bad value there is fatal.
    if (tail != sq_.last_rung) {
      shared_.invalid_doorbell_values.fetch_add(1, std::memory_order_relaxed);
      store_release(registers_.at(reg::csts), csts::ready | csts::fatal);
    }
    sq_.last_rung = tail;
    return false;
  }
  const Sqe e = sq_.host[sq_.head];
  sq_.head = sq_.head + 1 == sq_.entries ? 0 : sq_.head + 1;
  const Answer a = run(e);
  if (!a.later) post(e.cid, a);
  return true;
}

void AdminProcessor::post(u16 cid, Answer a) {
  Cqe c = completion_of(cid, 0, sq_.head, a.status);
  c.dw0 = a.dw0;
  // An entry that the host has not given back must not be overwritten.
  if (!cq_.waiting.empty() || full()) cq_.waiting.push_back(c);
  else cq_.post(c);
}

bool AdminProcessor::full() {
  if (cq_.free() > 0) return false;
  // The acquire orders the host's reads of freed entries before the controller's new stores to them.
  const u32 rung = load_acquire(cq_register(0));
  if (rung < cq_.entries) cq_.head = rung;
  return cq_.free() == 0;
}

void AdminProcessor::raise_event(u8 information) {
  if (event_requests_.empty()) {
    // Kept until the host asks; one event of each kind is kept.
    if (std::ranges::find(pending_events_, information) == pending_events_.end())
      pending_events_.push_back(information);
    return;
  }
  const u16 cid = event_requests_.front();
  event_requests_.pop_front();
  post(cid, {status::success, event_result(information)});
}

void AdminProcessor::look_for_stray_doorbells() {
  const u64 bad = shared_.invalid_doorbell_values.load(std::memory_order_relaxed);
  if (bad != bad_values_reported_) {
    bad_values_reported_ = bad;
    raise_event(kEventBadValue);
  }
  // The engine that takes a tail also checks it. An engine reads heads only when it lacks room, so invalid
  // heads are found here.
  for (const auto& [qid, entries] : cqs_) {
    const u32 now = load_relaxed(cq_register(qid));
    u32& last = stray_[static_cast<u32>(cq_register(qid) - registers_.at(0))];
    if (now != last && now >= entries)
      shared_.invalid_doorbell_values.fetch_add(1, std::memory_order_relaxed);
    last = now;
  }
  for (u32 qid = 1; qid <= shared_.config.max_queues; ++qid) {
    const std::pair<u32*, bool> doorbells[] = {{sq_register(qid), sqs_.contains(static_cast<u16>(qid))},
                                               {cq_register(qid), cqs_.contains(static_cast<u16>(qid))}};
    for (const auto& [word, live] : doorbells) {
      if (live) continue;
      const u32 now = load_relaxed(word);
      u32& last = stray_[static_cast<u32>(word - registers_.at(0))];
      if (now != last) {
        shared_.unknown_doorbells.fetch_add(1, std::memory_order_relaxed);
        raise_event(kEventUnknownDoorbell);
      }
      last = now;
    }
  }
}

AdminProcessor::Answer AdminProcessor::run(const Sqe& e) {
  if (e.flags != 0) return {status::invalid_field};
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
      return features(e, true);
    case AdminOpcode::get_features:
      return features(e, false);
    case AdminOpcode::get_log_page:
      return get_log(e);
    case AdminOpcode::doorbell_buffer_config:
      return doorbell_buffers(e);
    case AdminOpcode::abort:
      return abort(e);
    case AdminOpcode::async_event:
      if (!pending_events_.empty()) {
        const u8 information = pending_events_.front();
        pending_events_.pop_front();
        return {status::success, event_result(information)};
      }
      if (event_requests_.size() >= kEventRequests) return {status::async_event_limit};
      event_requests_.push_back(e.cid);
      return {.later = true};
  }
  return {status::invalid_opcode};
}

u16 AdminProcessor::deliver(const Sqe& e, const void* data, u64 bytes) {
  const auto* from = static_cast<const u8*>(data);
  const u16 st = walk_prps(
      e.prp1, e.prp2, bytes, kQueuePage,
      [&](Iova at, u32 n, u64* out) { return dma_.fetch(at, out, u64{n} * 8) && dma_.commit(); },
      [&](Iova to, u64 n) {
        const bool ok = dma_.deliver(to, from, n);
        from += n;
        return ok;
      });
  return dma_.commit() ? st : status::data_transfer_error;
}

AdminProcessor::Answer AdminProcessor::identify(const Sqe& e) {
  const ModelConfig& c = shared_.config;
  IdentifyPage page;
  switch (static_cast<Cns>(e.cdw10 & 0xff)) {
    case Cns::controller:
      page.put<u16>(identify::vid, 0xdb01);
      page.put<u16>(identify::ssvid, 0xdb01);
      page.text(identify::serial, identify::serial_bytes, "DOORBELL-MODEL-1");
      page.text(identify::model, identify::model_bytes,
                c.engine == ModelConfig::Engine::cpu   ? "doorbell model controller"
                : c.engine == ModelConfig::Engine::gpu ? "doorbell model controller, GPU kernel"
                                                       : "doorbell model controller, kernel code");
      page.text(identify::firmware, identify::firmware_bytes, "1");
      page.put<u8>(identify::mdts, static_cast<u8>(c.mdts));
      page.put<u16>(identify::cntlid, 1);
      page.put<u32>(identify::version, 0x00010400);
      page.put<u32>(identify::rtd3e, 1'000'000);
      page.put<u8>(identify::controller_type, 1);
      page.put<u16>(identify::oacs, c.shadow_doorbells ? identify::oacs_doorbell_buffer : u16{0});
      page.put<u8>(identify::acl, 3);
      page.put<u8>(identify::aerl, kEventRequests - 1);
      page.put<u8>(identify::sqes, 0x66);
      page.put<u8>(identify::cqes, 0x44);
      page.put<u16>(identify::maxcmd, static_cast<u16>(std::min(c.max_entries, 65535u)));
      page.put<u32>(identify::nn, 1);
      page.put<u16>(identify::oncs, identify::oncs_compare | identify::oncs_write_zeroes);
      page.put<u8>(identify::vwc, c.media == ModelConfig::Media::file ? u8{1} : u8{0});
      std::memcpy(const_cast<u8*>(page.bytes()) + identify::subnqn, "nqn.2026-11.dev.doorbell:model", 30);
      break;
    case Cns::name_space: {
      if (e.nsid != 1 && e.nsid != kAllNamespaces) return {status::invalid_namespace};
      const u64 blocks = shared_.media.capacity() / c.lba_bytes;
      page.put<u64>(identify::nsze, blocks);
      page.put<u64>(identify::ncap, blocks);
      page.put<u64>(identify::nuse, blocks);
      page.put<u8>(identify::nlbaf, static_cast<u8>(c.formats - 1));
      page.put<u8>(identify::flbas, identify::flbas_of(c.formats - 1));
      // The other formats have blocks of the other size.
      for (u32 f = 0; f < c.formats; ++f)
        page.put<u8>(identify::lbaf + 4 * f + 2,
                     static_cast<u8>(std::countr_zero(f + 1 == c.formats   ? c.lba_bytes
                                                      : c.lba_bytes == 512 ? 4096u
                                                                           : 512u)));
      break;
    }
    case Cns::active_namespaces:
      if (e.nsid >= 0xfffffffe) return {status::invalid_namespace};
      if (e.nsid < 1) page.put<u32>(0, 1);
      break;
    default:
      return {status::invalid_field};
  }
  return {deliver(e, page.bytes(), identify::bytes)};
}

u16 AdminProcessor::check_number(const Sqe& e, bool in_use) const {
  const u32 qid = e.cdw10 & 0xffff;
  const u32 size = e.cdw10 >> 16;
  if (qid == 0 || qid > granted_ || in_use) return status::invalid_queue_id;
  if (size == 0 || size + 1 > shared_.config.max_entries) return status::invalid_queue_size;
  return status::success;
}

u16 AdminProcessor::check_memory(const Sqe& e, u64 entry_bytes) const {
  const u32 size = e.cdw10 >> 16;
  if ((e.cdw11 & 1) == 0) return status::invalid_field;  // queues must be physically contiguous
  if (e.prp1 % kQueuePage != 0) return status::prp_offset_invalid;
  if (!dma_.reachable(e.prp1, (size + 1) * entry_bytes,
                      entry_bytes == kSqeBytes ? Access::read : Access::write))
    return status::data_transfer_error;
  return status::success;
}

bool AdminProcessor::in_shadow_page(u16 qid) const {
  return shadow_ != 0 &&
         cq_doorbell_offset(qid, shared_.config.stride) - reg::doorbells + sizeof(u32) <= kQueuePage;
}

AdminProcessor::Answer AdminProcessor::create_cq(const Sqe& e) {
  const auto qid = static_cast<u16>(e.cdw10);
  if (const u16 st = check_number(e, cqs_.contains(qid)); st != status::success) return {st};
  if (const u16 st = check_memory(e, kCqeBytes); st != status::success) return {st};
  if ((e.cdw11 & 2) != 0) return {status::invalid_vector};  // no interrupt vectors: hosts must poll
  QueueRequest q;
  q.qid = qid;
  q.entries = (e.cdw10 >> 16) + 1;
  q.iova = e.prp1;
  q.doorbell = cq_doorbell_offset(qid, shared_.config.stride);
  if (in_shadow_page(qid)) q.shadow = shadow_ + (q.doorbell - reg::doorbells);
  store_relaxed(cq_register(qid), 0);
  stray_.erase(static_cast<u32>(cq_register(qid) - registers_.at(0)));
  io_.add_cq(q);
  cqs_[qid] = (e.cdw10 >> 16) + 1;
  return {};
}

AdminProcessor::Answer AdminProcessor::create_sq(const Sqe& e) {
  const auto qid = static_cast<u16>(e.cdw10);
  const auto cqid = static_cast<u16>(e.cdw11 >> 16);
  if (const u16 st = check_number(e, sqs_.contains(qid)); st != status::success) return {st};
  if (cqid == 0 || cqid > granted_) return {status::invalid_queue_id};
  if (!cqs_.contains(cqid)) return {status::cq_invalid};
  if (const u16 st = check_memory(e, kSqeBytes); st != status::success) return {st};
  QueueRequest q;
  q.qid = qid;
  q.cqid = cqid;
  q.entries = (e.cdw10 >> 16) + 1;
  q.iova = e.prp1;
  q.doorbell = sq_doorbell_offset(qid, shared_.config.stride);
  if (in_shadow_page(qid)) {
    q.shadow = shadow_ + (q.doorbell - reg::doorbells);
    q.eventidx = eventidx_ + (q.doorbell - reg::doorbells);
  }
  store_relaxed(sq_register(qid), 0);
  stray_.erase(static_cast<u32>(sq_register(qid) - registers_.at(0)));
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
  stray_[static_cast<u32>(sq_register(qid) - registers_.at(0))] = load_relaxed(sq_register(qid));
  return {};
}

AdminProcessor::Answer AdminProcessor::delete_cq(const Sqe& e) {
  const auto qid = static_cast<u16>(e.cdw10);
  if (!cqs_.contains(qid)) return {status::invalid_queue_id};
  if (std::any_of(sqs_.begin(), sqs_.end(), [&](const auto& s) { return s.second == qid; }))
    return {status::invalid_queue_deletion};
  io_.delete_cq(qid);
  cqs_.erase(qid);
  stray_[static_cast<u32>(cq_register(qid) - registers_.at(0))] = load_relaxed(cq_register(qid));
  return {};
}

AdminProcessor::Answer AdminProcessor::features(const Sqe& e, bool set) {
  if ((e.cdw10 & 0xff) != kFeatureQueues) return {status::invalid_field};
  if (set) {
    const u32 sqs = e.cdw11 & 0xffff;
    const u32 cqs = e.cdw11 >> 16;
    if (sqs == 0xffff || cqs == 0xffff) return {status::invalid_field};
    if (!sqs_.empty() || !cqs_.empty()) return {status::command_sequence};
    granted_ = std::min(std::max(sqs, cqs) + 1, shared_.config.max_queues);
  }
  return {status::success, (granted_ - 1) << 16 | (granted_ - 1)};
}

AdminProcessor::Answer AdminProcessor::get_log(const Sqe& e) {
  const u32 log = e.cdw10 & 0xff;
  if (log != kLogSmart && log != kLogErrors) return {status::invalid_log_page};
  if (e.nsid != kAllNamespaces && e.nsid != 0 && e.nsid != 1) return {status::invalid_namespace};
  const u64 wanted = ((u64{e.cdw11 & 0xffff} << 16 | e.cdw10 >> 16) + 1) * 4;
  if (wanted > kQueuePage) return {status::invalid_field};
  const IoTotals totals = io_.totals();
  IdentifyPage page;                                                 // 512 bytes of log, followed by zeros
  if (log == kLogErrors) return {deliver(e, page.bytes(), wanted)};  // no entries: events are only counted
  page.put<u16>(1, 300);                                             // kelvin
  page.put<u8>(3, 100);
  page.put<u8>(4, 10);
  page.put<u64>(64, totals.reads);
  page.put<u64>(80, totals.writes);
  page.put<u64>(176, totals.errors);
  return {deliver(e, page.bytes(), wanted)};
}

AdminProcessor::Answer AdminProcessor::doorbell_buffers(const Sqe& e) {
  if (!shared_.config.shadow_doorbells) return {status::invalid_opcode};
  if (e.prp1 % kQueuePage != 0 || e.prp2 % kQueuePage != 0 || e.prp1 == 0 || e.prp2 == 0)
    return {status::invalid_field};
  const u64 needed =
      registers_.bytes - reg::doorbells < kQueuePage ? registers_.bytes - reg::doorbells : kQueuePage;
  if (dma_.host(e.prp1, needed, Access::read) == nullptr ||
      dma_.host(e.prp2, needed, Access::write) == nullptr)
    return {status::data_transfer_error};
  // Existing queues keep their registers; queues created from now on use the buffers.
  shadow_ = e.prp1;
  eventidx_ = e.prp2;
  return {};
}

AdminProcessor::Answer AdminProcessor::abort(const Sqe& e) {
  const auto sqid = static_cast<u16>(e.cdw10);
  const auto it = sqs_.find(sqid);
  const bool aborted = it != sqs_.end() && io_.abort(sqid, it->second, static_cast<u16>(e.cdw10 >> 16));
  return {status::success, aborted ? 0u : 1u};
}

}  // namespace doorbell::nvme
