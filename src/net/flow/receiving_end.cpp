// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>

#include "measure/stop.hpp"
#include "net/flow/ends.hpp"
#include "net/flow/relay.hpp"
#include "system/clock.hpp"
#include "system/running_time.hpp"

namespace doorbell::net {

namespace {

constexpr u64 kWaitNs =
    1'000'000;  // the longest sleep of a receiver; after it it looks for messages of the sender
constexpr u32 kIdlePolls = 64;      // empty polls before a receiver that may sleep does
constexpr u32 kBurstsPerLook = 64;  // bursts between two looks at the clock
constexpr u32 kPollsPerLook = 256;  // empty polls between two looks at the clock, where it may not

}  // namespace

LocalReceivingEnd::LocalReceivingEnd(ReceivingOptions options, std::vector<std::unique_ptr<RxQueue>>& queues)
    : o_(std::move(options)) {
  const std::vector<PacketSink*> sinks = o_.windows ? o_.windows->sinks() : std::vector<PacketSink*>{};
  for (u32 q = 0; q < queues.size(); ++q) {
    ReceiverOptions r = o_.receiver;
    r.queue = q;
    r.spreading.queues = static_cast<u32>(queues.size());
    receivers_.push_back(std::make_unique<Receiver>(r, *queues[q], q < sinks.size() ? sinks[q] : nullptr));
  }
}

LocalReceivingEnd::~LocalReceivingEnd() {
  // Where the sender's end failed, receivers are still at work.
  timed_out_ = true;
  over_.store(true, std::memory_order_release);
}

void LocalReceivingEnd::begin() {
  over_ = false;
  timed_out_ = false;
  away_ns_ = 0;
  ready_ = 0;
  before_.clear();
  for (const auto& r : receivers_) {
    before_.push_back(r->counts());
    r->begin_phase(sent_);
  }
  threads_ = std::make_unique<Threads>("rx", static_cast<u32>(receivers_.size()), o_.cores,
                                       [this](u32 i, ThreadUse* use) { receive(i, use); });
  while (ready_.load(std::memory_order_acquire) < receivers_.size()) std::this_thread::yield();
  begin_ns_ = wall_ns();
}

bool LocalReceivingEnd::complete(const Receiver& receiver, const std::vector<u64>& sent) const {
  u64 due = 0;
  for (u32 f = 0; f < sent.size(); ++f)
    if (receiver.owns(f)) due += sent[f];
  return receiver.counts().unique >= due;
}

void LocalReceivingEnd::receive(u32 queue, ThreadUse* use) {
  Receiver& r = *receivers_[queue];
  const u64 begin = wall_ns();
  const measure::CpuTime cpu_time;
  u64 noted = ~u64{0};  // packets received when its use was noted last
  // The time that it takes to find that nothing follows is none in which packets were moved.
  const auto note_use = [&] {
    if (r.counts().received == noted) return;
    noted = r.counts().received;
    use->cost = cpu_time.spent(fmt::format("rx-{}", queue));
    use->elapsed_s = static_cast<double>(wall_ns() - begin) * 1e-9;
    ReceiveCounts done = r.counts();
    done -= before_[queue];
    use->useful =
        done.polls > 0 ? 1 - static_cast<double>(done.empty_polls) / static_cast<double>(done.polls) : 0;
  };
  ready_.fetch_add(1, std::memory_order_release);
  u32 idle = 0;
  // Times by which this thread has run: what it waits for may have been stopped together with it.
  constexpr u64 kNot = ~u64{0};
  RunningTime time(begin);
  u64 quiet_since = kNot;
  u64 over_since = kNot;
  const auto settle_ns = static_cast<u64>(o_.settle_s * 1e9);
  const auto timeout_ns = static_cast<u64>(o_.timeout_s * 1e9);
  while (true) {
    if (r.step() > 0) {
      idle = 0;
      quiet_since = kNot;
      // A stream that never falls silent has windows that time out, and is left behind at the time limit.
      if (r.counts().bursts % kBurstsPerLook != 0) continue;
    } else {
      ++idle;
    }
    const bool may_sleep = o_.polling == Polling::block && idle >= kIdlePolls;
    if (!may_sleep && idle % kPollsPerLook != 0) continue;
    const bool over = over_.load(std::memory_order_acquire);
    if (over) note_use();
    if (may_sleep) r.queue().wait(kWaitNs);
    // Packets that have come since the last look have been taken by now: only that look's time ends anything.
    const u64 ran_ns = time.ran_ns();
    const u64 now = wall_ns();
    time.look(now);
    if (idle > 0) r.idle(now);
    else r.awake(now);
    if (r.sink() != nullptr) r.sink()->idle(now);
    if (!over) continue;
    if (complete(r, sent_) || timed_out_.load(std::memory_order_relaxed)) break;
    if (over_since == kNot) over_since = ran_ns;
    if (idle > 0 && quiet_since == kNot) quiet_since = ran_ns;
    const bool silent = quiet_since != kNot && ran_ns - quiet_since >= settle_ns;
    if (!o_.reliable && (silent || measure::stop_gave_up())) break;
    if (r.queue().ended() && idle > 0) break;
    if (ran_ns - over_since >= timeout_ns) {
      timed_out_ = o_.reliable;
      break;
    }
  }
  note_use();
  for (u64 most = away_ns_; most < time.away_ns() && !away_ns_.compare_exchange_weak(most, time.away_ns());) {
  }
  r.settle();
}

ReceivePhase LocalReceivingEnd::end(const std::vector<u64>& sent) {
  sent_ = sent;
  over_.store(true, std::memory_order_release);
  threads_->join();
  ReceivePhase p;
  p.timed_out = timed_out_;
  p.away_s = static_cast<double>(away_ns_) * 1e-9;
  p.threads = threads_->uses();
  p.begin_ns = begin_ns_;
  u64 last = begin_ns_;
  for (u32 q = 0; q < receivers_.size(); ++q) {
    p.counts += receivers_[q]->counts();
    p.counts -= before_[q];
    p.latency.merge(receivers_[q]->latency());
    last = std::max(last, receivers_[q]->last_ns());
  }
  p.elapsed_s = static_cast<double>(last - begin_ns_) * 1e-9;
  return p;
}

ReceiveTotals LocalReceivingEnd::finish(const std::vector<u64>& sent) {
  begin();
  (void)end(sent);
  ReceiveTotals t;
  for (const auto& r : receivers_) {
    t.counts += r->counts();
    t.drops += r->queue().drops();
    t.unmatched += r->queue().unmatched();
    for (u32 f = 0; f < sent.size(); ++f)
      if (r->owns(f)) {
        t.lost += r->map(f).lost(o_.receiver.first_sequence + sent[f]);
        t.beyond += r->map(f).beyond(o_.receiver.first_sequence + sent[f]);
      }
    if (const auto* relay = dynamic_cast<const Relay*>(&r->queue())) {
      const nlohmann::ordered_json counts = relay->injected().json();
      for (const auto& [kind, n] : counts.items())
        t.injected[kind] = (t.injected.contains(kind) ? t.injected[kind].get<u64>() : 0) + n.get<u64>();
    }
  }
  if (o_.windows) {
    o_.windows->finish(sent);
    t.windows = o_.windows->json();
    t.in_windows = o_.windows->placed() + o_.windows->late();
    t.wrong_results = o_.windows->failed();
  }
  const u64 others = t.drops.sum() - t.drops.socket + t.counts.corrupt + t.counts.short_ + t.counts.misplaced;
  t.drops.settle(t.lost > others ? t.lost - others : 0);
  return t;
}

u64 LocalReceivingEnd::progress() const {
  u64 n = 0;
  for (const auto& r : receivers_) n += r->progress();
  return n;
}

}  // namespace doorbell::net
