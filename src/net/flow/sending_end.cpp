// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <ctime>

#include "measure/endless.hpp"
#include "net/flow/ends.hpp"
#include "system/clock.hpp"
#include "system/running_time.hpp"

namespace doorbell::net {

namespace {

constexpr u64 kRoomWaitNs = 1'000'000;
constexpr u64 kSpinNs = 60'000;  // a sender does not sleep for less, because it would wake too late
constexpr auto kLook = std::chrono::milliseconds(20);
constexpr u64 kLongestNapNs =
    20'000'000;  // after it a sender that waits for its next packet looks for its end
constexpr u64 kNoLimit = ~u64{0};
constexpr u64 kCompletedNs = 100'000'000;  // how long packets that have been sent may still be the queue's

void sleep_until(u64 ns) {
  const timespec t = {static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, nullptr);
}

}  // namespace

SendingEnd::SendingEnd(SendingOptions options, std::vector<std::unique_ptr<TxQueue>>& queues)
    : o_(std::move(options)) {
  for (u32 f = 0; f < queues.size(); ++f) {
    SenderOptions s = o_.sender;
    s.flow = static_cast<u16>(f);
    senders_.push_back(std::make_unique<Sender>(s, *queues[f]));
  }
}

std::vector<u64> SendingEnd::sent() const {
  std::vector<u64> all;
  for (const auto& s : senders_) all.push_back(s->sent());
  return all;
}

/// The flows of one thread.
struct SendingEnd::Lanes {
  struct Lane {
    Sender* sender;
    u64 limit;
  };
  std::vector<Lane> at_work;

