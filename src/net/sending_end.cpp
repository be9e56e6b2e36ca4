// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <ctime>

#include "measure/endless.hpp"
#include "net/ends.hpp"
#include "system/clock.hpp"

namespace doorbell::net {

namespace {

constexpr u64 kRoomWaitNs = 1'000'000;
constexpr u64 kSpinNs = 60'000;  // a sender does not sleep for less, because it would wake too late
constexpr auto kLook = std::chrono::milliseconds(20);

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

void SendingEnd::send(u32 thread, u64 until_ns, u64 count, ThreadUse* use) {
  struct Lane {
    Sender* sender;
    u64 limit;
  };
  std::vector<Lane> lanes;
  const u64 begin = wall_ns();
  for (u32 f = thread; f < senders_.size(); f += o_.threads) {
    Sender& s = *senders_[f];
    s.pace(o_.packets_per_s, begin);
    lanes.push_back({&s, count > 0 ? s.counts().sent + count : ~u64{0}});
  }
  u64 rounds = 0, useful = 0;
  u64 moved_ns = begin;  // when something last moved, or nothing had to
  const auto timeout_ns = static_cast<u64>(o_.timeout_s * 1e9);
  while (!lanes.empty()) {
    ++rounds;
    bool moved = false;
    const u64 round_ns = wall_ns();
    const bool over = stop_.load(std::memory_order_relaxed) || round_ns >= until_ns;
    for (std::size_t i = 0; i < lanes.size();) {
      Sender& s = *lanes[i].sender;
      const bool more = s.counts().sent < lanes[i].limit && !over && !s.queue().broken();
      // A flow behind others does not leave at the round's begin.
      const u64 now = i == 0 ? round_ns : wall_ns();
      if (more && s.step(lanes[i].limit, now) > 0) moved = true;
      if (more) ++i;
      else lanes[i] = lanes.back(), lanes.pop_back();
    }
    if (moved) {
      ++useful;
      moved_ns = round_ns;
      continue;
    }
    if (lanes.empty()) break;
    u64 due = ~u64{0};
    for (const Lane& l : lanes)
      due = std::min(due, l.sender->pacer().paced() ? l.sender->pacer().due_ns() : 0);
    const u64 now = wall_ns();
    // Where something was due there was no room for it.
    if (due + kSpinNs > round_ns) moved_ns = round_ns;
    if (due > now) {
      if (due > now + kSpinNs) sleep_until(std::min(due - kSpinNs / 2, until_ns));
    } else if (round_ns - moved_ns >= timeout_ns) {
      stuck_ = true;
      break;
    } else if (o_.polling == Polling::block) {
      lanes.front().sender->queue().wait(kRoomWaitNs);
    }
  }
  // A packet that has gone in part goes as a whole, or the stream behind it cannot be read.
  const u64 limit = wall_ns() + (stuck_ ? 0 : timeout_ns);
  for (u32 f = thread; f < senders_.size(); f += o_.threads) {
    Sender& s = *senders_[f];
    while ((s.pending() || !s.queue().flush()) && !s.queue().broken()) {
      if (s.pending() && s.step(~u64{0}, wall_ns()) > 0) continue;
      if (wall_ns() >= limit) {
        stuck_ = true;
        break;
      }
      s.queue().wait(kRoomWaitNs);
    }
  }
  use->useful = rounds > 0 ? static_cast<double>(useful) / static_cast<double>(rounds) : 0;
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
  const u64 until =
      seconds > 0 && !measure::is_endless(seconds) ? begin + static_cast<u64>(seconds * 1e9) : ~u64{0};
  Threads threads("tx", o_.threads, o_.cores, [&](u32 i, ThreadUse* use) { send(i, until, count, use); });
  while (!threads.ended()) {
    if (stop && stop()) stop_ = true;
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(
        kLook, std::chrono::nanoseconds(std::max<u64>((wall_ns() - begin) / 4, 100'000))));
  }
  threads.join();
  p.elapsed_s = static_cast<double>(wall_ns() - begin) * 1e-9;
  p.threads = threads.uses();
  p.master = {.role = "master", .cost = cpu_time.spent("master"), .elapsed_s = p.elapsed_s, .useful = 1};
  p.stuck = stuck_;
  for (u32 f = 0; f < senders_.size(); ++f) {
    const SendCounts& c = senders_[f]->counts();
    p.sent += c.sent - before[f].sent;
    p.skipped += c.skipped;
    p.gaps.merge(senders_[f]->gaps());
    p.broken = p.broken || senders_[f]->queue().broken();
  }
  return p;
}

bool SendingEnd::finish() {
  const u64 limit = wall_ns() + static_cast<u64>(o_.timeout_s * 1e9);
  bool all = true;
  for (const auto& s : senders_) {
    while (!s->queue().finish() && !s->queue().broken()) {
      if (wall_ns() >= limit) {
        all = false;
        break;
      }
      s->queue().wait(kRoomWaitNs);
    }
  }
  return all;
}

}  // namespace doorbell::net
