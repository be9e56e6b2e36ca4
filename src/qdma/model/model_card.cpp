// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "qdma/model/model_card.hpp"

#include <pthread.h>
#include <sys/prctl.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "model/deliberate_race.hpp"

namespace doorbell::qdma {

namespace {

using model::Fault;

constexpr u64 kPage = 4096;  // that a descriptor moves at most

/// Bytes of about a millisecond, so that a slow card's queues take turns as a fast one's do.
u64 burst_bytes_of(double bytes_per_s) {
  if (bytes_per_s <= 0) return ModelCard::kBurstBytes;
  const auto bytes = static_cast<u64>(bytes_per_s / 1000) / kPage * kPage;
  return std::clamp<u64>(bytes, 16 * kPage, ModelCard::kBurstBytes);
}

u32 number_of(Direction d) {
  return d == Direction::host_to_card ? 0 : 1;
}

}  // namespace

CardQueue::CardQueue(const CardQueueShape& shape) : shape_(shape) {
  const u32 index[2] = {shape.h2c_ring, shape.c2h_ring};
  for (u32 d = 0; d < 2; ++d) {
    rings_[d].queue = this;
    rings_[d].direction = d == 0 ? Direction::host_to_card : Direction::card_to_host;
    rings_[d].capacity = (kRingEntries.at(index[d]) - 1) * kPage;
  }
}

ModelCard::ModelCard(const CardConfig& config)
    : config_(config),
      rates_(config),
      clock_(config.counted_clock),
      faults_(config.faults, config.seed, config.delay_ns),
      burst_bytes_(burst_bytes_of(config.bytes_per_s)) {
  sleeps_until_.resize(std::max(config.threads, 1u));
  try {
    for (u32 i = 0; i < sleeps_until_.size(); ++i) threads_.add("card's thread", [this, i] { work(i); });
  } catch (...) {
    end_threads();
    throw;
  }
}

void ModelCard::end_threads() {
  {
    const Lock lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  threads_.join();
}

ModelCard::~ModelCard() {
  Ended ended;
  {
    const Lock lock(mutex_);
    presence_.leave();
    remove(ended);
    stopping_ = true;
  }
  wake_.notify_all();
  report(ended);
  end_threads();
}

void ModelCard::start(CardQueue& queue) {
  const Lock lock(mutex_);
  queue.started_ = true;
}

void ModelCard::stop(CardQueue& queue, std::function<void()> quiet) {
  Ended ended;
  bool now = false;
  {
    const Lock lock(mutex_);
    queue.started_ = false;
    for (CardRequest *r = all_, *after = nullptr; r != nullptr; r = after) {
      after = r->after_;
      if (r->queue.get() == &queue) give_up(*r, ENXIO, ended);
    }
    now = !queue.busy();
    if (!now && quiet) queue.when_quiet_.push_back(std::move(quiet));
  }
  report(ended);
  if (now && quiet) quiet();
}

void ModelCard::submit(std::span<CardRequest* const> requests) {
  Ended ended;
  {
    const Lock lock(mutex_);
    for (CardRequest* r : requests) enqueue(*r, ended);
  }
  report(ended);
}

void ModelCard::enqueue(CardRequest& r, Ended& ended) {
  CardRing& ring = r.queue->ring(r.direction);
  const u32 index = r.queue->shape().index, d = number_of(r.direction);
  note_away();
  r.state_ = CardRequest::State::queued;
  r.limit_ = r.bytes;
  r.source_ = r.address;
  r.after_ = all_;
  if (all_ != nullptr) all_->before_ = &r;
  all_ = &r;
  if (gone() || !r.queue->started_) {
    retire(r, gone() ? ENODEV : ENXIO, ended);
    return;
  }
  if (faults_.active())
    r.injected_ = faults_.draw(index * 2 + d, serials_[index][d],
                               d == 0 ? model::Direction::to_device : model::Direction::to_host);
  ++serials_[index][d];
  // Under the lock, so that time in which this process is stopped is noticed for it from here on.
  if (r.limit_ns != 0) {
    const u64 now = clock_.now();
    r.deadline_ = agenda_.add(r.limit_ns > ~now ? ~u64{0} : now + r.limit_ns, {.deadline = &r});
  }
  ring.waiting.push_back(&r);
  if (ring.waiting.size() == 1 && !ring.busy) {
    ring.time_ns = std::max(ring.time_ns, clock_.now());
    schedule(ring);
  }
  pass_on();
}

void ModelCard::abandon(CardRequest& request, int error) {
  Ended ended;
  {
    const Lock lock(mutex_);
    give_up(request, error, ended);
  }
  report(ended);
}

void ModelCard::remove() {
  Ended ended;
  {
    const Lock lock(mutex_);
    presence_.leave();
    remove(ended);
  }
  report(ended);
}

void ModelCard::remove(Ended& ended) {
  for (CardRequest *r = all_, *after = nullptr; r != nullptr; r = after) {
    after = r->after_;
    give_up(*r, ENODEV, ended);
  }
}

void ModelCard::schedule(CardRing& ring) {
  ring.next = agenda_.add(ring.time_ns, {.move = &ring});
}

void ModelCard::pass_on() {
  u64 earliest = ~u64{0};
  bool any = false;
  for (const u64 ns : sleeps_until_) {
    if (ns != 0) earliest = std::min(earliest, ns);
    any = any || ns != 0;
  }
  // A thread that goes on by itself with what it has begun costs less than waking another.
  if (any && !agenda_.empty() && agenda_.first_ns() < earliest) wake_.notify_one();
}

void ModelCard::give_up(CardRequest& r, int error, Ended& ended) {
  if (r.state_ != CardRequest::State::queued && r.state_ != CardRequest::State::done) return;
  if (r.in_burst_) {
    if (r.verdict_ == 0) r.verdict_ = error;
    return;
  }
  retire(r, error, ended);
}

void ModelCard::retire(CardRequest& r, int error, Ended& ended) {
  CardRing& ring = r.queue->ring(r.direction);
  if (r.state_ == CardRequest::State::queued) {
    const bool first = !ring.waiting.empty() && ring.waiting.front() == &r;
    std::erase(ring.waiting, &r);
    if (first && !ring.busy) {
      agenda_.cancel(ring.next);
      if (!ring.waiting.empty()) {
        schedule(ring);
        pass_on();
      }
    }
  }
  agenda_.cancel(r.done_);
  agenda_.cancel(r.deadline_);
  (r.before_ == nullptr ? all_ : r.before_->after_) = r.after_;
  if (r.after_ != nullptr) r.after_->before_ = r.before_;
  r.state_ = CardRequest::State::ended;
  r.error = error;
  if (r.begun_) {
    const u64 now = clock_.now();
    const u64 end = error == 0 ? std::max(r.end_ns_, now) : now;
    r.ns = end - std::min(r.begin_ns_, end);
    active_[number_of(r.direction)].ends(end);
  }
  switch (error) {
    case 0:
      ++counters_.completed;
      break;
    case ENXIO:
      ++counters_.drained;
      break;
    case ETIMEDOUT:
      ++counters_.timed_out;
      break;
    case ECANCELED:
      ++counters_.cancelled;
      break;
    default:
      ++counters_.failed;
  }
  ended.push_back(&r);
}

void ModelCard::report(Ended& ended) {
  // An owner may free the request in its call.
  for (CardRequest* r : ended) r->ended(*r);
  ended.clear();
}

void ModelCard::sleep(u32 thread, u64 until_ns, Lock& lock) {
  sleeps_until_[thread] = until_ns;
  if (until_ns == ~u64{0}) wake_.wait(lock);
  else wake_.wait_for(lock, std::chrono::nanoseconds(until_ns - std::min(until_ns, clock_.now())));
  sleeps_until_[thread] = 0;
}

void ModelCard::note_away() {
  if (clock_.counted()) return;
  const u64 away_ns = running_.away_since_look(clock_.now());
  if (away_ns == 0) return;
  for (CardRequest* r = all_; r != nullptr; r = r->after_) {
    if (r->deadline_.order == 0) continue;
    const u64 before = r->deadline_.ns;
    agenda_.cancel(r->deadline_);
    r->deadline_ = agenda_.add(away_ns > ~before ? ~u64{0} : before + away_ns, {.deadline = r});
  }
}

void ModelCard::work(u32 thread) {
  pthread_setname_np(pthread_self(), "qdma model");
  // The kernel's default would let each wait of a slow card end 50 us late.
  prctl(PR_SET_TIMERSLACK, 1000UL);
  Ended ended;
  Lock lock(mutex_);
  while (!stopping_) {
    if (agenda_.empty()) {
      sleep(thread, ~u64{0}, lock);
      continue;
    }
    note_away();
    const u64 due = agenda_.first_ns(), now = clock_.now();
    if (due > now) {
      if (!clock_.counted()) {
        sleep(thread, std::min(due, now + RunningTime::kMostNs / 2), lock);
      } else if (working_ == 0) {
        clock_.advance(due);  // no thread can bring forth anything that would be due earlier
      } else {
        sleep(thread, ~u64{0}, lock);
      }
      continue;
    }
    handle(agenda_.take_first(), lock, ended);
    if (ended.empty()) continue;
    lock.unlock();
    report(ended);
    lock.lock();
  }
}

void ModelCard::handle(const CardEvent& event, Lock& lock, Ended& ended) {
  if (event.move != nullptr) {
    event.move->next = {};
    move(*event.move, lock, ended);
  } else if (event.done != nullptr) {
    event.done->done_ = {};
    retire(*event.done, 0, ended);
  } else {
    event.deadline->deadline_ = {};
    give_up(*event.deadline, ETIMEDOUT, ended);
  }
}

void ModelCard::begin(CardRequest& r, const CardRing& ring) {
  r.begun_ = true;
  r.begin_ns_ = ring.time_ns;
  active_[number_of(r.direction)].begins(r.begin_ns_);
  const model::InjectedFault& injected = r.injected_;
  if (injected.fault == Fault::error) {
    const u64 descriptors = (r.bytes + kPage - 1) / kPage;
    r.limit_ = injected.choice % descriptors * kPage;
  } else if (injected.fault == Fault::misplace && r.queue->shape().aperture == 0) {
    const CardMemory::Region* region = CardMemory::find(r.address, r.bytes);
    if (const auto other = injected.elsewhere(r.address - region->base, r.bytes, region->bytes))
      r.source_ = region->base + *other;
  }
}

u64 ModelCard::burst(const CardRequest& r, const CardRing& ring) const {
  u64 n = std::min({r.limit_ - r.moved, burst_bytes_, ring.capacity - r.piece_});
  // Each half of HBM has a rate of its own.
  const u64 address = r.source_ + r.moved;
  if (address < kHbmBoundary) n = std::min(n, kHbmBoundary - address);
  return n;
}

void ModelCard::copy(CardRequest& r, u64 bytes) const {
  if (r.injected_.fault == Fault::stale) return;
  // Clients may let two queues touch the same bytes; what they find then is as on hardware.
  const model::DeliberateRace race;
  memory_.copy(r.direction, r.host, r.source_, r.moved, bytes, r.queue->shape().aperture);
}

void ModelCard::move(CardRing& ring, Lock& lock, Ended& ended) {
  CardRequest& r = *ring.waiting.front();
  const CardQueueShape& shape = ring.queue->shape();
  if (!r.begun_) {
    if (r.injected_.fault == Fault::removal) {
      faults_.remove(presence_);
      remove(ended);
      return;
    }
    begin(r, ring);
  }
  // The owner lets the queue go when the request has ended, which may be before this function's end.
  const std::shared_ptr<CardQueue> keep = r.queue;
  const u64 bytes = burst(r, ring);
  u64 end = ring.time_ns;
  if (bytes > 0) {
    end = rates_.end_of(shape.channel, r.direction, r.source_ + r.moved, bytes, ring.time_ns);
    ring.busy = r.in_burst_ = true;
    ++working_;
    pass_on();
    lock.unlock();
    copy(r, bytes);
    lock.lock();
    --working_;
    ring.busy = r.in_burst_ = false;
    if (clock_.counted()) wake_.notify_all();  // who waits for time to pass
  }
  // A ring that nothing limits takes its turn behind the others.
  ring.time_ns = end == ring.time_ns ? std::max(end, clock_.now()) : end;
  r.end_ns_ = ring.time_ns;
  r.moved += bytes;
  r.piece_ += bytes;
  ++counters_.bursts;
  counters_.bytes[shape.channel][number_of(r.direction)] += bytes;
  if (CardMemory::find(r.address, 1)->base == kPdiBase) counters_.image_bytes += bytes;
  if (r.piece_ == ring.capacity) {
    // The next piece is fed when the ring is empty.
    r.piece_ = 0;
    if (r.moved < r.limit_) ring.time_ns += config_.latency_ns;
  }
  const bool over = r.verdict_ != 0 || r.moved == r.limit_;
  if (over) {
    ring.waiting.pop_front();
    r.state_ = CardRequest::State::done;
    if (r.verdict_ != 0) {
      retire(r, r.verdict_, ended);
    } else if (r.injected_.fault == Fault::error) {
      faults_.count(Fault::error);
      retire(r, EIO, ended);
    } else {
      moved_all(r, ended);
    }
  }
  if (!ring.waiting.empty()) schedule(ring);
  if (!keep->when_quiet_.empty() && !keep->busy()) {
    const auto quiet = std::exchange(keep->when_quiet_, {});
    lock.unlock();
    report(ended);
    for (const auto& notify : quiet) notify();
    lock.lock();
  }
}

void ModelCard::moved_all(CardRequest& r, Ended& ended) {
  switch (r.injected_.fault) {
    case Fault::corrupt:
      r.injected_.corrupt(r.host, r.bytes);
      faults_.count(Fault::corrupt);
      break;
    case Fault::misplace:
      if (r.source_ != r.address) faults_.count(Fault::misplace);
      break;
    case Fault::stale:
      faults_.count(Fault::stale);
      break;
    default:
      break;
  }
  const u64 due = r.end_ns_ + config_.latency_ns;
  const auto report = faults_.apply_to_completion(r.injected_, due, [this] { return clock_.now(); });
  if (report.times == 0) return;  // its deadline, or a STOP, ends it
  r.end_ns_ = report.due_ns;
  if (report.due_ns <= clock_.now()) retire(r, 0, ended);
  else r.done_ = agenda_.add(report.due_ns, {.done = &r});
}

u64 ModelCard::bytes_moved() const {
  const Lock lock(mutex_);
  u64 sum = 0;
  for (const auto& channel : counters_.bytes) sum += channel[0] + channel[1];
  return sum;
}

nlohmann::ordered_json ModelCard::counters() const {
  const Lock lock(mutex_);
  auto channels = nlohmann::ordered_json::array();
  for (const auto& bytes : counters_.bytes)
    channels.push_back({{"host_to_card_bytes", bytes[0]}, {"card_to_host_bytes", bytes[1]}});
  nlohmann::ordered_json j = {
      {"threads", sleeps_until_.size()},      {"clock", clock_.counted() ? "counted" : "real"},
      {"completed", counters_.completed},     {"failed", counters_.failed},
      {"drained", counters_.drained},         {"timed_out", counters_.timed_out},
      {"cancelled", counters_.cancelled},     {"bursts", counters_.bursts},
      {"image_bytes", counters_.image_bytes}, {"channels", channels}};
  const u64 now = clock_.now();
  j["active_ns"] = {{"host_to_card", active_[0].ns(now)}, {"card_to_host", active_[1].ns(now)}};
  if (auto busy = rates_.busy_ns(); !busy.empty()) j["busy_ns"] = std::move(busy);
  if (faults_.active()) j["injected"] = faults_.json();
  return j;
}

}  // namespace doorbell::qdma
