// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/roce/engine.hpp"

#include <algorithm>
#include <cerrno>
#include <random>

#include "system/clock.hpp"

namespace doorbell::roce {

namespace {

/// Who sleeps is woken when a path that was full has room again; this is for a carrier that does not.
constexpr u64 kLookAgainNs = 1'000'000;
/// RunningTime counts time between two looks up to a limit; while timers run, looks are closer together.
constexpr u64 kLongestSleepNs = RunningTime::kMostNs / 5 * 4;

}  // namespace

std::unique_ptr<Nic> Nic::make(Carrier& carrier, Listener listener, const Limits& limits,
                               const CompletionFaults& faults, const std::string& fault_log) {
  return std::make_unique<NicEngine>(carrier, std::move(listener), limits, faults, fault_log);
}

NicEngine::NicEngine(Carrier& carrier, Listener listener, const Limits& limits,
                     const CompletionFaults& faults, const std::string& fault_log)
    : carrier_(carrier),
      listener_(std::move(listener)),
      limits_(limits),
      running_(wall_ns()),
      // NICs of several processes begin at different numbers, so that a mix-up or a capture shows itself.
      table_(256, std::random_device()()),
      xrc_receives_(16, std::random_device()()) {
  if (faults.any()) faults_.emplace(faults, fault_log);
  engine_.set_release(
      [](void* engine) {
        auto& own = *static_cast<NicEngine*>(engine);
        if (own.left_over()) (void)own.progress();
      },
      this);
}

/// Whether a program has posted what no round has taken. With the engine free: who posted meanwhile either
/// got the engine, or is seen here.
bool NicEngine::left_over() const {
  // Between the engine's release and the load of rung_; a poster stores rung_ first and tries the engine
  // afterwards.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return rung_.load(std::memory_order_relaxed) != nullptr;
}

bool NicEngine::progress() {
  bool did = false;
  do {
    {
      const auto lock = engine_.try_now();
      if (!lock) return did;
      did = round(wall_ns()) || did;
    }
  } while (left_over());
  return did;
}

bool NicEngine::progress_waiting() {
  const auto lock = engine();
  return round(wall_ns());
}

void NicEngine::between_rounds(const std::function<void()>& work) {
  const auto lock = engine();
  work();
}

bool NicEngine::round_at(u64 wall_ns) {
  const auto lock = engine();
  return round(wall_ns);
}

void NicEngine::ring(ModelledQueuePair& queue_pair) {
  // The exchange that clears it comes before the engine reads the queue: a request is seen by that read or by
  // the next turn.
  if (queue_pair.rung.exchange(true, std::memory_order_acq_rel)) return;
  ModelledQueuePair* top = rung_.load(std::memory_order_relaxed);
  do {
    queue_pair.next_rung = top;
  } while (
      !rung_.compare_exchange_weak(top, &queue_pair, std::memory_order_seq_cst, std::memory_order_relaxed));
}

void NicEngine::take_rung() {
  if (rung_.load(std::memory_order_relaxed) == nullptr) return;
  ModelledQueuePair* next = rung_.exchange(nullptr, std::memory_order_acquire);
  while (next != nullptr) {
    ModelledQueuePair& queue_pair = *next;
    next = queue_pair.next_rung;
    queue_pair.rung.exchange(false, std::memory_order_acq_rel);
    activate(queue_pair);
  }
}

void NicEngine::activate(ModelledQueuePair& queue_pair) {
  if (queue_pair.active) return;
  queue_pair.active = true;
  active_.push_back(&queue_pair);
}

void NicEngine::watch(ModelledQueuePair& queue_pair) {
  timer_due_ = std::min(timer_due_, queue_pair.deadline());
  if (queue_pair.timed) return;
  queue_pair.timed = true;
  timed_.push_back(&queue_pair);
}

void NicEngine::forget(ModelledQueuePair& queue_pair) {
  take_rung();
  std::erase(active_, &queue_pair);
  std::erase(timed_, &queue_pair);
  if (&queue_pair == management_) management_ = nullptr;
  else table_.remove(queue_pair);
  --queue_pairs_;
  add(counters_, queue_pair.counted());
}

bool NicEngine::round(u64 wall_ns) {
  clock_ = {.wall_ns = wall_ns, .ran_ns = running_.look(wall_ns)};
  const std::span<const Arrival> arrivals = carrier_.receive();
  bool did = !arrivals.empty();
  for (const Arrival& arrival : arrivals) dispatch(arrival);
  take_rung();
  if (clock_.ran_ns >= timer_due_) expire_timers();
  blocked_ = false;
  if (!active_.empty()) {
    turn_.swap(active_);
    for (ModelledQueuePair* queue_pair : turn_) queue_pair->active = false;
    for (ModelledQueuePair* queue_pair : turn_) {
      did = queue_pair->advance() || did;
      if (!queue_pair->unfinished()) continue;
      activate(*queue_pair);
      blocked_ = blocked_ || queue_pair->blocked();
    }
    turn_.clear();
  }
  carrier_.flush();
  set_due();
  return did;
}

void NicEngine::expire_timers() {
  timer_due_ = kNever;
  for (std::size_t i = 0; i < timed_.size();) {
    ModelledQueuePair& queue_pair = *timed_[i];
    if (queue_pair.deadline() != 0 && queue_pair.deadline() <= clock_.ran_ns) queue_pair.expire();
    if (queue_pair.deadline() == 0) {
      queue_pair.timed = false;
      timed_[i] = timed_.back();
      timed_.pop_back();
      continue;
    }
    timer_due_ = std::min(timer_due_, queue_pair.deadline());
    ++i;
  }
}

void NicEngine::set_due() {
  u64 due = carrier_.next_due_ns();
  if (!timed_.empty()) {
    const u64 left = timer_due_ > clock_.ran_ns ? timer_due_ - clock_.ran_ns : 0;
    due = std::min(due, clock_.wall_ns + std::min(left, kLongestSleepNs));
  }
  if (!active_.empty()) due = std::min(due, clock_.wall_ns + (blocked_ ? kLookAgainNs : 0));
  next_due_ns_.store(due, std::memory_order_relaxed);
}

void NicEngine::dispatch(const Arrival& arrival) {
  Decoded packet;
  if (decode(arrival.bytes, packet)) {
    count(counters_.dropped);
    return;
  }
  // The one partition there is, as a full or a limited member.
  constexpr u16 kPartition = 0x7FFF;
  ModelledQueuePair* queue_pair = find(packet.headers.queue_pair);
  if (queue_pair == nullptr || (packet.headers.partition & kPartition) != kPartition) {
    count(counters_.dropped);
    return;
  }
  queue_pair->arrived(packet, arrival.source);
}

/// A shared receive queue of XRC ends.
void NicEngine::forget(SharedReceives& receives) {
  const auto lock = engine();
  xrc_receives_.remove(receives);
  table_.each([&](ModelledQueuePair& queue_pair) { queue_pair.forget(receives); });
}

Errno NicEngine::make_queue_pair(const QueuePairOptions& o, std::unique_ptr<QueuePair>& into) {
  const bool xrc = o.service == Service::xrc, responds = o.half != Half::requester;
  const u32 receives = o.shared_receives != nullptr ? 0 : o.receive_requests;
  if (xrc == (o.half == Half::both) || (xrc && o.shared_receives != nullptr) ||
      (o.send_completions == nullptr && !(xrc && responds)) || (o.receive_completions == nullptr && !xrc) ||
      o.send_requests > limits_.requests || receives > limits_.requests || o.send_sges > limits_.sges ||
      o.receive_sges > limits_.sges || o.send_sges > kMostSges || o.receive_sges > kMostSges ||
      o.inline_bytes > limits_.inline_bytes || (o.management && o.service != Service::ud))
    return EINVAL;
  const auto lock = engine();
  if (queue_pairs_ >= limits_.queue_pairs) return ENOMEM;
  if (o.management && management_ != nullptr) return EBUSY;
  auto made =
      std::make_unique<ModelledQueuePair>(*this, o, o.management ? kManagement : table_.free_number());
  if (o.management) management_ = made.get();
  else table_.add(*made);
  ++queue_pairs_;
  // No round allocates.
  for (auto* list : {&active_, &turn_, &timed_}) list->reserve(table_.places());
  into = std::move(made);
  return 0;
}

Errno NicEngine::make_completion_queue(u32 entries, std::unique_ptr<CompletionQueue>& into) {
  if (entries == 0 || entries > limits_.completions) return EINVAL;
  if (completion_queues_.load(std::memory_order_relaxed) >= limits_.completion_queues) return ENOMEM;
  into =
      std::make_unique<CompletionRing>(entries, limits_.completions, listener_, engine_, completion_queues_);
  return 0;
}

Errno NicEngine::make_shared_receive_queue(const SharedReceiveOptions& o,
                                           std::unique_ptr<SharedReceiveQueue>& into) {
  if (o.requests == 0 || o.requests > limits_.requests || o.sges > std::min(limits_.sges, kMostSges) ||
      o.limit > o.requests)
    return EINVAL;
  const auto lock = engine();
  if (shared_receives_.load(std::memory_order_relaxed) >= limits_.shared_receive_queues) return ENOMEM;
  const bool xrc = o.completions != nullptr;
  auto made = std::make_unique<SharedReceives>(xrc ? xrc_receives_.free_number() : next_shared_++, o,
                                               listener_, engine_, shared_receives_);
  if (xrc) {
    xrc_receives_.add(*made);
    made->set_end([this](SharedReceives& ends) { forget(ends); });
  }
  into = std::move(made);
  return 0;
}

Errno NicEngine::register_memory(u32 protection_domain, void* start, u64 bytes, u64 iova, u32 access,
                                 RegisteredMemory& into) {
  const auto lock = engine();
  return keys_.add_region(protection_domain, start, bytes, iova, access, into);
}

Errno NicEngine::deregister_memory(u32 local_key) {
  const auto lock = engine();
  return keys_.remove_region(local_key);
}

Errno NicEngine::reregister_memory(u32 local_key, u32 bits, u32 protection_domain, void* start, u64 bytes,
                                   u64 iova, u32 access, RegisteredMemory& into) {
  const auto lock = engine();
  return keys_.change_region(local_key, bits, protection_domain, start, bytes, iova, access, into);
}

Errno NicEngine::make_window(u32 protection_domain, u8 type, u32& remote_key) {
  const auto lock = engine();
  return keys_.add_window(protection_domain, type, remote_key);
}

Errno NicEngine::free_window(u32 remote_key) {
  const auto lock = engine();
  return keys_.remove_window(remote_key);
}

Counters NicEngine::counters() const {
  const auto lock = engine();
  Counters all = counters_;
  table_.each([&](const ModelledQueuePair& queue_pair) { add(all, queue_pair.counted()); });
  if (management_ != nullptr) add(all, management_->counted());
  return all;
}

}  // namespace doorbell::roce