  /// True while a packet has gone in part only. Tries to send the rest.
  [[nodiscard]] bool any_rest() const {
    bool rest = false;
    for (const Lane& l : at_work) rest = !l.sender->queue().flush() || rest;
    return rest;
  }
  [[nodiscard]] u64 moved() const {
    u64 sum = 0;
    for (const Lane& l : at_work) sum += l.sender->queue().moved();
    return sum;
  }
  /// When the next packet is due; 0: at once.
  [[nodiscard]] u64 due_ns() const {
    u64 due = ~u64{0};
    for (const Lane& l : at_work)
      due = std::min(due, l.sender->pacer().paced() ? l.sender->pacer().due_ns() : 0);
    return due;
  }
  /// For room in a queue: where there is a `rest`, in one that has it.
  void wait(bool rest, u64 limit_ns) const {
    const auto at =
        rest ? std::ranges::find_if(at_work, [](const Lane& l) { return !l.sender->queue().flush(); })
             : at_work.begin();
    if (at != at_work.end()) at->sender->queue().wait(limit_ns);
  }
};

void SendingEnd::send(u32 thread, u64 limit_ns, u64 count, Span* span, ThreadUse* use) {
  Lanes lanes;
  const u64 begin = wall_ns(), until_ns = limit_ns == kNoLimit ? kNoLimit : begin + limit_ns;
  for (u32 f = thread; f < senders_.size(); f += o_.threads) {
    Sender& s = *senders_[f];
    s.pace(o_.packets_per_s, begin);
    lanes.at_work.push_back({&s, count > 0 ? s.counts().sent + count : ~u64{0}});
  }
  *span = {begin, begin};
  u64 rounds = 0, useful = 0;
  RunningTime time(begin);
  u64 moved_ns = 0;  // how long it had run when something last moved, or nothing had to
  u64 moved_before = lanes.moved();
  bool moved = false;
  const auto timeout_ns = static_cast<u64>(o_.timeout_s * 1e9);
  while (!lanes.at_work.empty()) {
    ++rounds;
    const u64 round_ns = wall_ns(), ran_ns = time.look(round_ns);
    if (moved) span->end_ns = round_ns, moved_ns = ran_ns;
    moved = false;
    const bool over = stop_.load(std::memory_order_relaxed) || round_ns >= until_ns;
    for (std::size_t i = 0; i < lanes.at_work.size();) {
      Sender& s = *lanes.at_work[i].sender;
      const bool more = s.counts().sent < lanes.at_work[i].limit && !over && !s.queue().broken();
      // A flow behind others does not leave at the round's begin.
      const u64 now = i == 0 ? round_ns : wall_ns();
      if (more && s.step(lanes.at_work[i].limit, now) > 0) moved = true;
      if (more) ++i;
      else lanes.at_work[i] = lanes.at_work.back(), lanes.at_work.pop_back();
    }
    if (moved) {
      ++useful;
      continue;
    }
    if (lanes.at_work.empty()) break;
    const u64 due = lanes.due_ns();
    // Of a paced packet that went in part the rest does not wait for the next one.
    const bool rest = due != 0 && lanes.any_rest();
    // Where something was due there was no room for it.
    if (!rest && due + kSpinNs > round_ns) moved_ns = ran_ns;
    if (const u64 now_moved = lanes.moved(); now_moved != moved_before)
      moved_before = now_moved, moved_ns = ran_ns;
    const u64 now = wall_ns();
    if (ran_ns - moved_ns >= timeout_ns) {
      stuck_ = true;
      break;
    }
    if (due > now && !rest) {
      if (due > now + kSpinNs) sleep_until(std::min({due - kSpinNs / 2, until_ns, now + kLongestNapNs}));
    } else if (o_.polling == Polling::block) {
      lanes.wait(rest, std::min(kRoomWaitNs, due > now ? due - now : kRoomWaitNs));
    }
  }
  drain(thread, timeout_ns, span);
  use->useful = rounds > 0 ? static_cast<double>(useful) / static_cast<double>(rounds) : 0;
  if (o_.packets_per_s > 0 && !stuck_) await_last_gap(thread, until_ns, span);
}

/// A packet that has gone in part goes as a whole, or the stream behind it cannot be read.
void SendingEnd::drain(u32 thread, u64 timeout_ns, Span* span) {
  RunningTime time(wall_ns());
  u64 limit = stuck_ ? 0 : timeout_ns;
  for (u32 f = thread; f < senders_.size(); f += o_.threads) {
    Sender& s = *senders_[f];
    u64 moved = s.queue().moved();
    while ((s.pending() || !s.queue().flush()) && !s.queue().broken()) {
      const u64 now = wall_ns(), ran_ns = time.look(now);
      if (s.pending() && s.step(~u64{0}, now) > 0) {
        span->end_ns = wall_ns();
        continue;
      }
      if (const u64 more = s.queue().moved(); more != moved) {
        moved = more;
        span->end_ns = now;
        if (!stuck_) limit = ran_ns + timeout_ns;
      }
      if (ran_ns >= limit) {
        stuck_ = true;
        break;
      }
      s.queue().wait(kRoomWaitNs);
    }
  }
}

/// A paced packet takes the time until the next one is due, or few packets would be n over n - 1 gaps.
void SendingEnd::await_last_gap(u32 thread, u64 until_ns, Span* span) {
  u64 end = 0;
  for (u32 f = thread; f < senders_.size(); f += o_.threads)
    if (!senders_[f]->queue().broken()) end = std::max(end, senders_[f]->pacer().due_ns());
  end = std::min(end, until_ns);
  u64 now = wall_ns();
  for (; now < end && !stop_.load(std::memory_order_relaxed); now = wall_ns())
    sleep_until(std::min(end, now + kLongestNapNs));
  span->end_ns = std::max(span->end_ns, std::min(end, now));
}

SendPhase SendingEnd::run(double seconds, u64 count, const std::function<bool()>& stop) {
  SendPhase p;
  std::vector<SendCounts> before;
  for (const auto& s : senders_) {
    before.push_back(s->counts());
    s->gaps().clear();
  }
  stop_ = false;
  stuck_ = false;
  const u64 begin = wall_ns();
  const measure::CpuTime cpu_time;
  const u64 limit = seconds > 0 && !measure::is_endless(seconds) ? static_cast<u64>(seconds * 1e9) : kNoLimit;
  std::vector<Span> spans(o_.threads);
  Threads threads("tx", o_.threads, o_.cores,
                  [&](u32 i, ThreadUse* use) { send(i, limit, count, &spans[i], use); });
  do {
    if (stop && stop()) stop_ = true;
  } while (!threads.ended_within(kLook));
  threads.join();
  p.threads = threads.uses();
  p.master = {.role = "master",
              .cost = cpu_time.spent("master"),
              .elapsed_s = static_cast<double>(wall_ns() - begin) * 1e-9,
              .useful = 1};
  p.stuck = stuck_;
  u64 end = 0;
  p.begin_ns = ~u64{0};
  for (const Span& s : spans) p.begin_ns = std::min(p.begin_ns, s.begin_ns), end = std::max(end, s.end_ns);
  p.elapsed_s = static_cast<double>(end - p.begin_ns) * 1e-9;
  for (u32 f = 0; f < senders_.size(); ++f) {
    const SendCounts& c = senders_[f]->counts();
    p.sent += c.sent - before[f].sent;
    // Where a number of packets is asked for, each of them leaves.
    if (count == 0) p.skipped += c.skipped;
    p.gaps.merge(senders_[f]->gaps());
    p.broken = p.broken || senders_[f]->queue().broken();
  }
  return p;
}

bool SendingEnd::reseed(u64 seed) {
  // Some drivers give a buffer back when they need its place.
  RunningTime time(wall_ns());
  for (const auto& s : senders_)
    while (s->queue().completed() < s->sent()) {
      if (time.look(wall_ns()) >= kCompletedNs || s->queue().broken()) return false;
      s->queue().wait(kRoomWaitNs);
    }
  for (const auto& s : senders_) s->fill(seed);
  return true;
}

bool SendingEnd::finish() {
  const auto limit_ns = static_cast<u64>(o_.timeout_s * 1e9);
  RunningTime time(wall_ns());
  bool all = true;
  for (const auto& s : senders_) {
    while (!s->queue().finish() && !s->queue().broken()) {
      if (time.look(wall_ns()) >= limit_ns) {
        all = false;
        break;
      }
      s->queue().wait(kRoomWaitNs);
    }
  }
  return all;
}

}  // namespace doorbell::net
